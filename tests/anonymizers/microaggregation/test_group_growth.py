"""V-MDAV and GSMS step by step, against plain computations of what each step must choose."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.anonymizers.microaggregation.mdav import VMdav, gsms_groups
from fedanon.types import FloatArray


def v_mdav(points: FloatArray, k: int, gamma: float) -> np.ndarray:
    return VMdav(k=k, gamma=gamma).gather(points, np.random.default_rng(0))


def test_groups_grow_while_a_record_is_nearer_to_the_group_than_to_others() -> None:
    points = np.array([-9.0, -8.0, -7.5, 0.0, 0.5, 1.0, 3.0])[:, None]
    # -7.5 is 0.5 from the group of -9 and -8, and 7.5 from the next outsider
    assert v_mdav(points, 2, 0.2).tolist() == [0, 0, 0, 2, 2, 1, 1]
    # otherwise it seeds a group of its own, and 0.5, left over, joins the nearest mean
    assert v_mdav(points, 2, 0.0).tolist() == [0, 0, 2, 2, 1, 1, 1]


def test_gamma_0_never_grows_a_group_and_a_large_gamma_always() -> None:
    points = np.random.default_rng(2).standard_normal((90, 2))
    assert set(np.bincount(v_mdav(points, 5, 0.0))) == {5}
    assert set(np.bincount(v_mdav(points, 5, 1e9))) == {9}


def plain_gsms(points: FloatArray, k: int) -> list[set[int]]:
    """The groups in the order they are taken, by comparing SSE(group) + SSE(rest) itself."""
    left, taken = list(range(len(points))), []

    def spread(rows: list[int]) -> float:
        return float(np.square(points[rows] - points[rows].mean(axis=0)).sum()) if rows else 0.0

    while len(left) >= k:
        best: tuple[float, list[int]] = (np.inf, [])
        for record in left:
            away = np.square(points[left] - points[record]).sum(axis=1)
            group = [left[i] for i in np.argsort(away, kind="stable")[:k]]
            cost = spread(group) + spread([row for row in left if row not in group])
            best = min(best, (cost, group), key=lambda pair: pair[0])
        taken.append(set(best[1]))
        left = [row for row in left if row not in best[1]]
    return taken


@pytest.mark.parametrize(("n", "k"), [(24, 4), (26, 5), (30, 2)])
def test_gsms_takes_the_group_that_leaves_least(n: int, k: int) -> None:
    points = np.random.default_rng(n).standard_normal((n, 3))
    labels = gsms_groups(points, k)
    # when exactly k records are left every proposal is the same; before that, each must be the plain one
    for number, group in enumerate(plain_gsms(points, k)):
        assert group <= set(np.flatnonzero(labels == number))
