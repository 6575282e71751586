from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.models import scores

metrics = pytest.importorskip("sklearn.metrics")


@st.composite
def predictions(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(2, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    truth = rng.integers(0, 2, n)
    truth[:2] = 0, 1
    # few distinct values, so that ties are common
    return truth, rng.integers(0, draw(st.sampled_from([2, 5, 1000])), n) / 1000


@given(predictions())
def test_like_sklearn(case: tuple[np.ndarray, np.ndarray]) -> None:
    truth, p = case
    labels = (p > 0.002).astype(int)
    ours = scores.classification_scores(truth, labels, p)
    assert ours["auc"] == pytest.approx(metrics.roc_auc_score(truth, p))
    assert ours["log_loss"] == pytest.approx(metrics.log_loss(truth, p))
    assert ours["brier"] == pytest.approx(metrics.brier_score_loss(truth, p))
    assert ours["accuracy"] == pytest.approx(metrics.accuracy_score(truth, labels))
    for name, theirs in (("precision", "precision_score"), ("recall", "recall_score"), ("f1", "f1_score")):
        score = getattr(metrics, theirs)
        assert ours[name] == pytest.approx(score(truth, labels, zero_division=0))
        assert ours[f"{name}_macro"] == pytest.approx(score(truth, labels, average="macro", zero_division=0))


def test_auc_of_one_class_is_nan() -> None:
    assert np.isnan(scores.auc(np.ones(3), np.arange(3)))
