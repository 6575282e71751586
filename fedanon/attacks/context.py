"""AttackContext: what an attack is tried on. What only some attacks need is made when the first of them asks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedanon.anonymizers.base import Anonymizer
from fedanon.data.table import Table
from fedanon.release.gate import verify
from fedanon.release.release import Release

#: share of the people who are kept out of the release of the members
CONTROL_SHARE = 0.5


@dataclass(frozen=True)
class Members:
    """A release of some of the people, and the others, who are not in it: what can be told of them anyway."""

    table: Table
    release: Release
    control: Table


@dataclass(frozen=True, eq=False)
class AttackContext:
    """A table, its release and, where it is known, how releases are made.

    Parameters
    ----------
    table : the originals.
    release : made from all of them.
    anonymizer : the method that made the release; None for a release that came as a file.
    seed : of everything that is drawn.
    """

    table: Table
    release: Release
    anonymizer: Anonymizer | None
    seed: int = 0

    @cached_property
    def members(self) -> Members | None:
        """A random half of the people with a release of its own; None where no further release can be made."""
        if self.anonymizer is None:
            return None
        rng = self.rng("members")
        people = self.table.person_of_row
        outside = rng.random(self.table.n_persons) < CONTROL_SHARE
        inside = self.table.take(np.flatnonzero(~outside[people]))
        return Members(inside, self.make_release(inside, "members"), self.table.take(np.flatnonzero(outside[people])))

    def make_release(self, table: Table, purpose: str) -> Release:
        """Another verified release by the same method; the context must have one."""
        assert self.anonymizer is not None
        return verify(self.anonymizer.anonymize(table, rng=self.rng(purpose)), table)

    def rng(self, purpose: str) -> np.random.Generator:
        """A stream of its own for every purpose, so that no attack changes another."""
        return np.random.default_rng([self.seed, *purpose.encode()])
