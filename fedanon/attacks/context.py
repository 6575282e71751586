"""AttackContext: what attacks run on. Whatever only some attacks need is made when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fedanon.anonymizers.base import Anonymizer
from fedanon.data.table import Table
from fedanon.release.gate import verify
from fedanon.release.release import Release
from fedanon.types import IndexArray

#: share of the people who are kept out of the members' release
CONTROL_SHARE = 0.5


@dataclass(frozen=True)
class Members:
    """A release of some of the people, and a control: the others, who are not in it."""

    table: Table
    release: Release
    control: Table


@dataclass(frozen=True, eq=False)
class SeenRelease:
    """One release of several, as an attacker sees it who knows who is in it.

    Parameters
    ----------
    people : name of every person in it, the same in all releases.
    classes : the class each of them is in.
    labels : the class of every published row; some may be rows of nobody.
    frame : what these rows show in the columns that are carried along.
    """

    people: Sequence[str]
    classes: IndexArray
    labels: IndexArray
    frame: pd.DataFrame

    @classmethod
    def of(cls, release: Release, people: Sequence[str]) -> SeenRelease:
        """A release whose rows are one person's each, in this order."""
        shown = np.flatnonzero(~release.suppressed)
        labels = release.classes.labels[shown].astype(np.int64)
        return cls([people[int(row)] for row in shown], labels, labels, release.passthrough.iloc[shown])


@dataclass(frozen=True, eq=False)
class AttackContext:
    """A table, its release and, where known, the method that makes releases.

    Parameters
    ----------
    table : the original records.
    release : made from all of them.
    anonymizer : the method that made the release; None for a release that was read from a file.
    seed : of all random draws.
    series : all releases of the same people in their order, the one under attack included; empty if it stands alone.
    """

    table: Table
    release: Release
    anonymizer: Anonymizer | None
    seed: int = 0
    series: tuple[SeenRelease, ...] = ()

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
        """Make another verified release by the same method, which the context must have.

        A search for the release gets as long for a row as it got in the whole table.
        """
        anonymizer = with_scaled_budget(self.anonymizer, min(1.0, len(table) / len(self.table)))
        assert anonymizer is not None
        return verify(anonymizer.anonymize(table, rng=self.rng(purpose)), table)

    def rng(self, purpose: str) -> np.random.Generator:
        """Return a random stream of its own for every purpose, so that no attack affects another."""
        return np.random.default_rng([self.seed, *purpose.encode()])


def with_scaled_budget(anonymizer: Anonymizer | None, share: float) -> Any:
    """The method with ``share`` of its budget, if it has one: a search gets as long for a row as before."""
    settings = {} if anonymizer is None else vars(anonymizer)
    if settings.get("iterations") is not None:
        return replace(anonymizer, iterations=max(1, round(settings["iterations"] * share)))  # type: ignore[type-var]
    if settings.get("seconds") is not None:
        return replace(anonymizer, seconds=settings["seconds"] * share)  # type: ignore[type-var]
    return anonymizer
