"""What every method that changes values must keep, on generated tables; it may refuse one, but only by a typed error.

An ordinary run generates 20 tables for each method and variant, `-m slow` 300.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer
from fedanon.data.schema import Categorical
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import build
from fedanon.release.release import Release
from fedanon.sdc.methods.base import Perturbative
from fedanon.sdc.methods.longitudinal import LongitudinalReverseMapping
from fedanon.sdc.methods.numeric import NumericPerturbation
from fedanon.sdc.methods.rank_methods import ReverseMapping
from fedanon.testing import check_anonymizer
from tests.anonymizers.tables import tables

NUMERIC = (NumericPerturbation, ReverseMapping, LongitudinalReverseMapping)
RESTRICTED = {"keep_zeros": True, "non_negative": True, "reverse_map": True}
VARIANTS: dict[str, list[dict[str, object]]] = {
    "longitudinal_reverse_mapping": [{"periods": "q0,q1"}],
    "egadp": [{}, {"columns": "q0"}],
    "data_shuffling": [{}, {"columns": "q0"}],
    "additive_noise": [{}, RESTRICTED],
    "log_multiplicative_noise": [{"keep_zeros": True}],
    "distortion": [{"significance": 0.0}],
    "rounding": [{"base": 7.0}],
}
CASES = [
    (name, variant)
    for name, method in ANONYMIZERS.items()
    if issubclass(method, Perturbative)
    for variant in VARIANTS.get(name, [{}])
]
IDS = [f"{name}-{'-'.join(map(str, variant.values()))}".rstrip("-") for name, variant in CASES]
ORDINARY, SLOW = 20, 300


@st.composite
def any_table(draw: st.DrawFn) -> Table:
    """Often numbers only and of some size, as most methods want it; else of any kind."""
    return draw(tables(numeric_only=draw(st.booleans()), at_least=draw(st.sampled_from([1, 12]))))


def run(name: str, variant: dict[str, object], examples: int) -> None:
    published = []

    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(table=any_table(), seed=st.integers(0, 3))
    def holds(table: Table, seed: int) -> None:
        anonymizer = build(ANONYMIZERS[name], variant)
        published.append(check_contract(anonymizer, table, seed))

    holds()
    assert sum(published) >= examples / 10, "the method refuses nearly every table: give it a variant that runs"


@pytest.mark.parametrize(("name", "variant"), CASES, ids=IDS)
def test_contract(name: str, variant: dict[str, object]) -> None:
    run(name, variant, ORDINARY)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), CASES, ids=IDS)
def test_contract_at_length(name: str, variant: dict[str, object]) -> None:
    run(name, variant, SLOW)


def check_contract(anonymizer: Anonymizer, table: Table, seed: int) -> bool:
    """Whether the table was published; any error but the two a method may raise fails the test."""
    release = check_anonymizer(anonymizer, table, seed=seed, may_refuse=True)
    if release is None:
        return False
    published = release.to_frame()
    assert not release.suppressed.any()
    check_what_is_promised(anonymizer, release)
    check_untouched(anonymizer, published, table)
    if isinstance(anonymizer, NUMERIC):
        some = table.select_rows(np.arange(0, len(table), 2))
        pd.testing.assert_frame_equal(release.recode(some).to_frame(), as_they_are(some))
    return True


def check_what_is_promised(anonymizer: Anonymizer, release: Release) -> None:
    """Nothing, and the release says so, unless a method has a claim, which was verified, or changed no value."""
    if isinstance(anonymizer, NUMERIC):
        assert anonymizer.claim() is None
        assert not anonymizer.truthful
    if not anonymizer.truthful and release.claim is None:
        assert any("nothing is promised" in note for note in release.provenance.notes)


def check_untouched(anonymizer: Anonymizer, published: pd.DataFrame, table: Table) -> None:
    """Columns that are no quasi-identifiers, and the categorical ones if the method changes numbers."""
    plain = as_they_are(table)
    quasi = {column.name: column.attribute for column in table.columns}
    stay = [name for name in plain if name not in quasi]
    if isinstance(anonymizer, NUMERIC):
        stay += [name for name, attribute in quasi.items() if isinstance(attribute, Categorical)]
    if anonymizer.columns:  # type: ignore[attr-defined]
        stay += [name for name in quasi if name not in anonymizer.columns]  # type: ignore[attr-defined]
    pd.testing.assert_frame_equal(published[stay], plain[stay])


def as_they_are(table: Table) -> pd.DataFrame:
    return ANONYMIZERS["identity"]().anonymize(table, rng=0).to_frame()


@pytest.mark.parametrize("name", [name for name, _ in CASES if issubclass(ANONYMIZERS[name], NumericPerturbation)])
def test_settings_are_checked_with_one_form_of_message(name: str) -> None:
    component = ANONYMIZERS[name]
    message = rf"The 'keep_zeros' parameter of {component.__name__} must be true or false\. Got 3 instead\."
    with pytest.raises(ConfigError, match=message):
        component(keep_zeros=3)
