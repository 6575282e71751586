"""One way to mask the numbers of a table: a method with its settings, perhaps reverse mapping after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.perturbative.numeric import NumericPerturbation
from fedanon.anonymizers.perturbative.pipeline import Pipeline
from fedanon.anonymizers.perturbative.step import Step
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.parameters import build

#: zeros stay zero and nothing becomes negative (Morais 2022, tables 34 to 39)
RESTRICTED = {"keep_zeros": True, "non_negative": True}


@dataclass(frozen=True)
class Masking:
    """A method with its settings; ``reverse_map`` publishes the original values in the order of the result."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    reverse_map: bool = False

    def release(self, table: Table, seed: int) -> Release:
        """Mask the table. A method that cannot map back itself is followed by a step that does."""
        component = ANONYMIZERS[self.method]
        if not self.reverse_map:
            return build(component, self.settings).anonymize(table, rng=seed)
        if issubclass(component, NumericPerturbation):
            return build(component, {**self.settings, "reverse_map": True}).anonymize(table, rng=seed)
        return Pipeline((Step(self.method, (), self.settings), Step("reverse_mapping"))).anonymize(table, rng=seed)

    @property
    def variant(self) -> str:
        """What is done beside the method itself, in words."""
        return variant(self.settings, reverse_map=self.reverse_map)

    @property
    def varied(self) -> str:
        """The settings that are not those of a variant, such as ``c=0.1``."""
        return varied(self.settings)


def variant(settings: Mapping[str, Any], *, reverse_map: bool) -> str:
    """One of 'plain', 'reverse mapped', 'restricted', 'restricted, reverse mapped'."""
    words = ["restricted"] * bool(settings.get("non_negative")) + ["reverse mapped"] * reverse_map
    return ", ".join(words) or "plain"


def varied(settings: Mapping[str, Any]) -> str:
    """Settings as a text without those of the variants."""
    return ", ".join(f"{name}={_short(value)}" for name, value in settings.items() if name not in RESTRICTED)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
