"""Blocks: disjoint, large enough, anonymised alone, with the same result however many processes work."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.anonymizers.blocks import Blocks
from fedanon.anonymizers.progress import watching
from fedanon.anonymizers.top_down_greedy import TopDownGreedy
from fedanon.data.datasets import load
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.metrics.information_loss import ncp


@pytest.fixture(scope="module")
def adult() -> Table:
    return load("adult").take(np.arange(0, 30000, 10))


def test_every_class_lies_in_one_block(adult: Table) -> None:
    method = Blocks(k=5, method="tdg", block_size=400)
    blocks = method.blocks(adult, np.random.default_rng(0))
    assert len(blocks) > 3
    assert min(map(len, blocks)) >= 400
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(len(adult)))
    block_of = np.empty(len(adult), dtype=int)
    for number, rows in enumerate(blocks):
        block_of[rows] = number
    assert (method.anonymize(adult, rng=0).groups.distinct(block_of) == 1).all()


def test_one_block_is_the_method_itself(adult: Table) -> None:
    whole = Blocks(k=5, method="tdg", block_size=len(adult)).anonymize(adult, rng=0)
    assert ncp(adult, whole) == pytest.approx(ncp(adult, TopDownGreedy(k=5).anonymize(adult, rng=0)), rel=0.1)


def test_processes_change_nothing(adult: Table) -> None:
    labels = [
        Blocks(k=5, block_size=700, iterations=20_000, workers=workers).anonymize(adult, rng=3).groups.labels
        for workers in (1, 2)
    ]
    np.testing.assert_array_equal(*labels)


def test_progress_runs_over_all_blocks_and_may_be_stopped(adult: Table) -> None:
    shares: list[float] = []
    method = Blocks(k=5, block_size=400, iterations=60_000)
    with watching(lambda share, _: shares.append(share) is None):
        method.anonymize(adult, rng=0)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    full = len(shares)
    shares.clear()
    with watching(lambda share, _: shares.append(share) is not None):
        method.anonymize(adult, rng=0)
    assert len(shares) < full / 2


def test_the_method_must_claim_k() -> None:
    for method in ("identity", "blocks"):
        with pytest.raises(ConfigError, match="must be a method that claims k"):
            Blocks(k=5, method=method)


def test_traits_are_those_of_the_method() -> None:
    means = Blocks(k=5, method="mdav")
    assert (means.truthful, means.numeric_only) == (False, True)
    assert (Blocks(k=5).truthful, Blocks(k=5).numeric_only) == (True, False)
