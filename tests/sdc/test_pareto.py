"""The front and the choices: worked examples, and what must hold for any points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.sdc.pareto import GOALS, choose, pareto_front, ranks

# few different values, so that ties and equal points are common
POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=25)


def axes(points: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(points, dtype=float)
    return both[:, 0] / 6, both[:, 1]


def dominates(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return a[0] <= b[0] and a[1] <= b[1] and a != b


@given(POINTS)
def test_the_front_is_what_nothing_dominates(points: list[tuple[int, int]]) -> None:
    front = pareto_front(*axes(points))
    expected = [not any(dominates(other, point) for other in points) for point in points]
    assert front.tolist() == expected


@given(POINTS, st.floats(0, 1))
def test_chosen_points_lie_on_the_front_and_keep_the_limit(points: list[tuple[int, int]], limit: float) -> None:
    risk, loss = axes(points)
    front = pareto_front(risk, loss)
    choices = {choice.goal: choice for choice in choose(risk, loss, limit=limit)}
    assert all(front[choice.index] for choice in choices.values())
    assert all((choice.risk, choice.loss) == (risk[choice.index], loss[choice.index]) for choice in choices.values())
    assert choices["least risk"].risk == risk.min()
    within = risk <= limit
    assert ("least loss" in choices) == bool(within.any())
    if within.any():
        assert set(choices) == set(GOALS)
        assert choices["least loss"].loss == loss[within].min()
        assert choices["least loss"].risk <= limit
        assert choices["best compromise"].risk <= limit


@given(POINTS)
def test_ranks_peel_fronts(points: list[tuple[int, int]]) -> None:
    risk, loss = axes(points)
    rank = ranks(risk, loss)
    assert ((rank == 1) == pareto_front(risk, loss)).all()
    for i, point in enumerate(points):
        better = [rank[j] for j, other in enumerate(points) if dominates(other, point)]
        assert rank[i] == 1 + max(better, default=0)


@given(POINTS, st.integers(-3, 3))
def test_the_unit_of_the_loss_does_not_matter(points: list[tuple[int, int]], power: int) -> None:
    risk, loss = axes(points)
    scaled = choose(risk, loss * 2.0**power)  # exact, so that ties stay ties
    assert [choice.index for choice in choose(risk, loss)] == [choice.index for choice in scaled]


def test_worked_example() -> None:
    """Of five points (2, 3) is dominated by (2, 2); scaled, (1, 2.5) is nearest to the corner (0, 1)."""
    risk, loss = [0.4, 0.2, 0.2, 0.1, 0.0], [1.0, 2.0, 3.0, 2.5, 5.0]
    assert pareto_front(risk, loss).tolist() == [True, True, False, True, True]
    assert ranks(risk, loss).tolist() == [1, 1, 2, 1, 1]
    chosen = {choice.goal: choice.index for choice in choose(risk, loss)}
    # distances: (1, 0) 1; (.5, .25) .559; (.25, .375) .451; (0, 1) 1
    assert chosen == {"least loss": 0, "best compromise": 3, "least risk": 4}
    assert {choice.goal: choice.index for choice in choose(risk, loss, limit=0.3)}["least loss"] == 1


def test_nothing_within_the_limit_leaves_the_least_risk() -> None:
    (choice,) = choose([0.9, 0.8], [1.0, 2.0], limit=0.5)
    assert (choice.goal, choice.index) == ("least risk", 1)
    assert "above the limit" in choice.why


@pytest.mark.parametrize("missing", [([np.nan, 0.1], [0.0, 1.0]), ([0.0, 0.1], [np.nan, 1.0])])
def test_points_without_a_number_are_never_chosen(missing: tuple[list[float], list[float]]) -> None:
    assert pareto_front(*missing).tolist() == [False, True]
    assert {choice.index for choice in choose(*missing)} == {1}
    assert ranks(*missing).tolist() == [0, 1]


def test_no_points_no_choice() -> None:
    assert choose([], []) == []
