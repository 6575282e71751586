"""BRKGA: the worked examples of the paper, the repair and valid releases."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.anonymizers.microaggregation._medoids import mean_distances, medoid_groups
from fedanon.anonymizers.microaggregation.brkga import Brkga, crossover, decode, group_counts
from fedanon.anonymizers.microaggregation.orders import neighbor_lists
from fedanon.datasets import load
from fedanon.metrics.information_loss import il
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.testing.examples import example_table


def test_decoding_as_in_section_4_2() -> None:
    keys = np.array([[0.918, 0.114, 0.219, 0.397, 0.981, 0.245, 0.483, 0.546, 0.504, 0.898]])
    assert (decode(keys, 3) + 1).tolist() == [[2, 3, 6]]


def test_crossover_as_in_section_4_2() -> None:
    elite = np.array([0.31, 0.77, 0.81, 0.49, 0.32, 0.97, 0.72, 0.15, 0.56, 0.92])
    other = np.array([0.26, 0.15, 0.36, 0.41, 0.93, 0.11, 0.28, 0.56, 0.34, 0.87])
    draws = np.array([0.58, 0.89, 0.11, 0.41, 0.70, 0.99, 0.43, 0.71, 0.88, 0.58])
    child = [0.31, 0.15, 0.81, 0.49, 0.32, 0.11, 0.72, 0.56, 0.34, 0.92]
    assert crossover(elite, other, draws, 0.7).tolist() == child


def test_threads_change_nothing() -> None:
    table = example_table(40, numeric_only=True)
    one, three = (
        Brkga(k=3, population=20, generations=3, workers=workers).anonymize(table, rng=0).to_frame()
        for workers in (1, 3)
    )
    assert one.equals(three)


def test_numbers_of_groups() -> None:
    assert group_counts(834, 100, None) == [5, 6, 7, 8]
    assert group_counts(20, 3, None) == [4, 5, 6]
    assert group_counts(20, 3, 2) == [4, 6]
    assert group_counts(5, 3, None) == [1]  # two groups of three cannot be made of five


def test_records_go_to_the_nearest_medoid_if_the_sizes_allow() -> None:
    points = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])[:, None]
    near = neighbor_lists(points, 5)
    assert medoid_groups(points, near, np.array([1, 4]), 3).tolist() == [0, 0, 0, 1, 1, 1]
    assert mean_distances(points, near, np.array([[1, 4]]), 3).tolist() == [pytest.approx(4 / 3)]


def test_repair_takes_the_record_nearest_to_the_medoid_of_a_short_group() -> None:
    points = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 50.0])[:, None]
    near = neighbor_lists(points, 5)
    # the medoid at 50 would be alone; 4 and then 3 join it
    assert medoid_groups(points, near, np.array([0, 5]), 3).tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("listed", [1, 3, 199])
def test_repair_keeps_every_size(listed: int) -> None:
    """Also where the lists of neighbors are too short to hold a medoid."""
    rng = np.random.default_rng(3)
    points = rng.standard_normal((200, 2)) ** 3
    near = neighbor_lists(points, listed)
    for count in (2, 20, 40):
        medoids = rng.choice(200, count, replace=False)
        labels = medoid_groups(points, near, medoids, 5)
        assert np.bincount(labels, minlength=count).min() >= 5
        assert labels[medoids].tolist() == list(range(count))


def test_short_lists_of_neighbors_change_nothing() -> None:
    rng = np.random.default_rng(4)
    points = rng.standard_normal((150, 3))
    medoids = rng.choice(150, 30, replace=False)
    full, short = (medoid_groups(points, neighbor_lists(points, listed), medoids, 4) for listed in (149, 2))
    np.testing.assert_array_equal(full, short)


def test_the_elite_lives_on() -> None:
    """The same draws, so a longer run starts as a shorter one and can only end better."""
    points = np.random.default_rng(5).standard_normal((80, 3))
    near = neighbor_lists(points, 40)
    costs = []
    for generations in (1, 5, 40):
        medoids = Brkga(k=4, generations=generations).evolve(points, near, 15, np.random.default_rng(6))
        costs.append(float(mean_distances(points, near, medoids[None], 4)[0]))
    assert costs[0] >= costs[1] > costs[2]


@pytest.mark.needs_data
def test_a_short_run_gives_a_valid_release() -> None:
    table = load("tarragona")
    release = Brkga(k=10, generations=10, n_counts=2).anonymize(table, rng=0)
    KAnonymity(k=10).check(release, table)
    # far from the optimum, but a real partition: between the best known (30.2) and no sorting at all (56.6)
    assert 30 < il(table, release) < 45


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize("name", ["tarragona", "census"])
@pytest.mark.parametrize("k", [3, 10, 25, 50, 100])
def test_every_release_is_k_anonymous(name: str, k: int) -> None:
    table = load(name)
    release = Brkga(k=k, n_counts=3).anonymize(table, rng=0)
    KAnonymity(k=k).check(release, table)
    assert release.groups.sizes.min() >= k
