"""Findings: sentences about an experiment whose numbers are computed from its results and whose relations are checked.

A finding of a TOML file is a text with expressions in braces, names for intermediate values, and relations that must
hold::

    [[finding]]
    text = "GFKMC loses most at {count(worst)} of {size(worst)} values of k ({where(worst)})."
    let = { worst = 'at("ncp", label="GFKMC") > at("ncp", label="Mondrian")' }
    holds = ["count(worst) > 0"]

Expressions know numbers, names, arithmetic, comparisons and the functions of this file, nothing else: a result set that
somebody sends can be looked at without running what they wrote. Behind a colon stands how a number is shown: ``{x:3}``
three decimals as in .671, ``{x:1%}`` per cent with one, ``{x:,}`` a whole number.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fedanon.errors import ConfigError
from fedanon.harness.comparison import COLUMNS
from fedanon.harness.frames import WITHIN, against_baseline, matching, summary

#: columns of a summary or a comparison that are no place
NUMBERS = ("measure", "mean", "sd", "n", "low", "high")
PLACEHOLDER = re.compile(r"\{([^{}]+?)(?::(,|\d+%?))?\}")
#: a number typed into a sentence: a decimal, or a percentage; behind '=' it is a setting, such as t = .2
TYPED = re.compile(r"(?<![\d.])(?<!= )(?<!= 0)(\d*\.\d+|\d+\s?%)")


@dataclass(frozen=True)
class StatedFinding:
    """A sentence with expressions, names for values they share, and relations that must hold."""

    text: str
    let: Mapping[str, str] = field(default_factory=dict)
    holds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evaluated:
    """A finding with its numbers filled in; ``failed`` lists the relations that do not hold."""

    text: str
    failed: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every relation holds."""
        return not self.failed

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"text": self.text, "holds": self.holds, "failed": list(self.failed)}


def read_finding(entry: Mapping[str, Any]) -> StatedFinding:
    """A finding from TOML; its expressions are parsed, so a misspelled function is reported before anything runs."""
    unknown = sorted(set(entry) - {"text", "let", "holds"})
    if unknown or not isinstance(entry.get("text"), str):
        raise ConfigError(f"a finding has a text, let and holds{f', not {unknown[0]}' if unknown else ''}.")
    holds = entry.get("holds", [])
    found = StatedFinding(
        " ".join(entry["text"].split()),
        {str(name): str(value) for name, value in entry.get("let", {}).items()},
        tuple([holds] if isinstance(holds, str) else holds),
    )
    asked = [shown for shown, _ in PLACEHOLDER.findall(found.text)]
    if not asked and not found.holds:
        raise ConfigError(f"the finding '{found.text[:40]}...' computes nothing; put it among the remarks.")
    typed = TYPED.search(PLACEHOLDER.sub("", found.text))
    if typed:
        raise ConfigError(f"the finding '{found.text[:40]}...' holds the typed number {typed.group()}; compute it.")
    names: set[str] = set()
    for name, expression in found.let.items():
        _check(_parse(expression), names)
        names.add(name)
    for expression in (*asked, *found.holds):
        _check(_parse(expression), names)
    return found


def read_remark(text: str) -> str:
    """A sentence that explains and states no number."""
    typed = TYPED.search(text)
    if typed:
        raise ConfigError(f"the remark '{text[:40]}...' holds the number {typed.group()}; make it a [[finding]].")
    return " ".join(text.split())


def evaluate_findings(
    findings: Sequence[StatedFinding], results: pd.DataFrame, comparison: pd.DataFrame, baseline: str = ""
) -> list[Evaluated]:
    """Fill in the numbers of findings and check their relations; what cannot be computed does not hold."""
    numbers = ResultNumbers(results, comparison, baseline)
    return [_evaluate(finding, numbers) for finding in findings]


