"""What every registered anonymizer must keep, on generated tables: one test, all methods.

An ordinary run generates 50 tables for each method and variant, more than 2,000 in all; `-m slow` over 10,000. The same
code is checked on tables of other kinds by test_requirements.py, and on fixed ones by tests/snapshot.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, KAnonymizer
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.metrics.information_loss import truthfulness
from fedanon.release.release import Release
from fedanon.sdc.methods.base import Perturbative
from tests.anonymizers.tables import tables

VARIANTS = {
    "mondrian": [{}, {"relaxed": True}, {"strict_children": True}],
    "gfkmc": [
        {},
        {"profile": "paper"},
        {"profile": "thesis"},
        {"publish": "most_common_record"},
        {"publish": "most_common_value"},
    ],
    "full_domain": [{}, {"suppression": 0.0, "objective": "arx"}, {"suppression": 0.5, "numeric_levels": 2}],
    "wkmca": [{}, {"outlier_share": 0.0, "farthest": "max_max"}],
    "individual_ranking": [{"k": 2}, {"k": 2, "optimal": True}],
    # noise from a seed, so that two releases can be compared
    "dp_microaggregation": [{"k": 2, "randomness": "seeded"}, {"k": 2, "delta": 1e-5, "randomness": "seeded"}],
    "v_mdav": [{}, {"gamma": 1.1}],
    "gsms": [{}, {"dissolve": True}],
    "brkga": [{"population": 20, "generations": 5}],
    "derivative_free": [{}, {"start": "gsms", "gamma": 3}],
    "anneal": [{}, {"iterations": 500, "restarts": 2, "recombine": True}],
    "blocks": [{"block_size": 10, "iterations": 2000}, {"block_size": 8, "method": "tdg"}],
}
# methods that change values may refuse a table and promise nothing: tests/sdc/methods/test_methods_contract.py
NAMES = [name for name, method in ANONYMIZERS.items() if not issubclass(method, Perturbative)]
CASES = [(name, variant) for name in NAMES for variant in VARIANTS.get(name, [{}])]
IDS = [f"{name}-{'-'.join(map(str, variant.values()))}".rstrip("-") for name, variant in CASES]
ORDERLESS = [case for case in CASES if not ANONYMIZERS[case[0]].row_order_matters]
ORDINARY, SLOW = 50, 600
SETTINGS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "derandomize": True}


def make(name: str, variant: dict[str, object], k: int) -> Anonymizer:
    component = ANONYMIZERS[name]
    return component(**variant, **({"k": k} if issubclass(component, KAnonymizer) else {}))


def any_table(name: str) -> st.SearchStrategy[Table]:
    return tables(numeric_only=ANONYMIZERS[name].numeric_only)


def test_enough_tables_are_generated() -> None:
    assert len(CASES) * ORDINARY >= 2_000
    assert len(CASES) * SLOW >= 10_000


@pytest.mark.parametrize(("name", "variant"), CASES, ids=IDS)
def test_contract(name: str, variant: dict[str, object]) -> None:
    @settings(max_examples=ORDINARY, **SETTINGS)
    @given(table=any_table(name), k=st.integers(2, 6), seed=st.integers(0, 3))
    def holds(table: Table, k: int, seed: int) -> None:
        check_contract(make(name, variant, k), table, seed)

    holds()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), CASES, ids=IDS)
def test_contract_at_length(name: str, variant: dict[str, object]) -> None:
    @settings(max_examples=SLOW, **SETTINGS)
    @given(table=any_table(name), k=st.integers(2, 12), seed=st.integers(0, 2**32))
    def holds(table: Table, k: int, seed: int) -> None:
        check_contract(make(name, variant, k), table, seed)

    holds()


def check_contract(anonymizer: Anonymizer, table: Table, seed: int) -> None:
    before = table.frame.copy()
    codes = table.codes.copy()
    k = getattr(anonymizer, "k", 0)
    if table.n_persons < k:
        with pytest.raises(InfeasibleError):
            anonymizer.anonymize(table, rng=seed)
        return
    release = anonymizer.anonymize(table, rng=seed)
    pd.testing.assert_frame_equal(table.frame, before)
    np.testing.assert_array_equal(table.codes, codes)
    published = release.to_frame()
    pd.testing.assert_frame_equal(published, anonymizer.anonymize(table, rng=seed).to_frame())
    pd.testing.assert_index_equal(published.index, table.frame.index)
    assert list(published.columns) == list(table.frame.columns)
    if anonymizer.truthful:
        assert truthfulness(table, release) == 1.0
    if isinstance(anonymizer, KAnonymizer):
        assert release.claim is not None
        assert smallest_class(release, table, published) >= k
    check_recode(release, table)


def smallest_class(release: Release, table: Table, published: pd.DataFrame) -> int:
    """An independent count: group the published text, count rows or people."""
    quasi = [a.name for a in table.schema.quasi_identifiers]
    frame = published.assign(_person=np.arange(len(table)) if table.persons is None else table.persons)
    kept = frame[~release.suppressed]
    return int(kept.groupby(quasi, dropna=False)["_person"].nunique().min()) if len(kept) else 10**9


def check_recode(release: Release, table: Table) -> None:
    """Recoding rows gives cells of the right length and nothing outside the schema."""
    some = table.select_rows(np.arange(0, len(table), 2))
    recoded = release.recode(some)
    assert len(recoded.to_frame()) == len(some)


@pytest.mark.parametrize(("name", "variant"), ORDERLESS, ids=[IDS[CASES.index(case)] for case in ORDERLESS])
def test_row_order_does_not_matter(name: str, variant: dict[str, object]) -> None:
    @settings(max_examples=25, **SETTINGS)
    @given(table=any_table(name), seed=st.integers(0, 3))
    def holds(table: Table, seed: int) -> None:
        anonymizer = make(name, variant, 2)
        if table.n_persons < 2 or table.persons is not None:
            return
        quasi = [a.name for a in table.schema.quasi_identifiers]
        shuffled = table.select_rows(np.random.default_rng(seed).permutation(len(table)))
        first = anonymizer.anonymize(table, rng=seed).to_frame()[quasi]
        second = anonymizer.anonymize(shuffled, rng=seed).to_frame()[quasi]
        pd.testing.assert_frame_equal(
            first.sort_values(quasi).reset_index(drop=True), second.sort_values(quasi).reset_index(drop=True)
        )

    holds()


@pytest.mark.parametrize("name", [n for n, component in ANONYMIZERS.items() if issubclass(component, KAnonymizer)])
def test_parameters_are_checked_with_one_form_of_message(name: str) -> None:
    component = ANONYMIZERS[name]
    message = rf"The 'k' parameter of {component.__name__} must be an int >= 2\. Got 1 instead\."
    with pytest.raises(ConfigError, match=message):
        component(k=1)
