"""Guidance by the target: what a model needs is generalized least.

Methods that build classes compare records by the detail lost if they are published together. With ``guide = "target"``
that detail is weighed by what it says about the target: a ridge regression of the target on all quasi-identifiers
gives the effect of every value (on the log-odds of a class), of which a column keeps the share that chance does not
explain, and

- the span of a numeric column is how much its effect changes along the way;
- the span of a node of a taxonomy is how much the effects of two values below it differ, on average.

A small share of the plain span remains, so that among classes as good for the target the narrower ones win. Only the
grouping is guided: cells are the smallest truthful ones of the groups, and k and what else is claimed is verified as
ever, since no such claim depends on how classes were chosen. The effects themselves are not published. Yet classes that
were chosen by the target say something about it beyond their rows, as those of any method do that looks at it: where
that matters, require l-diversity or t-closeness of the target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from fedanon.anonymizers.base import KAnonymizer
from fedanon.data.coded_column import CodedColumn
from fedanon.data.schema import Categorical, Numeric
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.types import FloatArray, IndexArray

#: share of the plain span that remains in the guided one; chosen among .03, .1 and .3 on one split of adult.data
PLAIN = 0.03
#: penalty of the regression, in rows
RIDGE = 20.0
#: steps of Newton's method, and the least weight of a row in it
NEWTON_STEPS, LEAST_WEIGHT = 8, 1e-4
#: powers of a number that its effect is made of
DEGREE = 3


@dataclass(frozen=True, kw_only=True)
class GuidedAnonymizer(KAnonymizer):
    """Base of the methods whose classes can be guided by the target."""

    guide: Literal["none", "target"] = parameter(
        "none", help="'target' generalizes least what says most about the schema's target", optional=True
    )

    def view(self, table: Table) -> Table:
        """The table as classes are built from it: with guided spans if so asked."""
        return guided_table(table) if self.guide == "target" else table


def guided_table(table: Table) -> Table:
    """The same records, whose columns span as much as they say about the target; for grouping only.

    Raises
    ------
    ConfigError
        If the schema declares no target.
    """
    if table.schema.target is None:
        raise ConfigError("guide='target' needs a target: declare one in the schema.")
    effects = _effects(table)
    unit = max(max(float(np.abs(effect).max(initial=0.0)) for effect in effects), 1e-12)
    columns = [
        _guided_number(column, effect / unit)
        if column.values is not None
        else _guided_tree(column, effect / unit, codes)
        for column, effect, codes in zip(table.columns, effects, table.codes.T, strict=True)
    ]
    return replace(table, columns=tuple(columns))


# ---- Effects -------------------------------------------------------------------------------------


def _effects(table: Table) -> list[FloatArray]:
    """The effect of every code of every column on the target, codes x outputs; columns are centered."""
    designs = [_design(column) for column in table.columns]
    features = [design[codes] for design, codes in zip(designs, table.codes.T, strict=True)]
    means = [part.mean(axis=0) for part in features]
    ends = np.cumsum([design.shape[1] for design in designs]).tolist()
    places = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    x = np.concatenate([part - mean for part, mean in zip(features, means, strict=True)], axis=1)
    assert table.schema.target is not None
    numeric = isinstance(table.schema[table.schema.target], Numeric)
    fits = [(_fit_linear if numeric else _fit_log_odds)(x, output) for output in _outputs(table).T]
    return [
        (design - mean)
        @ np.column_stack(
            [_share_beyond_chance(x[:, at], slopes[at], cov[at, at]) * slopes[at] for slopes, cov in fits]
        )
        for design, mean, at in zip(designs, means, places, strict=True)
    ]


def _fit_linear(x: FloatArray, output: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slopes of a ridge regression, and how they vary by chance."""
    gram = x.T @ x
    inverse = np.linalg.inv(gram + np.diag(_penalty(x)))
    slopes = inverse @ (x.T @ (output - output.mean()))
    left = np.square(output - output.mean() - x @ slopes).mean()
    return slopes, left * inverse @ gram @ inverse


