"""Federation count: the evidence for a claim no node can check alone, how many people of all share each cell."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedanon.data.cells import Cells
from fedanon.privacy.base import View

#: what k over the federation does not do
WARNING = (
    "k is counted over the federation: an attacker who knows which hospital a patient attended looks for the patient "
    "among the people of that hospital only, and is held off by the k of the hospital (k_local), not by that of the "
    "federation."
)


@dataclass(frozen=True)
class FederationCount:
    """The final count of a federation.

    Parameters
    ----------
    people : for each class, by the hash of its published cells, the number of people it holds at least.
    nodes : number of nodes that were counted.
    confidence : probability that all numbers hold; 1 for exact counts.
    disclosure : by which rule the counts were reported, with its parameters.
    """

    people: Mapping[str, int] = field(repr=False)
    nodes: int
    confidence: float = 1.0
    disclosure: Mapping[str, Any] = field(default_factory=lambda: {"counts": "plain"})

    @classmethod
    def from_cells(cls, cells: Mapping[str, Cells], counts: Any, **more: Any) -> FederationCount:
        """From the cells of classes and their counts; classes that publish the same are one."""
        people: dict[str, int] = {}
        for key, count in zip(cell_keys(cells), np.asarray(counts).tolist(), strict=True):
            people[key] = people.get(key, 0) + int(count)
        return cls(people, **more)

    def count_people(self, view: View) -> list[int]:
        """Number of people of the federation in each equivalence class of a view; 0 where nobody counted it."""
        used = np.unique(view.groups.labels[~view.suppressed])
        cells = {a.name: view.cells[a.name].select(used) for a in view.schema.quasi_identifiers}
        return [self.people.get(key, 0) for key in cell_keys(cells)]

    def to_dict(self) -> dict[str, Any]:
        """For the manifest: no cells."""
        return {
            "clients": self.nodes,
            "classes": len(self.people),
            "smallest_class_at_least": min(self.people.values(), default=0),
            "confidence": self.confidence,
            **self.disclosure,
        }


def cell_keys(cells: Mapping[str, Cells]) -> list[str]:
    """A hash of every row of published cells, the same at every node."""
    columns = [[str(text) for text in cells[name].texts()] for name in sorted(cells)]
    rows = zip(*columns, strict=True)
    return [hashlib.sha256("\x1f".join(row).encode()).hexdigest()[:32] for row in rows]
