"""Task: the parameters of one cell, and how to compute it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.fields import build, check_fields, parameter
from fedanon.models.target import target

#: the partition of a table that stays in one place
WHOLE = "whole"


@dataclass(frozen=True)
class Outcome:
    """What a cell gave.

    Parameters
    ----------
    measures : numbers by name.
    curves : numbers by name and round.
    notes : what a method said about its release.
    """

    measures: dict[str, float]
    curves: dict[str, dict[int, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """Scalars only, so that a cell can be named by a hash of them and sent to any process."""

    dataset: str = parameter("adult", help="data set by name")
    seed: int = parameter(0, help="seed of everything", at_least=0)

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def run(self) -> Outcome:
        """Compute the cell; the same fields give the same numbers."""

    def data_hashes(self) -> dict[str, str]:
        """SHA-256 of every table the cell reads."""
        return {self.dataset: table_hash(self.dataset)}


@dataclass(frozen=True, kw_only=True)
class MethodTask(Task):
    """A task about an anonymizer."""

    method: str = parameter("identity", help="anonymizer")
    settings: str = parameter("{}", help="parameters of the method, as JSON")
    k: int | None = parameter(None, help="minimum class size, for methods that have one", at_least=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.anonymizer()  # bad settings are told before anything is run

    @classmethod
    def component(cls, method: str) -> type[Any]:
        """The method by name."""
        return ANONYMIZERS[method]

    def anonymizer(self) -> Anonymizer:
        """The method with its parameters."""
        built: Anonymizer = build(self.component(self.method), self.method_settings())
        return built

    def method_settings(self) -> dict[str, Any]:
        """The method's parameters, k among them."""
        settings: dict[str, Any] = json.loads(self.settings)
        return settings | ({} if self.k is None else {"k": self.k})


@lru_cache(maxsize=8)
def whole_table(dataset: str) -> Table:
    """A data set, loaded once a process."""
    return load(dataset)


@cache
def majority_share(dataset: str) -> float:
    """The accuracy of always naming the more common class: what a useful model has to beat."""
    table = whole_table(dataset)
    share = float(target(table, table.schema).mean())
    return max(share, 1 - share)


@cache
def table_hash(dataset: str) -> str:
    """SHA-256 of a data set with its schema."""
    return whole_table(dataset).sha256
