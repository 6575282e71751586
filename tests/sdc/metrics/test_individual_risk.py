from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.sdc.metrics.individual_risk import (
    Frequencies,
    above_main_part,
    benedetti_franconi_risk,
    frequencies,
    household_risk,
    naive_risk,
    violations,
)


def risk(f: int, population: float) -> float:
    return float(benedetti_franconi_risk(Frequencies(np.array([f]), np.array([population])))[0])


def test_frequencies_by_hand() -> None:
    found = frequencies(np.array([4, 0, 4, 7]), np.array([2.0, 5.0, 3.5, 0.25]))
    assert found.sample.tolist() == [2, 1, 2, 1]
    assert found.population.tolist() == [5.5, 5.0, 5.5, 1.0]  # the sample is part of the population
    assert violations(found.sample, 2) == 2
    assert violations(found.population, 5) == 1
    assert naive_risk(found) == pytest.approx([1 / 5.5, 1 / 5, 1 / 5.5, 1])


def test_frequencies_count_people() -> None:
    assert frequencies(np.array([0, 0, 0, 1]), persons=np.array([8, 8, 9, 9])).sample.tolist() == [2, 2, 2, 1]


@given(st.integers(1, 50), st.floats(1, 1e6))
def test_risk_is_between_naive_and_certain(f: int, weight: float) -> None:
    found = risk(f, f * weight)
    assert 1 / (f * weight) <= found * (1 + 1e-9)
    assert found <= 1 / f + 1e-12


@pytest.mark.parametrize("f", [1, 2, 3])
def test_risk_of_a_whole_population(f: int) -> None:
    assert risk(f, f) == pytest.approx(1 / f, rel=1e-15)


@pytest.mark.parametrize("rest", [1e-12, 1e-6, 0.001, 0.0499, 0.0501, 0.3])
def test_risk_where_the_closed_form_cancels(rest: float) -> None:
    """The mean of 1/F of a negative binomial F by integration: r = integral of t^(f-1) p^f / (1 - q t)^f over 0..1."""
    p = 1 - rest
    t, w = np.polynomial.legendre.leggauss(60)
    t, w = (t + 1) / 2, w / 2
    for f in (1, 2):
        exact = float((w * t ** (f - 1) * p**f / (1 - rest * t) ** f).sum())
        assert risk(f, f / p) == pytest.approx(exact, rel=1e-10)


def test_household_risk_by_hand() -> None:
    found = household_risk(np.array([0.5, 0.1, 0.2, 1.0, 0.3]), np.array([3, 1, 3, 0, 0]))
    assert found == pytest.approx([0.6, 0.1, 0.6, 1.0, 1.0])


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=20))
def test_household_is_at_least_as_risky_as_anyone_in_it(members: list[tuple[float, int]]) -> None:
    risks, households = (np.array(column) for column in zip(*members, strict=True))
    assert np.all(household_risk(risks, households) >= risks - 1e-12)


def test_above_main_part_by_hand() -> None:
    # median 0.04, median deviation 0.01: the last two are above 0.06, and one of them above 0.1
    assert above_main_part(np.array([0.02, 0.03, 0.04, 0.04, 0.05, 0.09, 0.11])).tolist() == [False] * 6 + [True]
    # high, but the main part is
    assert above_main_part(np.array([0.4, 0.5, 0.5, 0.5])).tolist() == [False] * 4
    assert above_main_part(np.array([])).tolist() == []
