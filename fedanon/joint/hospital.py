"""A hospital's part: it answers questions with counts, and recodes its rows by the plan. Knows nothing of models."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon._version import __version__
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError, UpdateRejectedError
from fedanon.joint.axes import Axis, axes_of, bins_of
from fedanon.joint.masks import KEY_ARRAYS, Keys, masked, read_keys
from fedanon.joint.method import FederatedAnonymizer
from fedanon.joint.noise import RandomWords, seeded_words
from fedanon.joint.plan import Plan, PlannedRegions, planned_groups
from fedanon.joint.population import PairQuestion
from fedanon.joint.queries import FINAL, Asked, Question
from fedanon.privacy.federation_count import WARNING
from fedanon.release.gate import verify
from fedanon.release.release import Provenance, Release, release_of
from fedanon.types import CountArray, IntArray


class Hospital:
    """One that takes part.

    Parameters
    ----------
    table : the rows that are counted and released.
    method : with its parameters.
    number : among the hospitals.
    seed : of the noise, where a method takes it from a seed.
    """

    def __init__(self, table: Table, method: FederatedAnonymizer, number: int, seed: int = 0) -> None:
        check_countable(table, method)
        self.table = table
        self.method = method
        self.number = number
        self.axes: list[Axis] = axes_of(table.schema)
        self._seed = seed

    @cached_property
    def _bins(self) -> IntArray:
        return bins_of(self.table)

    # ---- questions ------------------------------------------------------------------------------

    def answer(self, arrays: list[NDArray[Any]], step: int, secret: bytes = b"") -> CountArray:
        """Counts for a question: all of this hospital's rows the server ever learns of.

        ``secret`` is the key of this hospital for the run, where counts are masked.
        """
        keys = self.keys_of(arrays)
        question = self._question(arrays[: len(arrays) - KEY_ARRAYS * bool(keys)])
        layout = question.layout(self.axes)
        counts = layout.count(self._bins, self.table.persons)
        if step >= FINAL and not self.method.noisy:
            counts = self._published(counts, layout.total)
        scale = self.method.scale(step, question.n_counted)
        told = self.method.disclosure.disclose(counts, scale, len(keys), self._words(step))
        return masked(told, secret, self.number, keys, step) if keys else told

    def keys_of(self, arrays: list[NDArray[Any]]) -> Keys:
        """The keys a question brings, where counts are masked."""
        if not self.method.disclosure.secure:
            return {}
        if len(arrays) < KEY_ARRAYS:
            raise UpdateRejectedError("the question brings no keys")
        return read_keys(arrays[-KEY_ARRAYS:])

    def _question(self, arrays: list[NDArray[Any]]) -> Asked:
        kind = PairQuestion if len(arrays) == 2 else Question
        return kind.from_arrays(arrays, self.axes)

    def _words(self, step: int) -> RandomWords | None:
        """The source of noise, where it follows from a seed."""
        seeded = self.method.randomness == "seeded"
        return seeded_words(self._seed, self.number, *b"noise", step) if seeded else None

    def _published(self, counts: CountArray, n_regions: int) -> CountArray:
        """Final counts without the rows that will be suppressed for want of k_local people."""
        short = counts[-n_regions:] < self.method.k_local  # people come last
        return np.where(np.tile(short, len(counts) // n_regions), 0, counts)

    # ---- the release ----------------------------------------------------------------------------

    def release(self, plan: Plan) -> Release:
        """The verified release of the rows by the plan."""
        if self.number not in plan.clients:
            raise InfeasibleError("This node was not counted, so the claim of the federation is not about its rows.")
        cells = plan.cells(self.table.schema.quasi_identifiers)
        groups, classes = planned_groups(plan, self.table, self.method.k_local)
        if groups.count == 0:
            raise InfeasibleError(
                f"No class holds k_local={self.method.k_local} people of this node; it has no release."
            )
        release = release_of(
            self.table,
            groups,
            {name: column.select(classes) for name, column in cells.items()},
            claim=self.method.claim(plan, cells),
            provenance=self._provenance(plan),
            recoding=PlannedRegions(plan),
        )
        return verify(release, self.table)

    def _provenance(self, plan: Plan) -> Provenance:
        return Provenance(
            method=self.method.name,
            parameters=self.method.to_dict(),
            seed=None,
            version=__version__,
            data_sha256=self.table.sha256,
            schema_sha256=self.table.schema.sha256,
            notes=(f"recoding {plan.sha256[:16]} agreed on by {len(plan.clients)} hospitals", WARNING),
        )


def check_countable(table: Table, method: FederatedAnonymizer) -> None:
    """Raise ConfigError for a table the noise of a method is not made for."""
    if table.persons is not None and method.noisy:
        raise ConfigError("Counts with noise take tables with one row a person; this one has a person_id column.")
