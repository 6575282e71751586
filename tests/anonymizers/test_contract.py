"""What every registered anonymizer must keep, on generated tables: one test, all methods.

An ordinary run checks each method and variant on 50 tables, more than 2,000 releases in all; `-m slow` over 10,000. The
same code is checked on tables of other kinds by test_requirements.py, and on fixed ones by tests/snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, KAnonymizer
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.sdc.methods.base import Perturbative
from fedanon.testing import check_anonymizer, check_row_order
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
# gfkmc too, as long as k is 2: a coarse group that is short of 2 is one row, and cannot be parted
ORDERLESS = [case for case in CASES if case[0] == "gfkmc" or not ANONYMIZERS[case[0]].row_order_matters]
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


@cache
def generated(*, numeric_only: bool) -> list[tuple[Table, int, int]]:
    """Tables, each with a k and a seed: made once, as every method would be given the same ones anyway."""
    made: list[tuple[Table, int, int]] = []

    @settings(max_examples=ORDINARY, **SETTINGS)
    @given(table=tables(numeric_only=numeric_only), k=st.integers(2, 6), seed=st.integers(0, 3))
    def collect(table: Table, k: int, seed: int) -> None:
        made.append((table, k, seed))

    collect()
    assert len(made) >= ORDINARY
    return made


def check_generated(name: str, check: Callable[[Table, int, int], object], count: int = ORDINARY) -> None:
    """Check ``count`` of the generated tables; a failure is searched for again, to show the smallest table with it."""
    try:
        for table, k, seed in generated(numeric_only=ANONYMIZERS[name].numeric_only)[:count]:
            check(table, k, seed)
    except Exception:
        strategies = {"table": any_table(name), "k": st.integers(2, 6), "seed": st.integers(0, 3)}
        settings(max_examples=10 * ORDINARY, **SETTINGS)(given(**strategies)(check))()
        raise


@pytest.mark.parametrize(("name", "variant"), CASES, ids=IDS)
def test_contract(name: str, variant: dict[str, object]) -> None:
    def holds(table: Table, k: int, seed: int) -> None:
        check_anonymizer(make(name, variant, k), table, seed=seed)

    check_generated(name, holds)


@pytest.mark.parametrize("name", NAMES)
def test_contract_on_the_examples(name: str) -> None:
    check_anonymizer(make(name, VARIANTS.get(name, [{}])[-1], 3))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), CASES, ids=IDS)
def test_contract_at_length(name: str, variant: dict[str, object]) -> None:
    @settings(max_examples=SLOW, **SETTINGS)
    @given(table=any_table(name), k=st.integers(2, 12), seed=st.integers(0, 2**32))
    def holds(table: Table, k: int, seed: int) -> None:
        check_anonymizer(make(name, variant, k), table, seed=seed)

    holds()


@pytest.mark.parametrize(("name", "variant"), ORDERLESS, ids=[IDS[CASES.index(case)] for case in ORDERLESS])
def test_row_order_does_not_matter(name: str, variant: dict[str, object]) -> None:
    def holds(table: Table, k: int, seed: int) -> None:
        check_row_order(make(name, variant, 2), table, seed=seed)

    check_generated(name, holds, count=25)


@pytest.mark.parametrize("name", [n for n, component in ANONYMIZERS.items() if issubclass(component, KAnonymizer)])
def test_parameters_are_checked_with_one_form_of_message(name: str) -> None:
    component = ANONYMIZERS[name]
    message = rf"The 'k' parameter of {component.__name__} must be an int >= 2\. Got 1 instead\."
    with pytest.raises(ConfigError, match=message):
        component(k=1)
