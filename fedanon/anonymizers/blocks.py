"""Blocks: a large table is cut into parts that are anonymized one after the other, or in parallel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import KAnonymizer, ReleasePlan
from fedanon.anonymizers.block_engines import BlockTask, Found, one_by_one, over_processes, over_ray
from fedanon.anonymizers.enforcement import merge_short_groups
from fedanon.anonymizers.mondrian.method import Mondrian
from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import build, parameter
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.release.recoding import NearestGroup
from fedanon.types import IndexArray, Rng


@ANONYMIZERS.register("blocks")
@dataclass(frozen=True, kw_only=True)
class Blocks(KAnonymizer):
    """Mondrian cuts the table into blocks, and another method anonymizes each of them.

    Blocks are disjoint, so classes of k people in every block are classes of k people of the table. The time of a
    method that compares records pairwise falls from n^2 to n x block size, and blocks can be processed in
    parallel. A method that standardizes numbers does so within a block.
    """

    name = "blocks"

    method: str = parameter("anneal", help="the method that anonymizes each block")
    block_size: int = parameter(20_000, help="minimum number of rows in a block", at_least=2)
    workers: int = parameter(1, help="number of blocks processed at the same time", at_least=1)
    engine: Literal["processes", "ray"] = parameter(
        "processes", help="where they are processed: on this machine, or by the Ray cluster that RAY_ADDRESS names"
    )
    seconds: float = parameter(
        5.0, help="wall time for all blocks, divided by their rows, if the method takes seconds", at_least=0.0
    )
    iterations: int | None = parameter(
        None, help="trials for all blocks in place of seconds, if the method takes them", at_least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        component = ANONYMIZERS[self.method]
        if not issubclass(component, KAnonymizer) or component is type(self):
            raise ConfigError(
                f"The 'method' parameter of Blocks must be a method that claims k. Got {self.method!r} instead."
            )
        for trait in ("truthful", "numeric_only"):
            object.__setattr__(self, trait, getattr(self.inner(1.0), trait))

    def inner(self, share: float) -> KAnonymizer:
        """The method for a block with this share of the rows."""
        trials = None if self.iterations is None else int(self.iterations * share)
        given = {"k": self.k, "seconds": self.seconds * share * self.workers, "iterations": trials}
        component = ANONYMIZERS[self.method]
        known = {entry.name for entry in fields(component)}
        made = build(component, {name: value for name, value in given.items() if name in known})
        assert isinstance(made, KAnonymizer)
        return made

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """The classes of all blocks, numbered consecutively, and the notes about any of them."""
        blocks = self.blocks(table, rng)
        labels = np.empty(len(table), dtype=np.int32)
        used, notes = 0, dict[str, None]()
        for rows, found in zip(blocks, self._anonymized(table, blocks, rng), strict=True):
            labels[rows] = np.where(found.labels < 0, found.labels, found.labels + used)
            used += int(found.labels.max(initial=-1)) + 1
            notes |= dict.fromkeys(found.notes)
        groups = merge_short_groups(table, Groups.from_labels(labels), KAnonymity(k=self.k))
        return ReleasePlan(groups, self.publish_groups(table, groups), NearestGroup(), tuple(notes))

    def blocks(self, table: Table, rng: Rng) -> list[IndexArray]:
        """The rows of every block."""
        cut = Groups.from_labels(Mondrian(k=max(self.block_size, self.k)).partition(table, rng))
        return np.split(cut.order, cut.starts[1:])

    def publish_groups(self, table: Table, groups: Groups) -> Mapping[str, Cells]:
        """As the method does."""
        return self.inner(1.0).publish_groups(table, groups)

    def _anonymized(self, table: Table, blocks: list[IndexArray], rng: Rng) -> list[Found]:
        """The result of every block, in order."""
        slim = replace(table, frame=table.frame[[column.name for column in table.columns]])
        tasks = [
            BlockTask(self.inner(len(rows) / len(table)), slim.select_rows(rows), stream)
            for rows, stream in zip(blocks, rng.spawn(len(blocks)), strict=True)
        ]
        if self.engine == "ray":
            return over_ray(tasks, self.workers)
        return one_by_one(tasks) if min(self.workers, len(tasks)) == 1 else over_processes(tasks, self.workers)
