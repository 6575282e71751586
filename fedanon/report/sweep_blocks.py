"""What a report shows of a sweep: of masked columns, risk against loss; of a federation, usefulness against risk."""

from __future__ import annotations

import pandas as pd

from fedanon.report.document import Block, Details, Figure
from fedanon.report.places import LOSS, RANKING, RISK, first_of
from fedanon.report.sweep_figures import by_method, overview, usefulness
from fedanon.report.sweep_points import points_of
from fedanon.report.sweep_tables import ranked_table, recommended_sentence, recommended_table

#: shown beside the first measure of risk
SECOND_RISK = "interval_risk"


def figures_of_sweep(name: str, frame: pd.DataFrame) -> list[Figure]:
    """The figures the measures allow."""
    risk, score, points = first_of(frame, RISK), first_of(frame, RANKING), points_of(frame)
    axes = _axes(frame)
    found = []
    if axes is not None:
        risks = [axes[0], *([SECOND_RISK] if SECOND_RISK in points else [])]
        found = [overview(name, points, risks, axes[1]), by_method(name, points, *axes)]
    elif risk is not None and score is not None:
        found = [usefulness(name, points, risk, score)]
    return [figure for figure in found if figure is not None]


def tables_of_sweep(name: str, frame: pd.DataFrame) -> list[Block]:
    """What is recommended, and all points ranked; nothing where risk and loss are not both measured, or models are."""
    axes = _axes(frame)
    if axes is None:
        return []
    points = points_of(frame)
    ranked = ranked_table(f"{name}: all points, ranked by the front they lie on", points, *axes)
    return [recommended_table(points, *axes), Details(f"{ranked.caption} ({len(ranked.rows)} rows)", (ranked,))]


def sentences_of_sweep(frame: pd.DataFrame) -> list[str]:
    """The recommendation in words."""
    axes = _axes(frame)
    return [] if axes is None else [recommended_sentence(str(frame["grid"].iloc[0]), points_of(frame), *axes)]


def _axes(frame: pd.DataFrame) -> tuple[str, str] | None:
    risk, loss = first_of(frame, RISK), first_of(frame, LOSS)
    if risk is None or loss is None or first_of(frame, RANKING) is not None:
        return None
    return risk, loss
