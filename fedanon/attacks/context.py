"""AttackContext: what attacks run on. Whatever only some attacks need is made when the first of them asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedanon.anonymizers.base import Anonymizer
from fedanon.data.table import Table
from fedanon.release.gate import verify
from fedanon.release.release import Release

#: share of the people who are kept out of the members' release
CONTROL_SHARE = 0.5


@dataclass(frozen=True)
class Members:
    """A release of some of the people, and a control: the others, who are not in it."""

    table: Table
    release: Release
    control: Table


@dataclass(frozen=True, eq=False)
class AttackContext:
    """A table, its release and, where known, the method that makes releases.

    Parameters
    ----------
    table : the original records.
    release : made from all of them.
    anonymizer : the method that made the release; None for a release that was read from a file.
    seed : of all random draws.
    """

    table: Table
    release: Release
    anonymizer: Anonymizer | None
    seed: int = 0

    @cached_property
    def members(self) -> Members | None:
        """A random half of the people with a release of their own; None where no further release can be made."""
        if self.anonymizer is None:
            return None
        rng = self.rng("members")
        people = self.table.person_of_row
        outside = rng.random(self.table.n_units) < CONTROL_SHARE
        inside = self.table.select_rows(np.flatnonzero(~outside[people]))
        return Members(
            inside, self.make_release(inside, "members"), self.table.select_rows(np.flatnonzero(outside[people]))
        )

    def make_release(self, table: Table, purpose: str) -> Release:
        """Make another verified release by the same method, which the context must have."""
        assert self.anonymizer is not None
        return verify(self.anonymizer.anonymize(table, rng=self.rng(purpose)), table)

    def rng(self, purpose: str) -> np.random.Generator:
        """Return a random stream of its own for every purpose, so that no attack affects another."""
        return np.random.default_rng([self.seed, *purpose.encode()])
