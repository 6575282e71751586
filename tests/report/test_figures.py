"""The figures of a grid."""

from __future__ import annotations

import pandas as pd

from fedanon.report.figures import figures_of
from fedanon.report.grouping import with_series


def test_a_measure_of_methods_without_k_has_no_place_across_k() -> None:
    """As in the thesis's grids: models are trained on the releases of methods without k only."""
    rows = [
        {"label": "mondrian", "k": 5, "measure": "ncp", "value": 0.1},
        {"label": "mondrian", "k": 10, "measure": "ncp", "value": 0.2},
        {"label": "das", "k": None, "measure": "ncp", "value": 0.3},
        {"label": "das", "k": None, "measure": "auc_pooled", "value": 0.8},
    ]
    frame = pd.DataFrame(rows).assign(grid="g", task="release", dataset="adult", settings="{}", seed=0, cell="c")
    frame = with_series(frame.astype({"k": "Int64"}))
    found = figures_of("g", frame, pd.DataFrame(), {"mondrian": 0, "das": 1})
    [across] = [figure for figure in found if figure.title == "What each k costs"]
    assert [len(panel.series) for panel in across.panels] == [2], "one panel, for the loss of both"
