"""Names of series: a label that stands for several settings says by which they differ."""

from __future__ import annotations

import pandas as pd
import pytest

from fedanon.report.grouping import with_series


def named(*settings: str | None) -> list[str]:
    frame = pd.DataFrame({"grid": "g", "label": "Laplace", "k": pd.array([5] * len(settings), dtype="Int64")})
    return list(with_series(frame.assign(settings=list(settings)))["series"])


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (['{"epsilon": 1.0}', '{"epsilon": 1.0}'], ["Laplace", "Laplace"]),
        (['{"e": 0.1, "s": "x"}', '{"e": 1.0, "s": "x"}'], ["Laplace, e 0.1", "Laplace, e 1.0"]),
        (['{"block_size": 5}', "{}"], ["Laplace, block size 5", "Laplace"]),
        ([None, '{"e": true}'], ["Laplace", "Laplace, e True"]),
    ],
)
def test_only_what_differs_is_named(settings: list[str | None], names: list[str]) -> None:
    assert named(*settings) == names


def test_tasks_without_a_method_have_none() -> None:
    frame = with_series(pd.DataFrame({"grid": ["g"], "label": [None]}))
    assert list(frame["series"]) == ["all data"]
