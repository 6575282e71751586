"""Labels of points: none covers another or a marker, at any density."""

from __future__ import annotations

import pytest

from fedanon.report.charts import Panel, Series
from fedanon.report.drawing import _figure_of


@pytest.mark.parametrize("step", [1.0, 0.2, 0.03])
def test_labels_do_not_overlap(step: float) -> None:
    lines = [
        Series(
            label=str(n),
            style=n,
            x=tuple(step * i + n * step / 4 for i in range(6)),
            y=tuple(step * i * (1 + n / 9) for i in range(6)),
            texts=("3", "5", "10", "20", "50", "100"),
        )
        for n in range(4)
    ]
    edge = Series(label="edge", style=5, x=(0.0, 10.0), y=(0.0, 10.0), form="points")
    canvas = _figure_of([Panel(title="", x_label="", y_label="", series=(*lines, edge), large=True)], titled=True)
    canvas.draw_without_rendering()
    boxes = [text.get_window_extent() for text in canvas.axes[0].texts]
    assert len(boxes) == 24 if step == 1.0 else boxes
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
