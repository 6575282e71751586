"""Glossary: what the metrics mean, in plain language, for readers who did not choose them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from fedanon.metrics import METRICS

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True)
class Meaning:
    """A metric as readers see it: its title, one or two sentences, and which direction is good."""

    title: str
    text: str
    better: Better


_LOSS_AND_RISK = {
    "ncp": Meaning(
        "Information loss (NCP)",
        "How much detail the published quasi-identifiers lost, from 0 (exact values) to 1 (nothing left): the width of "
        "what is published over the width of the whole range, averaged over cells.",
        "lower",
    ),
    "linkage_expected_share": Meaning(
        "Linked records (share)",
        "Share of released records that an attacker links to the right person, if the attacker knows the exact "
        "quasi-identifiers of everyone and picks the nearest record, at random among equally near ones.",
        "lower",
    ),
    "k_reached": Meaning(
        "Smallest class",
        "People in the smallest group that cannot be told apart: the k that was actually reached.",
        "higher",
    ),
    "truthfulness": Meaning(
        "True cells",
        "Share of published cells that still hold the original value; the others are misleading.",
        "higher",
    ),
    "rebuilt": Meaning(
        "Rebuilt cells (share)",
        "Share of a node's original cells that are right in rows rebuilt from its trees, after rebuilt and true rows "
        "are matched as well as possible. Guessed rows match many cells, too: compare it with those guessed.",
        "lower",
    ),
    "dld": Meaning(
        "Records linked by their numbers (DLD)",
        "Share of the released records whose nearest original, by standardized numbers, is their own.",
        "lower",
    ),
    "il2": Meaning(
        "Mean deviation of numbers (IL2)",
        "How far published numbers are from the original ones, in units of 1.41 standard deviations of their column.",
        "lower",
    ),
    "suppressed_share": Meaning("Suppressed rows", "Share of people about whom nothing is published.", "lower"),
}

_SCORES = {
    "accuracy": Meaning(
        "Accuracy",
        "Share of correct predictions. Always predicting the most common class scores that class's share, so an "
        "accuracy at that share means that nothing was learned; read it together with the AUC.",
        "higher",
    ),
    "auc": Meaning(
        "AUC",
        "Chance that the model ranks a positive case above a negative one: 0.5 is guessing, 1 is perfect.",
        "higher",
    ),
    "auc_pooled": Meaning(
        "AUC, all test rows",
        "Chance that the model ranks a positive case above a negative one (0.5 is guessing, 1 is perfect), over the "
        "test rows of all nodes together. A real federation cannot pool them; a simulation can.",
        "higher",
    ),
    "auc_client_mean": Meaning(
        "AUC, mean over nodes",
        "The AUC on every node's own test rows, averaged: what a federation can know.",
        "higher",
    ),
    "cpu_seconds": Meaning(
        "computing time (s)",
        "Seconds of one core for a release, verification included; for a partition, the mean over the nodes.",
        "lower",
    ),
    "log_loss": Meaning(
        "Log loss", "How wrong the predicted probabilities are; confident errors cost the most. 0 is perfect.", "lower"
    ),
    "brier": Meaning("Brier score", "Mean squared distance of the predicted probability from the outcome.", "lower"),
    "ece": Meaning(
        "Calibration error",
        "Mean distance between the predicted probability and the share of cases in which it came true, over ten bins.",
        "lower",
    ),
    "auc_weighted_pooled": Meaning(
        "AUC by class, weighted, all test rows",
        "The AUC of every class against the others, weighted by the rows of the class.",
        "higher",
    ),
    "f1_macro_pooled": Meaning("F1, all classes, all test rows", "Mean of the F1 of all classes.", "higher"),
    "mae": Meaning("Mean absolute error", "How far predictions are off on average, in units of the column.", "lower"),
    "rmse": Meaning("Root mean squared error", "Like the mean error, but large errors count for more.", "lower"),
    "r2": Meaning(
        "R2",
        "Share of the variance that is explained: 0 is always predicting the mean, 1 is perfect, less than 0 is worse.",
        "higher",
    ),
    "precision": Meaning("Precision", "Share of true positives among the cases predicted positive.", "higher"),
    "recall": Meaning("Recall", "Share of the positive cases that are found.", "higher"),
    "f1": Meaning("F1", "Harmonic mean of precision and recall of the positive class.", "higher"),
    "precision_macro": Meaning("Precision, both classes", "Mean of the precision of both classes.", "higher"),
    "recall_macro": Meaning("Recall, both classes", "Mean of the recall of both classes.", "higher"),
    "f1_macro": Meaning("F1, both classes", "Mean of the F1 of both classes.", "higher"),
    "n_train": Meaning("Training rows", "Rows the models were trained on, over all nodes.", "neither"),
    "n_test": Meaning("Test rows", "Rows the models were tested on, over all nodes.", "neither"),
}

#: suffixes of names: what they add to the title and to the text
_SUFFIXES = (
    (
        r"_last(\d+)$",
        "last {0} rounds",
        "Mean over the evaluated rounds among the last {0}, since single rounds fluctuate.",
    ),
    (
        r"_trained$",
        "nodes of the round",
        "Of the nodes that trained in the round alone, as the thesis plots it.",
    ),
    (r"_first$", "first round", "After the first round."),
    (r"_swing$", "swing", "Standard deviation from round to round over the last 20 rounds."),
    (r"_recoded$", "recoded rows", "On test rows generalized like the training rows, instead of raw ones."),
    (r"_holdout$", "holdout", "On rows that no node has and that no choice was based on, scored once at the end."),
)


def meaning(name: str) -> Meaning:
    """Return the meaning of a metric; an unknown one is called by its name."""
    base, suffix = _divided(name)
    if suffix is not None:
        whole = meaning(base)
        return Meaning(f"{whole.title}, {suffix.title}", suffix.text, whole.better)
    if name in _LOSS_AND_RISK or name in _SCORES:
        return (_LOSS_AND_RISK | _SCORES)[name]
    if name in METRICS:
        metric = METRICS[name]
        return Meaning(metric.title, _plain(metric.help), metric.better)
    if name.startswith("groups "):
        return Meaning(name, "Number of groups the elbow method finds in this column.", "neither")
    return Meaning(name, "", "neither")


def glossary(names: Iterable[str]) -> list[tuple[str, Meaning]]:
    """Return the meanings of metrics by name, then those of suffixes, each once."""
    bases: dict[str, Meaning] = {}
    suffixes: dict[str, Meaning] = {}
    for name in names:
        base, suffix = _divided(name)
        while suffix is not None:
            suffixes["…" + name[len(base) :]] = suffix
            name = base
            base, suffix = _divided(name)
        bases[base] = meaning(base)
    return [*bases.items(), *((name, replace(m, title=f"…, {m.title}")) for name, m in suffixes.items())]


def _divided(name: str) -> tuple[str, Meaning | None]:
    """Return a name without its last suffix, and what the suffix means."""
    for pattern, title, text in _SUFFIXES:
        found = re.search(pattern, name)
        if found and name not in METRICS:
            return name[: found.start()], Meaning(
                title.format(*found.groups()), text.format(*found.groups()), "neither"
            )
    return name, None


def _plain(text: str) -> str:
    """Return a docstring's sentence without markup; a formula at its end is left to the documentation."""
    text = re.sub(r", :math:`[^`]*`", "", text)
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)