def _evaluate(finding: StatedFinding, numbers: ResultNumbers) -> Evaluated:
    names: dict[str, Any] = {}
    failed: list[str] = []

    def fill(found: re.Match[str]) -> str:
        try:
            return show(_value(_parse(found.group(1)), names, numbers), found.group(2))
        except ConfigError as error:
            failed.append(f"{found.group(1)}: {error}")
            return "?"

    for name, expression in finding.let.items():
        try:
            names[name] = _value(_parse(expression), names, numbers)
        except ConfigError as error:
            return Evaluated(PLACEHOLDER.sub("?", finding.text), (f"{name}: {error}",))
    for relation in finding.holds:
        try:
            truth = _value(_parse(relation), names, numbers)
        except ConfigError as error:
            failed.append(f"{relation}: {error}")
            continue
        if not isinstance(truth, bool | np.bool_):
            failed.append(f"{relation}: neither true nor false")
        elif not truth:
            failed.append(relation)
    return Evaluated(PLACEHOLDER.sub(fill, finding.text), tuple(failed))


def show(value: Any, spec: str | None = None) -> str:
    """A value as it stands in a sentence."""
    if isinstance(value, pd.Series):
        raise ConfigError(f"{len(value)} numbers stand where one is shown")
    if isinstance(value, str):
        return value
    if spec is None or spec == ",":
        if not float(value).is_integer():
            raise ConfigError("a number with decimals needs a format, such as {x:3}")
        return f"{int(value):,}"
    if spec.endswith("%"):
        return f"{100 * value:.{int(spec[:-1])}f} %"
    text = f"{value:.{int(spec)}f}"
    return re.sub(r"^(-?)0\.", r"\1.", text)


# ---- The numbers that expressions ask for --------------------------------------------------------


class ResultNumbers:
    """The results of an experiment, asked by metric and place.

    A place left open by ``where`` becomes the index of a series; where one place is left, the answer is a number.
    """

    def __init__(self, results: pd.DataFrame, comparison: pd.DataFrame, baseline: str) -> None:
        self.results, self.comparison, self.baseline = results, comparison, baseline

    def at(self, measure: str, **where: Any) -> Any:
        """Means over seeds."""
        return _series(self._summary(self.results, measure, where), "mean", where)

    def half(self, measure: str, **where: Any) -> Any:
        """Half the width of the 95 % interval of the mean over seeds."""
        table = self._summary(self.results, measure, where)
        return _series(table.assign(half=table["high"] - table["mean"]), "half", where)

    def sd(self, measure: str, **where: Any) -> Any:
        """Standard deviations between seeds."""
        return _series(self._summary(self.results, measure, where), "sd", where)

    def seeds(self, measure: str, **where: Any) -> Any:
        """How many seeds."""
        return _series(self._summary(self.results, measure, where), "n", where)

    def each(self, measure: str, **where: Any) -> Any:
        """The numbers of single seeds."""
        return _series(_chosen(self.results, measure, where).drop(columns="cell"), "value", where)

    def lost(self, measure: str, **where: Any) -> Any:
        """Means, seed by seed, of the baseline's number minus the one asked for."""
        return -_series(self._summary(self._differences, measure, where), "mean", where)

    def lost_half(self, measure: str, **where: Any) -> Any:
        """Half the width of the 95 % interval of what is lost."""
        table = self._summary(self._differences, measure, where)
        return _series(table.assign(half=table["high"] - table["mean"]), "half", where)

    def published(self, measure: str, **where: Any) -> Any:
        """Published numbers."""
        return _series(_chosen(self.comparison, measure, where), "published", where)

    def ours(self, measure: str, **where: Any) -> Any:
        """Our numbers at the places of the published ones."""
        return _series(_chosen(self.comparison, measure, where), "ours", where)

    def within(self, measure: str, **where: Any) -> Any:
        """Whether published numbers are met within the tolerance stated for them."""
        table = _chosen(self.comparison, measure, where)
        judged = table[table["within"].notna()]
        return _series(judged.assign(within=judged["within"].astype(str) == "True"), "within", where)

    @cached_property
    def _differences(self) -> pd.DataFrame:
        if not self.baseline:
            raise ConfigError("the experiment names no baseline")
        return against_baseline(self.results, self.baseline)

    def _summary(self, frame: pd.DataFrame, measure: str, where: Mapping[str, Any]) -> pd.DataFrame:
        return summary(_chosen(frame, measure, where))


