"""Task: the parameters of one cell, and how to compute it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer
from fedanon.federated.sources import whole_table
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
from fedanon.models.target import target
from fedanon.registry import Registry

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
    seed: int = same_field(RunSettings, "seed")

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def run(self) -> CellResult:
        """Compute the cell; the same fields give the same numbers."""

    def data_hashes(self) -> dict[str, str]:
        """SHA-256 of every table the cell reads."""
        return {self.dataset: table_hash(self.dataset)}

    def stored(self) -> dict[str, Any]:
        """The fields as stored results know them: scalars by their oldest names, without those that came later."""
        form = stored_form(self)
        for entry in fields(self):
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

    def stored(self) -> dict[str, Any]:
        """The fields as stored results know them, the method and its parameters by their oldest names."""
        name, settings = stored_component(self.registry(self.method), self.method, self.method_settings)
        return super().stored() | {"method": name, "settings": settings}


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
