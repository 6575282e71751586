"""Every measure has words, and they are plain."""

from __future__ import annotations

from fedanon.metrics import METRICS
from fedanon.report.glossary import glossary, meaning


def test_every_metric_has_plain_words() -> None:
    for name in METRICS.names():
        assert meaning(name).text, name
        assert ":math:" not in meaning(name).text
        assert ":func:" not in meaning(name).text


def test_titles_of_metrics_differ() -> None:
    titles = [meaning(name).title for name in METRICS.names()]
    assert len(set(titles)) == len(titles)


def test_endings_are_told_once() -> None:
    found = dict(glossary(["auc_pooled", "auc_pooled_last20", "accuracy_recoded_last20", "accuracy_holdout"]))
    assert list(found) == ["auc_pooled", "accuracy", "…_last20", "…_recoded", "…_holdout"]
    assert meaning("accuracy_recoded_last20").title == "Accuracy, recoded rows, last 20 rounds"
    assert meaning("log_loss_last20").better == "lower"
