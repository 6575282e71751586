"""Whether what an experiment states follows from its stored results: its findings, published numbers beside ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedanon.harness.comparison import Published, with_published
from fedanon.harness.experiment import Experiment
from fedanon.harness.findings import Evaluated, evaluate_findings
from fedanon.harness.reach import code_hash
from fedanon.harness.result_set import read_results, store_findings


@dataclass(frozen=True)
class PublishedCheck:
    """How the judged numbers of one published table stand to ours."""

    source: str
    metric: str
    reproduced: int
    differ: int
    not_run: int
    expected_to_differ: int
    why: str

    @property
    def judged(self) -> int:
        """Numbers for which a tolerance is stated."""
        return self.reproduced + self.differ + self.not_run

    @property
    def holds(self) -> bool:
        """Whether as many differ as the experiment's file says."""
        return self.differ == self.expected_to_differ


@dataclass(frozen=True)
class ExperimentCheck:
    """What became of everything that an experiment states."""

    name: str
    findings: tuple[Evaluated, ...] = ()
    published: tuple[PublishedCheck, ...] = ()
    cells: int = 0
    finished: int = 0
    #: finished cells that other code than this computed
    stale: int = 0

    @property
    def holds(self) -> bool:
        """Whether all of it follows from the results."""
        return all(one.holds for one in self.findings) and all(one.holds for one in self.published)

    def to_dict(self) -> dict[str, Any]:
        """For a program."""
        return {
            "experiment": self.name,
            "holds": self.holds,
            "cells": self.cells,
            "finished": self.finished,
            "stale": self.stale,
            "findings": [one.to_dict() for one in self.findings],
            "published": [vars(one) | {"holds": one.holds} for one in self.published],
        }


def check_experiment(experiment: Experiment, folder: Path, *, store: bool = False) -> ExperimentCheck:
    """Evaluate every finding and every published number on the stored results of an experiment.

    ``store`` writes what was found beside the results, as the experiment's file states it now.

    Raises
    ------
    DataError
        If the folder holds no results.
    """
    found = read_results(folder)
    comparison = with_published(found.results, experiment.published) if experiment.published else pd.DataFrame()
    evaluated = tuple(evaluate_findings(experiment.findings, found.results, comparison, experiment.baseline))
    if store:
        store_findings(experiment, found, comparison, evaluated)
    return ExperimentCheck(
        experiment.name,
        evaluated,
        tuple(check for entry in experiment.published for check in _judge(entry, comparison)),
        # by the manifest: the names of cells hold hashes of data that a reader may not have
        int(found.manifest["cells"]),
        int(found.manifest["finished"]),
        count_stale(found.manifest),
    )


def count_stale(manifest: Mapping[str, Any]) -> int:
    """Finished cells that other code than this computed."""
    current = {code for code, start in manifest.get("code_of", {}).items() if code_hash(tuple(start)) == code}
    return sum(int(count) for code, count in manifest["code"].items() if code not in current)


def _judge(published: Published, comparison: pd.DataFrame) -> list[PublishedCheck]:
    table = comparison[(comparison["source"] == published.source) & (comparison["grid"] == published.grid)]
    checks = []
    for metric in published.tolerances:
        rows = table[table["measure"] == metric]
        counts = Counter(
            "not run" if pd.isna(ours) else bool(ok) for ours, ok in zip(rows["ours"], rows["within"], strict=True)
        )
        expected = published.differs.get(metric, 0)
        checks.append(
            PublishedCheck(
                published.source, metric, counts[True], counts[False], counts["not run"], expected, published.why
            )
        )
    return checks
