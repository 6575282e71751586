"""A small federation: five clients of a slice of Adult."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.federated import sources
from fedanon.learning.settings import RunSettings

ROWS = 1_500


@lru_cache
def first_rows() -> Table:
    return load("adult").select_rows(np.arange(ROWS))


@pytest.fixture(autouse=True)
def small_adult(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The data set 'adult' is its first rows here, so that a run takes a second."""
    table = first_rows()
    monkeypatch.setattr(sources, "load", lambda name, **more: table if name == "adult" else load(name, **more))
    sources.whole_table.cache_clear()
    sources.partition_rows.cache_clear()
    yield
    sources.whole_table.cache_clear()
    sources.partition_rows.cache_clear()


def settings(model: str = "lr", **more: Any) -> RunSettings:
    return RunSettings(**({"model": model, "nodes": 5, "rounds": 4} | more))
