"""What the measures mean, in plain words, for readers who did not choose them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from fedanon.metrics import METRICS

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True)
class Meaning:
    """A measure for people: its title, one or two sentences, and which direction is good."""

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
        "quasi-identifiers of everyone and picks the nearest release, by chance among equally near ones.",
        "lower",
    ),
    "k_reached": Meaning(
        "Smallest class",
        "People in the smallest group that nobody can tell apart: the k that was really reached.",
        "higher",
    ),
    "truthfulness": Meaning(
        "True cells", "Share of published cells that still hold the original value; the others mislead.", "higher"
    ),
    "suppressed_share": Meaning("Suppressed rows", "Share of people of whom nothing is published.", "lower"),
}

_SCORES = {
    "accuracy": Meaning(
        "Accuracy",
        "Share of right predictions. Always naming the commonest class scores that class's share, so an accuracy at "
        "that share means that nothing was learned; read it beside the AUC.",
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
        "test rows of all clients together. A real federation cannot pool them; a simulation can.",
        "higher",
    ),
    "auc_client_mean": Meaning(
        "AUC, mean over clients",
        "The AUC on every client's own test rows, averaged: what a federation can know.",
        "higher",
    ),
    "cpu_seconds": Meaning(
        "computing time (s)",
        "Seconds one core worked on a release, verification included; of a partition, the mean over the clients.",
        "lower",
    ),
    "log_loss": Meaning(
        "Log loss", "How wrong the predicted probabilities are; being sure and wrong costs most. 0 is perfect.", "lower"
    ),
    "brier": Meaning("Brier score", "Mean squared distance of the predicted probability from what happened.", "lower"),
    "precision": Meaning("Precision", "Share of right ones among those predicted positive.", "higher"),
    "recall": Meaning("Recall", "Share of the positive cases that are found.", "higher"),
    "f1": Meaning("F1", "Harmonic mean of precision and recall of the positive class.", "higher"),
    "precision_macro": Meaning("Precision, both classes", "Mean of the precision of either class.", "higher"),
    "recall_macro": Meaning("Recall, both classes", "Mean of the recall of either class.", "higher"),
    "f1_macro": Meaning("F1, both classes", "Mean of the F1 of either class.", "higher"),
    "n_train": Meaning("Training rows", "Rows the models were trained on, over all clients.", "neither"),
    "n_test": Meaning("Test rows", "Rows the models were tested on, over all clients.", "neither"),
}

#: endings of names: what they add to the title and to the text
_ENDINGS = (
    (
        r"_last(\d+)$",
        "last {0} rounds",
        "Mean over the evaluated rounds among the last {0}, since single rounds swing.",
    ),
    (r"_recoded$", "recoded rows", "On test rows generalised like the training rows, instead of raw ones."),
    (r"_holdout$", "holdout", "On rows that no client has and on which nothing was chosen, scored once at the end."),
)


def meaning(name: str) -> Meaning:
    """What a measure is; an unknown one is called by its name."""
    base, ending = _divided(name)
    if ending is not None:
        whole = meaning(base)
        return Meaning(f"{whole.title}, {ending.title}", ending.text, whole.better)
    if name in _LOSS_AND_RISK or name in _SCORES:
        return (_LOSS_AND_RISK | _SCORES)[name]
    if name in METRICS:
        metric = METRICS[name]
        return Meaning(metric.title, _plain(metric.help), metric.better)
    if name.startswith("groups "):
        return Meaning(name, "Number of groups the elbow finds in this column.", "neither")
    return Meaning(name, "", "neither")


def glossary(names: Iterable[str]) -> list[tuple[str, Meaning]]:
    """Measures by name with what they mean, then the endings of names, each once."""
    bases: dict[str, Meaning] = {}
    endings: dict[str, Meaning] = {}
    for name in names:
        base, ending = _divided(name)
        while ending is not None:
            endings["…" + name[len(base) :]] = ending
            name = base
            base, ending = _divided(name)
        bases[base] = meaning(base)
    return [*bases.items(), *((name, replace(m, title=f"…, {m.title}")) for name, m in endings.items())]


def _divided(name: str) -> tuple[str, Meaning | None]:
    """A name without its last ending, and what the ending means."""
    for pattern, title, text in _ENDINGS:
        found = re.search(pattern, name)
        if found and name not in METRICS:
            return name[: found.start()], Meaning(
                title.format(*found.groups()), text.format(*found.groups()), "neither"
            )
    return name, None


def _plain(text: str) -> str:
    """A docstring's sentence without its markup; a formula at its end is left to the documentation."""
    text = re.sub(r", :math:`[^`]*`", "", text)
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)
