"""`fedanon tour`: means with intervals, and differences that cannot be told from zero."""

from __future__ import annotations

from typing import Any

import pytest

from fedanon.cli.tour import METRICS, _texts, summarize


def runs(method: str, k: int | None, scores: list[float]) -> list[dict[str, Any]]:
    place = {"dataset": "d", "method": method, "k": k, "model": "lr", "settings": {}}
    return [place | dict.fromkeys(METRICS, 0.5) | {"auc_pooled": score} for score in scores]


def test_a_difference_is_told_by_its_own_interval() -> None:
    """Seed by seed: noise that all methods share is no noise of their difference (Student's t by hand)."""
    shared = [0.80, 0.82, 0.84]
    original = runs("original", None, shared)
    rows = summarize(
        original + runs("a", 5, [s - 0.01 for s in shared]) + runs("b", 5, [0.80 - 0.01, 0.82 + 0.012, 0.84 - 0.004])
    )
    first, a, b = rows
    assert first["auc_pooled"] == pytest.approx(0.82)
    assert first["half_widths"]["auc_pooled"] == pytest.approx(4.3027 * 0.02 / 3**0.5, rel=1e-4)
    assert "auc_lost" not in first
    assert (a["auc_lost"], a["told_apart"]) == (pytest.approx(0.01), True)
    assert b["told_apart"] is False
    assert _texts(b)["AUC lost"].endswith("(none seen)")
    assert "none seen" not in _texts(a)["AUC lost"]


def test_one_seed_has_no_interval() -> None:
    _, row = summarize(runs("original", None, [0.8]) + runs("a", 5, [0.7]))
    assert (row["told_apart"], row["half_widths"]["auc_lost"]) == (None, None)
    assert _texts(row)["AUC"] == "0.700"
