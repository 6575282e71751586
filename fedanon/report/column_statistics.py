"""What is left of every masked column: one table a column, one row a method, the original first."""

from __future__ import annotations

import pandas as pd

from fedanon.harness.tasks.statistics import OF, STATISTICS
from fedanon.report.document import Block, Cell, Column, Details, Paragraph, Table, Tone
from fedanon.report.numbers import NOTHING, number

#: a statistic farther than this share from the original's is marked, as the seed's tables are coloured
FAR = 0.1

_ABOUT = (
    "Main statistics of every column before and after. Gini is in per cent (none where a value is negative); "
    "correlation is that with the original column. ✓ within a tenth of the original's, ✗ farther off."
)


def is_statistics(frame: pd.DataFrame) -> bool:
    """Whether a grid is about columns."""
    return set(frame["task"]) == {"statistics"}


def statistics_blocks(frame: pd.DataFrame) -> tuple[Block, ...]:
    """One table a column; the first is open."""
    means = frame.groupby(["label", "measure"], sort=False)["value"].mean()
    columns = dict.fromkeys(name.partition(OF)[2] for name in frame["measure"])
    tables = [_table(column, means, list(dict.fromkeys(frame["label"]))) for column in columns]
    return Paragraph(_ABOUT), tables[0], *(Details(table.caption, (table,)) for table in tables[1:])


def _table(column: str, means: pd.Series, labels: list[str]) -> Table:
    titles = (Column("Method"), *(Column(name[0].upper() + name[1:], True) for name in STATISTICS))
    original = {name: means.get((labels[0], f"{name}{OF}{column}")) for name in STATISTICS}
    rows = []
    for label in labels:
        values = {name: means.get((label, f"{name}{OF}{column}")) for name in STATISTICS}
        rows.append((Cell(label), *(_cell(values[name], original[name], label == labels[0]) for name in STATISTICS)))
    return Table(f"Main statistics of {column}", titles, tuple(rows))


def _cell(value: float | None, original: float | None, is_original: bool) -> Cell:
    if value is None:
        return Cell(NOTHING)
    if is_original or original is None:
        return Cell(number(value), value)
    tone: Tone = "good" if abs(value - original) <= FAR * abs(original) else "bad"
    return Cell(f"{number(value)} {'✓' if tone == 'good' else '✗'}", value, tone)
