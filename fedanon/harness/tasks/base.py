"""Task: the parameters of one cell, and how to compute it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer
from fedanon.data.table import Table
from fedanon.datasets.source import DataSource
from fedanon.federated.sources import data_of, provenance, whole_table
from fedanon.fields import (
    Settings,
    build,
    check_fields,
    default_of,
    parameter,
    same_field,
    stored_form,
    stored_name,
    stored_settings,
    stored_text,
)
from fedanon.joint import JOINT_METHODS
from fedanon.learning.settings import RunSettings
from fedanon.models.outcome import BINARY, REGRESSION
from fedanon.models.target import outcome_of, target
from fedanon.registry import Registry
from fedanon.release.release import Release

#: the partition of a table that stays in one place
WHOLE = "whole"


@dataclass(frozen=True)
class CellResult:
    """What a cell gave.

    Parameters
    ----------
    metrics : numbers by name.
    curves : numbers by name and round.
    notes : what a method said about its release.
    """

    metrics: dict[str, float]
    curves: dict[str, dict[int, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """What one cell computes; its fields are the axes of a grid and can be sent to any process."""

    #: groups of settings that a stored cell knows only where they differ from their defaults
    optional_groups: ClassVar[tuple[str, ...]] = ()

    dataset: str = same_field(RunSettings, "dataset", help="data set by name")
    source: Settings = same_field(RunSettings, "source")
    seed: int = same_field(RunSettings, "seed")

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def run(self) -> CellResult:
        """Compute the cell; the same fields give the same numbers."""

    def data_hashes(self) -> dict[str, str]:
        """SHA-256 of every table the cell reads, and of the files and the schema of an own one."""
        data = data_of(self)
        if isinstance(data, str):
            return {data: table_hash(data)}
        known = provenance(data)
        files = {f"{self.dataset}: {name}": sha256 for name, sha256 in known["files"].items()}
        return {self.dataset: known["data_sha256"], **files, f"{self.dataset}: schema": known["schema_sha256"]}

    def stored(self) -> dict[str, Any]:
        """The fields as stored results know them: scalars by their oldest names, without those that came later."""
        form = stored_form(self)
        del form["source"]  # where it lies changes no number; its hashes are among those of the data
        for entry in fields(self):
            if entry.name == "source":
                continue
            optional = entry.metadata.get("optional") or entry.metadata.get("group") in self.optional_groups
            if optional and getattr(self, entry.name) == default_of(entry):
                del form[stored_name(entry)]
        return form


def stored_component(registry: Registry[Any], name: str, settings: Settings) -> tuple[str, str]:
    """A component's name and parameters as stored results know them."""
    return registry.stored_name(name), stored_text(stored_settings(registry[name], settings))


@dataclass(frozen=True, kw_only=True)
class MethodTask(Task):
    """A task about an anonymizer."""

    #: whether its method may be a joint one
    takes_joint: ClassVar[bool] = False

    method: str = same_field(RunSettings, "method", help="anonymizer")
    method_settings: Settings = parameter({}, help="parameters of the method", aliases=("settings",))
    k: int | None = parameter(None, help="minimum class size, for methods that have one", at_least=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.anonymizer()  # bad settings are reported before anything is run

    @classmethod
    def registry(cls, method: str) -> Registry[Any]:
        """Where the method is registered: among those for a single table, or the joint ones."""
        return JOINT_METHODS if cls.takes_joint and method in JOINT_METHODS else ANONYMIZERS

    def anonymizer(self) -> Anonymizer:
        """The method with its parameters."""
        built: Anonymizer = build(self.registry(self.method)[self.method], self.parameters())
        return built

    def parameters(self) -> dict[str, Any]:
        """The method's parameters, k among them."""
        return {**self.method_settings, **({} if self.k is None else {"k": self.k})}

    def releases(self, tables: Sequence[Table]) -> list[Release]:
        """The releases of all nodes, each made alone or by a joint method."""
        if self.method not in JOINT_METHODS:
            anonymizer = self.anonymizer()
            return [anonymizer.anonymize(t, rng=np.random.default_rng([self.seed, i])) for i, t in enumerate(tables)]
        from fedanon.joint.node import Participant
        from fedanon.joint.protocol import agree

        method: Any = self.anonymizer()
        participants = [Participant(table, method, number, self.seed) for number, table in enumerate(tables)]
        plan = agree(participants).plan
        return [participant.release(plan) for participant in participants]

    def stored(self) -> dict[str, Any]:
        """The fields as stored results know them, the method and its parameters by their oldest names."""
        name, settings = stored_component(self.registry(self.method), self.method, self.method_settings)
        return super().stored() | {"method": name, "settings": settings}


@cache
def majority_share(data: str | DataSource) -> float:
    """The accuracy of always naming the most common class: what a useful model has to beat; NaN for a number."""
    table = whole_table(data)
    outcome, truth = outcome_of(table.schema), target(table, table.schema)
    if outcome == REGRESSION:
        return math.nan
    if outcome == BINARY:
        share = float(truth.mean())
        return max(share, 1 - share)
    return float(np.bincount(truth.astype(np.int64)).max() / len(truth))


@cache
def table_hash(dataset: str) -> str:
    """SHA-256 of a data set with its schema."""
    return whole_table(dataset).sha256
