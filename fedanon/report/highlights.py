"""Sentences read from the numbers: from where to where the methods reach, at one k."""

from __future__ import annotations

import pandas as pd

from fedanon.harness.frames import summary
from fedanon.metrics import METRICS
from fedanon.report.numbers import number
from fedanon.report.places import LOSS, RANKING, RISK, first_of, of_releases, panels_of
from fedanon.report.words import meaning

MAX_PANELS = 3


def highlights(frame: pd.DataFrame, baseline: str) -> list[str]:
    """One sentence for loss, risk and usefulness of a grid, in each of its first parts."""
    ks = sorted(frame["k"].dropna().unique())
    if not ks:
        return []
    k = ks[len(ks) // 2]
    sentences = []
    for name in filter(None, (first_of(frame, choice) for choice in (LOSS, RISK, RANKING))):
        numbers = frame[frame["measure"] == name]
        numbers = of_releases(numbers) if name in METRICS else numbers
        for title, part in list(panels_of(numbers))[:MAX_PANELS]:
            sentence = _sentence(name, title, summary(part), int(k), baseline)
            sentences += [sentence] if sentence else []
    return sentences


def _sentence(name: str, title: str, table: pd.DataFrame, k: int, baseline: str) -> str:
    here = table[table["k"] == k].sort_values("mean")
    if len(here) < 2:
        return ""
    least, most = here.iloc[0], here.iloc[-1]
    where = f" ({title})" if title else ""
    text = (
        f"At k = {k}{where}, {meaning(name).title} runs from {number(least['mean'])} ({least['series']}) "
        f"to {number(most['mean'])} ({most['series']})"
    )
    reference = table[table["label"] == baseline]["mean"]
    return text + (f"; {baseline} has {number(reference.iloc[0])}." if len(reference) else ".")