ASKED = ("at", "half", "sd", "seeds", "each", "lost", "lost_half", "published", "ours", "within")


def _chosen(frame: pd.DataFrame, measure: str, where: Mapping[str, Any]) -> pd.DataFrame:
    frame = frame[frame["measure"] == measure] if len(frame) else frame
    for name, value in where.items():
        if name not in frame.columns:
            raise ConfigError(f"the results have no column {name}")
        listed = isinstance(value, list)
        frame = frame[frame[name].isin(value)] if listed else matching(frame, {name: value})
    if frame.empty:
        raise ConfigError(f"there is no {measure} at {', '.join(f'{k} = {v}' for k, v in where.items()) or 'all'}")
    return frame


def _series(table: pd.DataFrame, column: str, where: Mapping[str, Any]) -> Any:
    if len(table) == 1:
        return table[column].iloc[0]
    series = table.set_index(_open_places(table, column, where))[column].sort_index()
    if not series.index.is_unique:
        raise ConfigError("several numbers stand at one place")
    return series


def _open_places(table: pd.DataFrame, column: str, where: Mapping[str, Any]) -> list[str]:
    """The coordinates that the question leaves open; a label stands for its method and settings where it can."""
    fixed = {name for name, value in where.items() if not isinstance(value, list)}
    beside = {*NUMBERS, *WITHIN, *COLUMNS, "half", column} - ({"seed"} if column == "value" else set())
    found = [n for n in table.columns if n not in beside | fixed and len(table[n].unique()) > 1]
    if "label" in table.columns:
        shorter = [n for n in found if n not in ("method", "settings")]
        if shorter and not table.duplicated(shorter).any():
            return shorter
    return found or ["measure"]


# ---- Expressions ---------------------------------------------------------------------------------


def _every(values: Any) -> bool:
    return bool(np.all(values))


def _some(values: Any) -> bool:
    return bool(np.any(values))


