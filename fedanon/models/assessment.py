"""A model in detail, by rows that are all at hand: is it right as often as it says, and for whom does it work.

Of two classes, rows are put into ten bins of equal width by the predicted probability; of several, by that of the
class that is named; of a number, into ten bins of equally many rows by the prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedanon.data.schema import Categorical, Schema
from fedanon.data.table import Table, missing_mask, texts
from fedanon.errors import ConfigError
from fedanon.models.outcome import REGRESSION, Outcome
from fedanon.models.outcome_scores import all_scores
from fedanon.models.target import in_units
from fedanon.types import AnyArray, FloatArray, IndexArray

N_BINS = 10
#: fewer rows say little, and may say it about someone
MIN_GROUP = 50
#: the group of rows without a value
NO_VALUE = "missing"


def calibration(outcome: Outcome, truth: AnyArray, predicted: FloatArray, schema: Schema) -> dict[str, Any]:
    """What was predicted beside what was found, bin by bin, and for classes the expected calibration error.

    The error is the mean distance of the two, weighted by the rows of the bins (Naeini, Cooper & Hauskrecht 2015). A
    number has no such error: its bins are in units of the column.
    """
    said, found = _said_and_found(outcome, truth, predicted, schema)
    bins = _bins(outcome, said)
    rows = [np.flatnonzero(bins == number) for number in range(N_BINS)]
    entries = [
        {"n": len(inside), "predicted": float(said[inside].mean()), "observed": float(found[inside].mean())}
        for inside in rows
        if len(inside)
    ]
    if outcome == REGRESSION:
        return {"bins": entries}
    error = sum(entry["n"] * abs(entry["predicted"] - entry["observed"]) for entry in entries) / max(len(said), 1)
    return {"ece": float(error), "bins": entries}


def _said_and_found(
    outcome: Outcome, truth: AnyArray, predicted: FloatArray, schema: Schema
) -> tuple[FloatArray, FloatArray]:
    """The predicted probability and whether it came true, or the predicted number and the true one."""
    if outcome == REGRESSION:
        return in_units(predicted, schema), in_units(np.asarray(truth, dtype=np.float64), schema)
    if outcome.kind == "multiclass":
        return predicted.max(axis=1), (predicted.argmax(axis=1) == truth).astype(np.float64)
    return predicted, np.asarray(truth, dtype=np.float64)


def _bins(outcome: Outcome, said: FloatArray) -> IndexArray:
    if outcome == REGRESSION:
        ranks = np.argsort(np.argsort(said, kind="stable"), kind="stable")
        return np.asarray(ranks * N_BINS // max(len(said), 1), dtype=np.int64)
    return np.minimum((said * N_BINS).astype(np.int64), N_BINS - 1)


# ---- subgroups -----------------------------------------------------------------------------------


def group_labels(table: Table, column: str) -> AnyArray:
    """The value of a categorical column for every row.

    Raises
    ------
    ConfigError
        If the column is of another kind: a number or a text would name people.
    """
    schema = table.schema
    known = [a.name for a in schema.attributes if isinstance(a, Categorical) and a.name != schema.target]
    if column not in known:
        raise ConfigError(f"Subgroups need a categorical column, not {column!r}. There are: {', '.join(known)}.")
    values = table.frame[column]
    return np.where(missing_mask(values, schema), NO_VALUE, texts(values).astype(object).to_numpy())


def subgroup_scores(
    outcome: Outcome,
    truth: AnyArray,
    predicted: FloatArray,
    groups: AnyArray,
    *,
    unit: float = 1.0,
    min_group: int = MIN_GROUP,
) -> tuple[list[dict[str, Any]], int]:
    """The scores of every group of at least ``min_group`` rows, in order of name, and how many groups are smaller."""
    names, places = np.unique(groups.astype(str), return_inverse=True)
    sizes = np.bincount(places, minlength=len(names))
    shown = [
        {"group": str(name), "n": int(size), **_finite(outcome, truth[places == i], predicted[places == i], unit)}
        for i, (name, size) in enumerate(zip(names, sizes, strict=True))
        if size >= min_group
    ]
    return shown, int((sizes < min_group).sum())


def _finite(outcome: Outcome, truth: AnyArray, predicted: FloatArray, unit: float) -> dict[str, float]:
    scores = all_scores(outcome, truth, predicted, unit)
    return {name: value for name, value in scores.items() if np.isfinite(value)}


def subgroups(
    outcome: Outcome,
    truth: AnyArray,
    predicted: FloatArray,
    tables: Sequence[Table],
    columns: Sequence[str],
    *,
    unit: float = 1.0,
    min_group: int = MIN_GROUP,
) -> dict[str, dict[str, Any]]:
    """:func:`subgroup_scores` by each of some columns of the tables whose rows were predicted, in their order."""
    found: dict[str, dict[str, Any]] = {}
    for column in columns:
        labels = np.concatenate([group_labels(table, column) for table in tables])
        shown, left_out = subgroup_scores(outcome, truth, predicted, labels, unit=unit, min_group=min_group)
        found[column] = {"groups": shown, "smaller_groups": left_out, "min_group": min_group}
    return found
