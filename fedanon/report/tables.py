"""The tables of a grid: means, differences from the baseline, published numbers next to ours, and column statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from fedanon.harness.comparison import COORDINATES
from fedanon.harness.frames import against_baseline, summary
from fedanon.harness.tasks.masking import OF, STATISTICS
from fedanon.report.document import Block, Details, Paragraph, TableBlock, TableCell, TableColumn, Tone
from fedanon.report.glossary import meaning
from fedanon.report.grouping import ALL_DATA, LABELING, LOSS, RANKING, RISK, first_of, several, varying
from fedanon.report.numbers import NOTHING, cell, number, signed, with_interval

#: a grid with at most this many metrics shows them all
FEW = 7
_STATISTICS = ("measure", "mean", "sd", "n", "low", "high")


def key_metrics(frame: pd.DataFrame) -> list[str]:
    """Return the metrics readers look for: one of loss, one of risk, the main scores; for a small grid, all."""
    present = list(dict.fromkeys(frame["measure"]))
    if len(present) <= FEW:
        return present
    ranking = [name for name in RANKING if name in present][:2]
    others = [first_of(frame, choice) for choice in (LOSS, RISK, LABELING)]
    wanted = {"k_reached", *others, *ranking, "log_loss"}
    order = ("k_reached", *LOSS, *RISK, *RANKING, *LABELING, "log_loss")
    return [name for name in order if name in wanted and name in present] or present[:FEW]


def means_table(caption: str, frame: pd.DataFrame, metrics: Sequence[str]) -> TableBlock:
    """Return one row per group, one column per metric, with cells such as 0.824 ± 0.003."""
    return _wide(caption, frame, summary(frame[frame["measure"].isin(metrics)]), metrics, _mean)


def differences_table(caption: str, frame: pd.DataFrame, baseline: str, metrics: Sequence[str]) -> TableBlock | None:
    """Return differences from the baseline, seed by seed, with an arrow where the interval excludes 0."""
    # the series is another name of the method, so it can be restored from the label
    names = frame.drop_duplicates(["label", "settings"]).set_index(["label", "settings"])["series"]
    lost = against_baseline(frame[frame["measure"].isin(metrics)].drop(columns="series"), baseline)
    if lost.empty:
        return None
    lost = lost.join(names, on=["label", "settings"])
    return _wide(caption, lost, summary(lost), metrics, _difference)


def _wide(caption: str, frame: pd.DataFrame, table: pd.DataFrame, metrics: Sequence[str], show: Any) -> TableBlock:
    groups = ["series", *(["k"] if frame["k"].notna().any() else []), *varying(frame)]
    if set(frame["series"]) == {ALL_DATA} and len(groups) > 1:
        groups.remove("series")
    shown = [name for name in metrics if name in set(table["measure"])]
    seeds = several(table["n"])
    columns = [TableColumn(_title(place), place == "k") for place in groups]
    columns += [TableColumn(meaning(name).title, True, name) for name in shown]
    rows = []
    coordinates = [name for name in table.columns if name not in _STATISTICS]
    for _, part in table.groupby(coordinates, dropna=False, sort=False):
        by_name = {row["measure"]: row for row in part.to_dict("records")}
        first = part.iloc[0]
        row = [_place(first[place]) for place in groups]
        row += [show(by_name[name]) if name in by_name else TableCell(NOTHING) for name in shown]
        rows.append((*row, cell(int(part["n"].max()))) if seeds else tuple(row))
    columns += [TableColumn("Seeds", True)] if seeds else []
    return TableBlock(caption, tuple(columns), tuple(rows))


def _title(place: str) -> str:
    return {"series": "Method", "label": "Method", "k": "k", "dataset": "Data", "model": "Model"}.get(
        place, place.replace("_", " ").capitalize()
    )


def _place(value: Any) -> TableCell:
    if pd.isna(value):
        return TableCell(NOTHING)
    return cell(value) if isinstance(value, (int, float)) or hasattr(value, "dtype") else TableCell(str(value))


def _mean(row: dict[str, Any]) -> TableCell:
    return TableCell(with_interval(row["mean"], row["high"] - row["mean"]), row["mean"])


def _difference(row: dict[str, Any]) -> TableCell:
    text = signed(with_interval(row["mean"], row["high"] - row["mean"]))
    tone = _tone(row)
    return TableCell(text + {"good": " ▲", "bad": " ▼", "": ""}[tone], row["mean"], tone)


def _tone(row: dict[str, Any]) -> Tone:
    """Return good or bad if the interval excludes 0 and the metric has a good direction."""
    if not row["n"] > 1 or row["low"] <= 0 <= row["high"]:
        return ""
    better = meaning(row["measure"]).better
    return "" if better == "neither" else "good" if (row["mean"] > 0) == (better == "higher") else "bad"


def comparison_table(caption: str, comparison: pd.DataFrame) -> TableBlock:
    """Return published number, ours, difference, tolerance and verdict."""
    groups = [name for name in comparison.columns if name in COORDINATES and several(comparison[name])]
    columns = [TableColumn(_title(name), name == "k") for name in groups]
    columns += [
        TableColumn("Metric"),
        *(TableColumn(t, True) for t in ("Published", "Ours", "Difference", "Tolerance")),
    ]
    columns.append(TableColumn("Verdict"))
    rows = [(*(_place(row[name]) for name in groups), *_compared(row)) for row in comparison.to_dict("records")]
    return TableBlock(caption, tuple(columns), tuple(rows))


def _compared(row: dict[Any, Any]) -> tuple[TableCell, ...]:
    known = not pd.isna(row["difference"])
    relative = row["relative"]
    share = "" if pd.isna(relative) else f" ({signed(f'{100 * relative:.1f}')} %)"
    difference = TableCell(signed(number(row["difference"])) + share, row["difference"] if known else None)
    tolerance = NOTHING if pd.isna(row["tolerance"]) else str(row["tolerance"])
    numbers = (cell(row["published"]), cell(row["ours"]), difference, TableCell(tolerance))
    return TableCell(meaning(row["measure"]).title), *numbers, verdict(row)


def verdict(row: dict[Any, Any]) -> TableCell:
    """Say whether a published number is reproduced, by a word and a sign."""
    if pd.isna(row["ours"]):
        return TableCell("○ not computed")
    within = str(row["within"])
    return {"True": TableCell("✓ within", tone="good"), "False": TableCell("✗ beyond", tone="bad")}.get(
        within, TableCell(f"{NOTHING} not judged")
    )


# ---- statistics of masked columns ----------------------------------------------------------------

#: a statistic that differs from the original's by more than this share is marked
FAR = 0.1

_ABOUT = (
    "Main statistics of every column before and after. Gini is in percent (none if a value is negative); "
    "correlation is with the original column. ✓ within a tenth of the original's, ✗ further off."
)


def is_statistics(frame: pd.DataFrame) -> bool:
    """Return whether a grid is about columns."""
    return set(frame["task"]) == {"statistics"}


def statistics_blocks(frame: pd.DataFrame) -> tuple[Block, ...]:
    """Return one table per column; the first is open."""
    means = frame.groupby(["label", "measure"], sort=False)["value"].mean()
    columns = dict.fromkeys(name.partition(OF)[2] for name in frame["measure"])
    tables = [_table(column, means, list(dict.fromkeys(frame["label"]))) for column in columns]
    return Paragraph(_ABOUT), tables[0], *(Details(table.caption, (table,)) for table in tables[1:])


def _table(column: str, means: pd.Series, labels: list[str]) -> TableBlock:
    titles = (TableColumn("Method"), *(TableColumn(name[0].upper() + name[1:], True) for name in STATISTICS))
    original = {name: means.get((labels[0], f"{name}{OF}{column}")) for name in STATISTICS}
    rows = []
    for label in labels:
        values = {name: means.get((label, f"{name}{OF}{column}")) for name in STATISTICS}
        rows.append(
            (TableCell(label), *(_cell(values[name], original[name], label == labels[0]) for name in STATISTICS))
        )
    return TableBlock(f"Main statistics of {column}", titles, tuple(rows))


def _cell(value: float | None, original: float | None, is_original: bool) -> TableCell:
    if value is None:
        return TableCell(NOTHING)
    if is_original or original is None:
        return TableCell(number(value), value)
    tone: Tone = "good" if abs(value - original) <= FAR * abs(original) else "bad"
    return TableCell(f"{number(value)} {'✓' if tone == 'good' else '✗'}", value, tone)
