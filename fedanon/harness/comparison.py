"""Ours beside others': a result set against a published table, or against another result set."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from fedanon.errors import ConfigError
from fedanon.harness.frames import WITHIN, matching, summary
from fedanon.harness.published import Published

#: after the coordinates
COLUMNS = ("measure", "published", "ours", "sd", "seeds", "difference", "relative", "tolerance", "within", "source")


def with_published(results: pd.DataFrame, published: Iterable[Published]) -> pd.DataFrame:
    """One row a published number: ours (mean over seeds), the difference, and whether it is within tolerance.

    ``within`` is empty where no tolerance is stated. A number we have not got is empty, and not within a tolerance.
    """
    tables = [_compare(summary(results[results["grid"] == entry.grid]), entry) for entry in published]
    if not tables:
        return pd.DataFrame()
    table = pd.concat(tables, ignore_index=True)
    place = [name for name in table.columns if name not in COLUMNS]
    return table.reindex(columns=[*place, *COLUMNS])


def _compare(ours: pd.DataFrame, published: Published) -> pd.DataFrame:
    absent = sorted(set(published.coordinates) - set(ours.columns))
    if absent:
        raise ConfigError(f"A published table has the column {', '.join(absent)}, the grid {published.grid!r} has not.")
    rows: list[dict[str, object]] = []
    for place in published.table.to_dict("records"):
        where = {str(name): place[name] for name in published.coordinates}
        here = matching(ours, where)
        given = [measure for measure in published.measures if not pd.isna(place[measure])]
        rows += [{"grid": published.grid, **where, **_row(here, m, place[m], published)} for m in given]
    return pd.DataFrame(rows)


def _row(here: pd.DataFrame, measure: str, value: float, published: Published) -> dict[str, object]:
    found = here[here["measure"] == measure]
    if len(found) > 1:
        raise ConfigError(f"A published number of {measure} stands for {len(found)} of ours in {published.grid!r}.")
    row: dict[str, object] = {"measure": measure, "source": published.source, "published": value}
    tolerance = published.tolerances.get(measure)
    if tolerance is not None:
        row |= {"tolerance": str(tolerance), "within": False}
    if not len(found):
        return row
    ours = float(found["mean"].iloc[0])
    row |= {"ours": ours, "sd": found["sd"].iloc[0], "seeds": int(found["n"].iloc[0])}
    row |= {"difference": ours - value, "relative": (ours - value) / abs(value) if value else float("nan")}
    return row | ({} if tolerance is None else {"within": tolerance.allows(value, ours)})


def between(ours: pd.DataFrame, theirs: pd.DataFrame, *, tolerance: float = 0.0) -> pd.DataFrame:
    """Places of two result sets whose numbers differ by more than a share ``tolerance``, or that only one of them has.

    Both are means over their seeds.
    """
    left, right = summary(ours), summary(theirs)
    place = [n for n in left.columns if n in right.columns and n not in (*WITHIN, "mean", "sd", "n", "low", "high")]
    both = left[[*place, "mean"]].merge(
        right[[*place, "mean"]], on=place, how="outer", suffixes=("_ours", "_theirs"), indicator="in"
    )
    both["in"] = both["in"].map({"left_only": "ours only", "right_only": "theirs only", "both": "both"})
    difference = (both["mean_ours"] - both["mean_theirs"]).abs()
    differs = difference > tolerance * both["mean_theirs"].abs()
    return both[differs | (both["in"] != "both")].reset_index(drop=True)
