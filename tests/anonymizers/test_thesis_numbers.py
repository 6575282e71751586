"""The thesis's own runs reproduced: ten clients of Adult, and the centralized curves.

Source: the stored results of the thesis's public code (means over ten clients; figures 6.3 to 6.6).
"""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.metrics import evaluate

pytestmark = pytest.mark.needs_data

# method, k, mean NCP % as the thesis computes it, mean linked records per client, tolerances of the two
FEDERATED = [
    ("gfkmc", 3, 21.802, 823.2, 0.015, 0.015),
    ("gfkmc", 5, 21.708, 547.4, 0.015, 0.015),
    ("gfkmc", 10, 21.969, 287.4, 0.015, 0.015),
    ("gfkmc", 20, 21.938, 144.4, 0.015, 0.015),
    ("mondrian", 3, 15.666, 589.8, 0.0005, 0.0005),
    ("mondrian", 5, 25.508, 316.9, 0.0005, 0.0005),
    ("mondrian", 10, 39.031, 123.3, 0.0005, 0.0005),
    ("mondrian", 20, 56.796, 48.9, 0.0005, 0.0005),
    ("cb", 3, 11.611, 593.0, 0.04, 0.04),
    ("cb", 5, 19.013, 265.0, 0.04, 0.04),
    ("cb", 10, 31.764, 86.3, 0.04, 0.04),
    ("tdg", 3, 14.686, 442.9, 0.04, 0.04),
    ("tdg", 5, 22.503, 179.8, 0.04, 0.04),
]
# one run's mean of few linked records is too noisy for 4 %: experiments/README.md shows means over many seeds
NOISY = [("cb", 20, 47.501), ("tdg", 10, 35.005), ("tdg", 20, 49.132)]


@pytest.fixture(scope="module")
def clients() -> list[Table]:
    return [load("adult_thesis", node=i) for i in range(10)]


def means(clients: list[Table], method: str, k: int, seeds: range) -> tuple[float, float]:
    measured = []
    for seed in seeds:
        for table in clients:
            release = ANONYMIZERS[method](k=k, profile="thesis").anonymize(table, rng=seed)  # type: ignore[call-arg]
            measured.append(list(evaluate(table, release, ["ncp_published", "linkage_thesis"]).values()))
    loss, linked = np.mean(measured, axis=0)
    return 100 * float(loss), float(linked)


@pytest.mark.parametrize(("method", "k", "loss", "linked", "loss_tolerance", "linked_tolerance"), FEDERATED)
def test_federated_privacy(
    clients: list[Table],
    method: str,
    k: int,
    loss: float,
    linked: float,
    loss_tolerance: float,
    linked_tolerance: float,
) -> None:
    seeds = range(1) if method == "mondrian" else range(3)
    ours_loss, ours_linked = means(clients, method, k, seeds)
    assert ours_loss == pytest.approx(loss, rel=loss_tolerance)
    assert ours_linked == pytest.approx(linked, rel=linked_tolerance)


@pytest.mark.parametrize(("method", "k", "loss"), NOISY)
def test_federated_loss(clients: list[Table], method: str, k: int, loss: float) -> None:
    assert means(clients, method, k, range(3))[0] == pytest.approx(loss, rel=0.04)


def test_loss_of_gfkmc_grows_when_measured_on_the_originals(clients: list[Table]) -> None:
    """The published 'constant 21 %' is an artefact: on the original values it is 26.0, 38.0, 55.3, 68.3 %."""
    for k, expected in ((3, 26.0), (20, 68.3)):
        measured = [
            evaluate(table, ANONYMIZERS["gfkmc"](k=k, profile="thesis").anonymize(table, rng=0), ["ncp"])["ncp"]  # type: ignore[call-arg]
            for table in clients
        ]
        assert 100 * np.mean(measured) == pytest.approx(expected, rel=0.015)


CENTRAL = [
    ("gfkmc", {"profile": "thesis", "das": True}, 20, 22.97, 647, 0.015, 0.02),
    ("gfkmc", {"profile": "thesis", "das": True}, 100, 22.82, 236, 0.015, 0.03),
    ("mondrian", {"profile": "thesis"}, 2, 4.26, 6992, 0.002, 0.0),
    ("mondrian", {"profile": "thesis"}, 100, 52.14, 75, 0.002, 0.0),
    ("cb", {"profile": "thesis"}, 2, 2.78, 8559, 0.02, 0.04),
    ("tdg", {"profile": "thesis"}, 2, 3.72, 7081, 0.02, 0.04),
]


@pytest.mark.parametrize(("method", "variant", "k", "loss", "linked", "loss_tolerance", "linked_tolerance"), CENTRAL)
def test_central_curves(
    method: str,
    variant: dict[str, object],
    k: int,
    loss: float,
    linked: int,
    loss_tolerance: float,
    linked_tolerance: float,
) -> None:
    table = load("adult_thesis_central")
    release = ANONYMIZERS[method](k=k, **variant).anonymize(table, rng=0)  # type: ignore[call-arg]
    measured = evaluate(table, release, ["ncp_published", "linkage_thesis"])
    assert 100 * measured["ncp_published"] == pytest.approx(loss, rel=loss_tolerance)
    assert measured["linkage_thesis"] == pytest.approx(linked, rel=linked_tolerance)
