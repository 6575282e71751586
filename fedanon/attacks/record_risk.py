"""Risk per record: who is most exposed to an attack, and whether some subgroups are more exposed than others.

A rate says how often an attack succeeds on average; a release may be safe on average and give away the same few records
every time. Records are named by the numbers of their rows, subgroups by what the schema declares (the uppermost level
of a taxonomy, quarters of a numeric range): no cell of anybody appears.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedanon.attacks.base import RecordChances, interval_by_cluster
from fedanon.data.coded_column import CodedColumn
from fedanon.data.hierarchy import MISSING
from fedanon.data.schema import Numeric, Unit
from fedanon.data.table import Table
from fedanon.types import AnyArray, BoolArray, IndexArray

#: share of the records that counts as the most exposed
MOST = 0.01
#: a smaller subgroup is not shown by itself: its risk would be that of a few people
SMALLEST_SUBGROUP = 20
#: parts that the range of a number is divided into
PARTS = 4
#: the subgroups that are too small to be shown, together
OTHERS = "(others)"


@dataclass(frozen=True)
class SubgroupRisk:
    """The risk of one subgroup: mean chance of success and its 95 % interval."""

    subgroup: str
    n: int
    chance: float
    low: float
    high: float


@dataclass(frozen=True)
class ColumnRisk:
    """The risk of the subgroups of a column, from the lowest to the highest.

    ``differs`` if the intervals of the lowest and the highest do not overlap.
    """

    column: str
    subgroups: tuple[SubgroupRisk, ...]

    @property
    def differs(self) -> bool:
        """Whether more than chance lies between the lowest and the highest."""
        return self.subgroups[0].high < self.subgroups[-1].low


@dataclass(frozen=True)
class RecordRisk:
    """What an attack says of single records.

    Parameters
    ----------
    attack : its name.
    unit : what is counted: people where every row is known to be one, else records.
    n : how many the attack was tried on.
    chance, guess : mean chance of success, and without what is attacked.
    most : how many are the most exposed 1 %.
    most_chance, most_low, most_high : their mean chance and its 95 % interval.
    most_guess : mean chance of a guess at the same records.
    columns : the subgroups of every quasi-identifier that has two large enough, least equal first.
    """

    attack: str
    unit: Unit
    n: int
    chance: float
    guess: float
    most: int
    most_chance: float
    most_low: float
    most_high: float
    most_guess: float
    columns: tuple[ColumnRisk, ...]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary that JSON can hold."""
        columns = [asdict(one) | {"differs": one.differs} for one in self.columns]
        return asdict(self) | {"columns": columns}


def summarize_records(attack: str, table: Table, found: RecordChances) -> RecordRisk:
    """Sum up what an attack says of every record.

    Parameters
    ----------
    attack : its name.
    table : the originals, whose rows the chances are of.
    found : as the attack reports them.
    """
    n = len(found.rows)
    most = most_exposed(found)
    low, high = interval_by_cluster(found.chances[most], _numbered(found.clusters[most]))
    return RecordRisk(
        attack=attack,
        unit="people" if table.n_people == len(table) else "records",
        n=n,
        chance=float(found.chances.mean()),
        guess=float(found.guesses.mean()),
        most=len(most),
        most_chance=float(found.chances[most].mean()),
        most_low=low,
        most_high=high,
        most_guess=float(found.guesses[most].mean()),
        columns=_columns(table, found),
    )


def most_exposed(found: RecordChances, share: float = MOST) -> IndexArray:
    """Places of the records with the highest ranks, at least one; of equal ones the first."""
    count = max(1, math.ceil(share * len(found.rows)))
    return np.sort(np.argsort(-found.ranks, kind="stable")[:count])


def record_frame(table: Table, found: Mapping[str, RecordChances]) -> pd.DataFrame:
    """The chance of every record by attack, and whether it is among the most exposed; no cell.

    Rows are numbered from 1 in the order of the table; those that no attack was tried on are left out.
    """
    frame = pd.DataFrame({"row": np.arange(1, len(table) + 1)})
    for attack, one in found.items():
        chances, most = np.full(len(table), np.nan), np.zeros(len(table), dtype=bool)
        chances[one.rows] = one.chances
        most[one.rows[most_exposed(one)]] = True
        frame[attack], frame[f"{attack}_most_exposed"] = chances, most
    tried = np.zeros(len(table), dtype=bool)
    for one in found.values():
        tried[one.rows] = True
    return frame[tried].reset_index(drop=True)


# ---- Subgroups -----------------------------------------------------------------------------------


def _columns(table: Table, found: RecordChances) -> tuple[ColumnRisk, ...]:
    risks = []
    for column, codes in zip(table.columns, table.codes[found.rows].T, strict=True):
        subgroups = [_risk(name, found, chosen) for name, chosen in _subgroups(column, codes)]
        if len(subgroups) > 1:
            risks.append(ColumnRisk(column.name, tuple(sorted(subgroups, key=lambda one: one.chance))))
    return tuple(sorted(risks, key=lambda one: one.subgroups[0].chance - one.subgroups[-1].chance))


def _risk(name: str, found: RecordChances, chosen: BoolArray) -> SubgroupRisk:
    chances = found.chances[chosen]
    low, high = interval_by_cluster(chances, _numbered(found.clusters[chosen]))
    mean = float(chances.mean())
    return SubgroupRisk(name, len(chances), mean, min(low, mean), max(high, mean))


def _subgroups(column: CodedColumn, codes: AnyArray) -> list[tuple[str, BoolArray]]:
    """Names of subgroups and who is in them; small ones together, so that none can be told from the rest."""
    names, of_code = _declared(column)
    members = [(name, of_code[codes] == number) for number, name in enumerate(names)]
    members = sorted((one for one in members if one[1].any()), key=lambda one: int(one[1].sum()))
    small = [one for one in members if one[1].sum() < SMALLEST_SUBGROUP]
    shown = members[len(small) :]
    others = np.logical_or.reduce([chosen for _, chosen in small]) if small else None
    while others is not None and others.sum() < SMALLEST_SUBGROUP and shown:
        others = others | shown.pop(0)[1]
    return shown if others is None else [*shown, (OTHERS, others)]


def _declared(column: CodedColumn) -> tuple[list[str], IndexArray]:
    """Names of the subgroups that the schema declares, and the number of every code's subgroup."""
    if column.values is None:
        tree = column.hierarchy
        upper = np.arange(tree.n_leaves)
        while (below := tree.parent[upper] != tree.root).any():
            upper = np.where(below, tree.parent[upper], upper)
        nodes, of_code = np.unique(upper, return_inverse=True)
        return [tree.labels[node] for node in nodes], of_code
    attribute = column.attribute
    assert isinstance(attribute, Numeric)
    # by number: where the range was taken from the data, its ends are somebody's values
    names = [f"quarter {number} of the range" for number in range(1, PARTS + 1)]
    part = np.clip(np.floor(PARTS * (column.values - attribute.low) / attribute.width), 0, PARTS - 1)
    return [*names, MISSING], np.nan_to_num(part, nan=PARTS).astype(np.int64)


def _numbered(labels: IndexArray) -> IndexArray:
    return np.unique(labels, return_inverse=True)[1]