def _fit_log_odds(x: FloatArray, output: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slopes of a logistic ridge regression by Newton's method, and how they vary by chance."""
    share = (output.sum() + 0.5) / (len(output) + 1)
    start, slopes = np.log(share / (1 - share)), np.zeros(x.shape[1])
    for _ in range(NEWTON_STEPS):
        likely = 0.5 * (1 + np.tanh(0.5 * (start + x @ slopes)))
        weight = np.maximum(likely * (1 - likely), LEAST_WEIGHT)
        penalty = _penalty(x) * weight.mean()
        gram = (x * weight[:, None]).T @ x
        inverse = np.linalg.inv(gram + np.diag(penalty))
        slopes = slopes + inverse @ (x.T @ (output - likely) - penalty * slopes)
        start += (output - likely).sum() / weight.sum()
    return slopes, inverse @ gram @ inverse


def _penalty(x: FloatArray) -> FloatArray:
    """RIDGE rows of every feature."""
    return np.asarray(RIDGE * np.maximum(x.var(axis=0), 1e-9) + 1e-6)


def _share_beyond_chance(x: FloatArray, slopes: FloatArray, covariance: FloatArray) -> float:
    """How much of the effects of a column is not explained by chance, from 0 to 1 (James & Stein 1961)."""
    found = np.square(x @ slopes).mean()
    by_chance = ((x @ covariance) * x).sum(axis=1).mean()
    return max(0.0, 1 - float(by_chance) / max(float(found), 1e-12))


def _outputs(table: Table) -> FloatArray:
    """The target as numbers: its values, or one column per class (of two, one)."""
    name = table.schema.target
    assert name is not None
    if isinstance(table.schema[name], Numeric):
        values = pd.to_numeric(table.frame[name], errors="coerce").to_numpy(dtype=np.float64)
        return np.asarray(np.where(np.isnan(values), np.nanmean(values), values)[:, None])
    codes, classes = pd.factorize(table.frame[name].astype("string"), sort=True)
    each: FloatArray = (codes[:, None] == np.arange(len(classes))).astype(np.float64)
    return each[:, 1:] if len(classes) == 2 else each


def _design(column: CodedColumn) -> FloatArray:
    """The features of every code: powers of a number, one per leaf of a taxonomy."""
    if column.values is None:
        return np.eye(column.size)
    attribute = column.attribute
    assert isinstance(attribute, Numeric)
    place = 2 * (column.values - attribute.low) / attribute.width - 1
    missing = np.isnan(place)
    powers = np.nan_to_num(place)[:, None] ** np.arange(1, DEGREE + 1)
    return np.asarray(np.concatenate([powers, missing[:, None]], axis=1), dtype=np.float64)


# ---- Guided columns ------------------------------------------------------------------------------


def _guided_number(column: CodedColumn, effect: FloatArray) -> CodedColumn:
    """The column with values at how far the effect has moved on the way to them."""
    attribute, values = column.attribute, column.values
    assert isinstance(attribute, Numeric)
    assert values is not None
    known = ~np.isnan(values)
    ways = np.linalg.norm(np.diff(effect[known], axis=0), axis=1)
    moved = np.concatenate([[0.0], np.cumsum(ways)])
    plain = (values[known] - values[known][0]) / attribute.width if known.any() else moved[:0]
    guided = np.full(len(values), np.nan)
    guided[known] = (1 - PLAIN) * moved[: int(known.sum())] + PLAIN * plain
    ends = None if column.ends is None else np.interp(column.ends, values[known], guided[known])
    # a range of 1, so that spans are not scaled again
    return replace(column, attribute=replace(attribute, low=0.0, high=1.0, integer=False), values=guided, ends=ends)


def _guided_tree(column: CodedColumn, effect: FloatArray, codes: IndexArray) -> CodedColumn:
    """The column with nodes that cover as much as two values below them, as common as they are, differ in effect."""
    tree, attribute = column.hierarchy, column.attribute
    assert isinstance(attribute, Categorical)
    counts = np.bincount(codes, minlength=tree.n_leaves) + 1e-3
    spans = np.zeros(len(tree.labels))
    for node in range(tree.n_leaves, len(tree.labels)):
        below = slice(int(tree.first[node]), int(tree.last[node]) + 1)
        share, here = counts[below] / counts[below].sum(), effect[below]
        apart = np.square(here[:, None] - here[None]).sum(axis=2).mean(axis=1)
        spans[node] = np.sqrt(share @ apart)
    for node in range(len(tree.labels) - 1):  # children are numbered before their parents
        spans[tree.parent[node]] = max(spans[tree.parent[node]], spans[node])
    guided = (1 - PLAIN) * spans + PLAIN * tree.leaf_loss
    return replace(column, attribute=replace(attribute, hierarchy=tree.with_shares(guided)))
