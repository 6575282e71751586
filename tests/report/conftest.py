"""Small result folders, written as the harness writes them, and a reader of pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fedanon.harness.result_set import CURVES

Row = dict[str, Any]
Folder = Callable[..., Path]

MANIFEST: dict[str, Any] = {
    "experiment": "small",
    "title": "A small experiment",
    "about": "Two methods.\n\nRun with `fedanon experiment`.",
    "baseline": "",
    "findings": [],
    "config": 'title = "A small experiment"\n',
    "config_sha256": "ab" * 32,
    "versions": {"python": "3.11", "fedanon": "0"},
    "code": {"c0de": 4},
    "data": {"ward": "da7a"},
    "seeds": [0, 1, 2],
    "machine": {"system": "Linux", "processor": "x86_64", "cores": 2},
    "cells": 4,
    "finished": 4,
    "cell_seconds": 1.5,
    "failures": [],
    "run": {"seconds": 1.0, "computed": 4, "workers": 2, "engine": "processes"},
}


def said(text: str, *, holds: bool = True) -> Row:
    """A finding as a manifest holds it."""
    return {"text": text, "holds": holds, "failed": []}


def rows(
    *,
    labels: tuple[str, ...] = ("first", "second"),
    ks: tuple[int | None, ...] = (5, 10),
    measures: tuple[str, ...] = ("ncp", "linkage_expected_share"),
    seeds: int = 3,
    task: str = "release",
    model: str | None = None,
) -> list[Row]:
    """Every combination; the value grows with k and differs by label, measure and seed."""
    place = {"grid": "grid", "task": task, "dataset": "ward", "settings": "{}", "model": model}
    return [
        {**place, "label": label, "method": label, "k": k, "seed": seed, "cell": f"{label}{k}{model}{seed}"}
        | {"measure": measure, "value": round(0.05 * (i + 1) * (1 + m) + 0.004 * (k or 1) + 0.001 * seed, 6)}
        for i, label in enumerate(labels)
        for k in ks
        for m, measure in enumerate(measures)
        for seed in range(seeds)
    ]


def with_rounds(numbers: list[Row], rounds: int = 5) -> list[Row]:
    """Curves that end at the numbers."""
    return [row | {"round": r, "value": row["value"] * r / rounds} for row in numbers for r in range(1, rounds + 1)]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Writes a result folder: rows, curves, comparison, and what differs in the manifest."""
    return partial(write_folder, tmp_path)


def write_folder(
    parent: Path,
    results: list[Row],
    *,
    curves: list[Row] | None = None,
    comparison: list[Row] | None = None,
    **manifest: Any,
) -> Path:
    """A new result folder in ``parent``."""
    path = parent / f"results{len(list(parent.iterdir()))}"
    path.mkdir()
    for name, table in (("results", results), ("comparison", comparison)):
        if table:
            pd.DataFrame(table).to_csv(path / f"{name}.csv", index=False)
    if curves:
        pd.DataFrame(curves)[["cell", "measure", "round", "value"]].to_parquet(path / CURVES, index=False)
    (path / "manifest.json").write_text(json.dumps(MANIFEST | manifest), encoding="utf-8")
    return path


class Page(HTMLParser):
    """What a test asks of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta",):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open and "script" not in self._open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]
