"""One step of a pipeline: a method with its settings, and the columns it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, Rng
from fedanon.anonymizers.perturbative.base import Columns, Perturbative
from fedanon.anonymizers.perturbative.handover import columns_of, table_of_now
from fedanon.anonymizers.perturbative.key_method import KeyMethod
from fedanon.anonymizers.perturbative.stars import Mask
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.parameters import build, listed

#: parameters of methods that list columns of the table
COLUMN_PARAMETERS = ("given", "periods")


class Outcome(NamedTuple):
    """What a step did.

    Parameters
    ----------
    columns : all columns after it.
    suppressed : rows of which it wants nothing published.
    remarks : what a reader of the release has to know.
    """

    columns: Columns
    suppressed: Mask
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A registered method, its settings (texts or values) and the columns it changes; none means all that fit."""

    method: str
    columns: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> list[str]:
        """The columns the step changes or looks at by name."""
        columns = [str(self.settings.get(parameter, "")).replace(";", ",") for parameter in COLUMN_PARAMETERS]
        return [*self.columns, *listed(",".join(columns))]

    def anonymizer(self) -> Anonymizer:
        """The method, its settings checked."""
        component = ANONYMIZERS[self.method]
        if "columns" in self.settings:
            raise ConfigError("The columns of a step are listed after its method, not as a parameter.")
        if issubclass(component, Perturbative):
            return build(component, {**self.settings, "columns": ",".join(self.columns)})
        return build(component, self.settings)

    def apply(self, table: Table, current: Columns, rng: Rng) -> Outcome:
        """Change the columns; ``table`` is the original."""
        method = self.anonymizer()
        if isinstance(method, Perturbative):
            after = {**current, **method.change(table, current, rng)}
            remarks = method.remarks(table, current, after) if isinstance(method, KeyMethod) else ()
            return Outcome(after, np.zeros(len(table), dtype=bool), remarks)
        names = list(self.columns) or [column.name for column in table.columns]
        release = method.anonymize(table_of_now(table, current, names), rng=rng)
        return Outcome({**current, **columns_of(release, table, names)}, release.suppressed, release.provenance.notes)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest: every parameter, given or not."""
        parameters = asdict(self.anonymizer())
        parameters.pop("columns", None)
        return {"method": self.method, "columns": list(self.columns), "parameters": parameters}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Step:
        """The inverse of :meth:`to_dict`."""
        return cls(document["method"], tuple(document["columns"]), dict(document["parameters"]))
