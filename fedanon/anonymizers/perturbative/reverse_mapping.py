"""Reverse mapping: a step that puts the original values into the order an earlier step gave them."""

from __future__ import annotations

from dataclasses import dataclass

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.perturbative.base import Columns, Perturbative
from fedanon.anonymizers.perturbative.numeric import WHAT
from fedanon.anonymizers.perturbative.ranks import reverse_map
from fedanon.anonymizers.perturbative.selection import known_numbers, original_numbers
from fedanon.data.cells import Numbers
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.table import Table


@ANONYMIZERS.register("reverse_mapping")
@dataclass(frozen=True, kw_only=True)
class ReverseMapping(Perturbative):
    """Publishes, for each current value, the original value of the same rank; marginals are exact.

    A step for the end of a pipeline (Muralidhar, Sarathy & Domingo-Ferrer 2014; Morais 2022, section 4.2.2): alone it
    changes nothing. Equal current values are ranked at random.
    """

    name = "reverse_mapping"

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """The original values in the order of the current ones."""
        names = self.chosen(table, numeric_quasi_identifiers(table), WHAT)
        x, y = original_numbers(table, tuple(names)), known_numbers(table, current, names)
        return {name: Numbers(reverse_map(x[:, i], y[:, i], rng)) for i, name in enumerate(names)}