def places(condition: Any) -> str:
    """The places where a condition holds; whole numbers that follow each other as runs: '2 to 21, 85'."""
    chosen = list(condition.index[condition.to_numpy(dtype=bool)])
    if not chosen:
        return "none"
    if not all(isinstance(one, int | np.integer) for one in chosen):
        return ", ".join(" ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in chosen)
    runs: list[list[int]] = []
    for one in chosen:
        follows = runs and one == runs[-1][-1] + 1
        runs[-1].append(one) if follows else runs.append([one])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


def listed(values: Any, spec: str) -> str:
    """Numbers one after the other, in the order of their places."""
    shown = [show(value, spec) for value in (values if isinstance(values, pd.Series | list) else [values])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def without(values: pd.Series, *texts: str) -> pd.Series:
    """Numbers at places without some words of their names, so that two variants can be set side by side."""

    def strip(name: Any) -> Any:
        if not isinstance(name, str):
            return name
        for text in texts:
            name = name.replace(text, "")
        return name

    index = values.index
    levels = [[strip(name) for name in index.get_level_values(i)] for i in range(index.nlevels)]
    named = pd.MultiIndex.from_arrays(levels, names=index.names)
    return values.set_axis(named).sort_index()


def over(values: pd.Series, level: str | list[str], how: str) -> pd.Series:
    """The least, largest, mean or median number of each place when all other coordinates are left out."""
    if how not in ("min", "max", "mean", "median"):
        raise ConfigError("over takes min, max, mean or median")
    reduced: pd.Series = getattr(values.groupby(level=level, dropna=False), how)()
    return reduced.sort_index()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "count": lambda condition: int(np.sum(condition)),
    "size": lambda values: int(np.size(values)),
    "all": _every,
    "any": _some,
    "min": lambda *values: float(np.min(np.concatenate([np.atleast_1d(v) for v in values]))),
    "max": lambda *values: float(np.max(np.concatenate([np.atleast_1d(v) for v in values]))),
    "mean": lambda values: float(np.mean(values)),
    "median": lambda values: float(np.median(values)),
    "total": lambda values: float(np.sum(values)),
    "abs": abs,
    "where": places,
    "best": lambda values: values.idxmin(),
    "worst": lambda values: values.idxmax(),
    "first": lambda condition: condition.index[condition.to_numpy(dtype=bool)][0],
    "listed": listed,
    "without": without,
    "over": over,
}
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def _parse(expression: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except SyntaxError:
        raise ConfigError(f"'{expression}' is not an expression") from None


def _check(node: ast.expr, names: set[str]) -> None:
    """Raise if an expression uses anything that is not of this small language."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = part.func.id if isinstance(part.func, ast.Name) else ast.unparse(part.func)
            if name not in FUNCTIONS and name not in ASKED:
                raise ConfigError(f"unknown function {name} in '{ast.unparse(node)}'")
        elif isinstance(part, ast.Name):
            if part.id not in names and part.id not in FUNCTIONS and part.id not in ASKED:
                raise ConfigError(f"unknown name {part.id} in '{ast.unparse(node)}'")
        elif not isinstance(part, _ALLOWED) and type(part) not in OPERATORS:
            raise ConfigError(f"'{ast.unparse(node)}' is more than an expression of a finding may be")


_ALLOWED = (
    *(ast.Constant, ast.List, ast.Load, ast.keyword),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.And, ast.Or, ast.Compare),
)


def _value(node: ast.AST, names: Mapping[str, Any], numbers: ResultNumbers) -> Any:
    def value(part: ast.AST) -> Any:
        return _value(part, names, numbers)

    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.List):
        return [value(part) for part in node.elts]
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)](value(node.operand))
    if isinstance(node, ast.BinOp):
        return _apply(node.op, value(node.left), value(node.right))
    if isinstance(node, ast.BoolOp):
        truths = [bool(value(part)) for part in node.values]
        return all(truths) if isinstance(node.op, ast.And) else any(truths)
    if isinstance(node, ast.Compare):
        return _compare([value(part) for part in (node.left, *node.comparators)], node.ops)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        function = getattr(numbers, node.func.id) if node.func.id in ASKED else FUNCTIONS[node.func.id]
        try:
            return function(*(value(part) for part in node.args), **{str(k.arg): value(k.value) for k in node.keywords})
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise ConfigError(f"{node.func.id} does not take what it is given ({type(error).__name__})") from None
    raise ConfigError(f"'{ast.unparse(node)}' is more than an expression of a finding may be")


def _compare(values: list[Any], signs: list[ast.cmpop]) -> Any:
    pairs = [_apply(sign, *values[i : i + 2]) for i, sign in enumerate(signs)]
    return pairs[0] if len(pairs) == 1 else all(bool(pair) for pair in pairs)


def _apply(sign: ast.AST, left: Any, right: Any) -> Any:
    if isinstance(left, pd.Series) and isinstance(right, pd.Series) and not left.index.equals(right.index):
        if _names(left.index) != _names(right.index):
            raise ConfigError("two series of different places cannot be compared")
        right = right.set_axis(left.index)  # whole numbers are of another type where some are missing
    return OPERATORS[type(sign)](left, right)


def _names(places: pd.Index) -> list[tuple[Any, ...]]:
    """The parts of each place; a missing one is equal to a missing one of any type."""
    split = [place if isinstance(place, tuple) else (place,) for place in places]
    return [tuple(None if pd.isna(part) else part for part in parts) for parts in split]
