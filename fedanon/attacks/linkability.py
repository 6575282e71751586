"""Linkability: two parties who each know part of a person find out through the release that it is the same one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, NotApplicableError, members_of
from fedanon.attacks.nearest_classes import nearest_classes
from fedanon.attacks.scene import Members, Scene
from fedanon.data.hierarchy import FloatArray
from fedanon.data.table import Table
from fedanon.parameters import parameter


@ATTACKS.register("linkability")
@dataclass(frozen=True, kw_only=True)
class Linkability(Attack):
    r"""How often both parts of what is known of a person lead to the same released record.

    .. math:: \frac1n \sum_i \frac{|N_A(i) \cap N_B(i)|}{|N_A(i)| \, |N_B(i)|}

    The quasi-identifiers are divided at random into two sets A and B; :math:`N_A(i)` are the released records nearest
    to person i by the columns of A alone, and each party draws one of its nearest (Giomi et al. 2023, with one
    neighbour and ties drawn). Baseline: the same for people who are not in the release.
    """

    title = "Linkability"
    meaning = "Two data sets that know different things of a person are joined through the release."
    target = "release"

    targets: int = parameter(2000, help="people who are looked for, in the release and outside", at_least=1)

    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """Look for members and for people of the control."""
        members = members_of(scene)
        width = len(members.table.columns)
        if width < 2:
            raise NotApplicableError("It needs two quasi-identifiers.")
        columns = rng.permutation(width)
        halves = columns[: width // 2].tolist(), columns[width // 2 :].tolist()
        inside = drawn_rows(members.table, self.targets, rng)
        hits = _linked(members, members.table, inside, halves)
        outside = _linked(members, members.control, drawn_rows(members.control, self.targets, rng), halves)
        return Finding.of_tries(hits, float(outside.mean()), details={"targets_outside": float(len(outside))})


def drawn_rows(table: Table, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """At most so many rows, drawn without repetition, in order."""
    return np.sort(rng.permutation(len(table))[:most])


def _linked(
    members: Members, table: Table, rows: NDArray[np.int64], halves: tuple[Sequence[int], Sequence[int]]
) -> FloatArray:
    """The chance that both halves of each record lead to the same released one."""
    sizes = members.release.classes.sizes.astype(np.float64)
    chance = np.empty(len(rows))
    first, second = (nearest_classes(members.release, table, rows, half) for half in halves)
    for (part, left), (_, right) in zip(first, second, strict=True):
        chance[part] = ((left & right) @ sizes) / ((left @ sizes) * (right @ sizes))
    return chance
