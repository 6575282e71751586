"""What the helper process does: read a table, propose roles, describe columns, try a method on a sample.

It holds one table at a time: all rows while roles are being decided, then a sample alone.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import takes_k
from fedanon.anonymizers.baselines import Identity
from fedanon.app.release_facts import ReleaseFiles, release_facts, release_rows
from fedanon.data.attributes import attribute_entry, is_date
from fedanon.data.infer import MISSING_TOKENS, infer_attribute, infer_columns, missing_tokens, proposed_toml
from fedanon.data.schema import FreeText, Role, Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.data.table import Table, texts
from fedanon.datasets import DATASETS, describe, load
from fedanon.datasets.source import DataSource
from fedanon.errors import FedanonError
from fedanon.fields import build
from fedanon.harness.result_set import read_manifest, read_results
from fedanon.io.atomic import atomic_write
from fedanon.io.ledger import SeriesLedger
from fedanon.metrics import evaluate
from fedanon.report.charts import Panel, Series
from fedanon.sdc.methods.base import Perturbative
from fedanon.sdc.methods.step import parse_step
from fedanon.sdc.problem import SdcProblem

#: rows that are shown, rows of the sample, bars of a distribution
SHOWN, SAMPLE, BARS = 50, 5000, 12
#: lines of a result set that are shown
MOST_ROWS = 400
#: seconds a method that searches may search for a preview
SEARCHED = 0.3
#: the longest text of a cell that is shown
LONGEST = 80
#: what a preview measures
MEASURED = ("ncp", "prosecutor_risk", "marketer_risk", "k_reached", "classes", "truthfulness")
#: examples of health tables, the first being the quickest; those at hand are offered
EXAMPLES = ("nhanes", "randhie", "diabetes_130", "adult", "heart", "eicu")


class Bench:
    """The state of the helper process."""

    def __init__(self) -> None:
        self._opened: tuple[dict[str, Any], pd.DataFrame] | None = None
        self._sample: tuple[DataSource, Table, bool] | None = None

    # ---- opening --------------------------------------------------------------------------------

    def do_examples(self) -> list[dict[str, Any]]:
        """The examples that are at hand."""
        known = {info.name: info for info in describe() if info.available}
        return [{"name": n, "rows": known[n].rows, "title": known[n].title} for n in EXAMPLES if n in known]

    def do_export(self, name: str, data: str, schema: str) -> dict[str, Any]:
        """Write an example as a file with its schema, as a hospital has them; people keep a number each."""
        DATASETS[name]
        table = load(name)
        frame = Identity().anonymize(table, rng=0).to_frame().replace("(missing)", np.nan)
        person = table.schema.person_id
        if person is not None:
            frame[person] = table.person_of_row
        kept = tuple(
            FreeText(a.name, a.role) if a.name == person else a
            for a in table.schema.attributes
            if a.name in frame.columns
        )
        declared = replace(table.schema, attributes=kept)
        frame = frame[declared.names]
        atomic_write(data, frame.to_csv(index=False))
        atomic_write(schema, schema_toml(declared))
        return {"missing": "category" if frame.isna().any().any() else "error"}

    def do_open(self, source: dict[str, Any]) -> dict[str, Any]:
        """Read a table; what is shown of it, and how it was read."""
        place = DataSource.from_settings(source)
        frame, dialect = place.read_frame()
        self._opened, self._sample = (source, frame), None
        head = frame.head(SHOWN)
        return {
            "name": place.name,
            "rows": len(frame),
            "columns": [str(name) for name in frame],
            "head": [[_shown(cell) for cell in row] for row in head.itertuples(index=False)],
            "dialect": None if dialect is None else _dialect(dialect),
        }

    # ---- columns --------------------------------------------------------------------------------

    def do_columns(self, source: dict[str, Any], schema: str | None) -> list[dict[str, Any]]:
        """What each column holds, and what is proposed for it and why; then the rows are let go.

        The proposal is written to ``schema``, as `fedanon schema infer` does, if that is named.
        """
        frame = self._frame(source)
        tokens, proposals, found = missing_tokens(frame), infer_columns(frame), []
        if schema is not None:
            name = DataSource.from_settings(source).name
            atomic_write(schema, proposed_toml(frame, name=name, proposals=proposals))
        for proposal in proposals:
            cells = texts(frame[proposal.name])
            known = cells[~cells.isin(tokens)].dropna()
            judged = proposal.judgment
            found.append(
                {
                    "name": proposal.name,
                    "proposed": str(proposal.role),
                    "reason": proposal.reason,
                    "sign": judged.sign if judged else None,
                    "kind": judged.kind.letter if judged and judged.kind else None,
                    "is_person": proposal.is_person,
                    "distinct": int(known.nunique()),
                    "missing": len(frame) - len(known),
                    "rows": len(frame),
                    **_distribution(known),
                }
            )
        self._opened = None
        gc.collect()
        return found

    def do_typed(self, source: dict[str, Any], names: list[str]) -> dict[str, Any]:
        """The types of columns that are to be quasi-identifiers, by their values."""
        frame = self._frame(source)
        found = {name: infer_attribute(frame, name, Role.QUASI_IDENTIFYING) for name in names}
        return {name: attribute_entry(attribute) for name, attribute in found.items()}

    def do_rule(self, source: dict[str, Any], name: str, kind: str) -> dict[str, Any]:
        """What a column begins with when it is given another type: its values side by side, its range, a format."""
        cells = texts(self._frame(source)[name]).dropna()
        values = sorted({str(cell) for cell in cells.unique()} - set(MISSING_TOKENS))
        if kind == "categorical":
            return {"values": values}
        if kind == "numeric":
            numbers = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce").dropna()
            return {"range": [float(numbers.min()), float(numbers.max())] if len(numbers) else [0.0, 1.0]}
        if kind == "date":
            found = infer_attribute(self._frame(source), name, Role.QUASI_IDENTIFYING)
            ready = {name: value for name, value in attribute_entry(found).items() if name in ("format", "range")}
            return ready if is_date(found) else {"format": "%Y-%m-%d", "range": ["1900-01-01", "2100-12-31"]}
        if kind == "code":
            longest = max(map(len, values), default=1)
            return {"form": "X" * longest, "prefixes": sorted({1, max(1, longest // 2)})}
        return {}

    def do_prepare(self, source: dict[str, Any], missing: str) -> int:
        """Raise an error unless the table fits its schema; the sample and the kernels are then warm."""
        place = DataSource.from_settings({**source, "missing": missing}).as_found()
        if self._sample is None or self._sample[0] != place:
            self._sampled(source, missing)
            with suppress(FedanonError):  # too few rows for k say so when a person asks for it
                self.do_preview(source, missing, {"method": "mondrian", "k": 2})
        return len(self._sampled(source, missing))

    def _frame(self, source: dict[str, Any]) -> pd.DataFrame:
        if self._opened is None or self._opened[0] != source:
            self.do_open(source)
        assert self._opened is not None
        return self._opened[1]

    # ---- methods --------------------------------------------------------------------------------

    def do_methods(self) -> list[dict[str, Any]]:
        """The methods that form classes of k, those that keep values true first."""
        found = [
            {"name": name, "truthful": method.truthful is not False, "about": (method.__doc__ or "").split("\n\n")[0]}
            for name, method in ANONYMIZERS.items()
            if takes_k(method) and not issubclass(method, Perturbative)
        ]
        return sorted(found, key=lambda one: not one["truthful"])

    def do_preview(self, source: dict[str, Any], missing: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Loss and risk of a method on the sample; a preview, not a promise."""
        table = self._sampled(source, missing)
        begun = time.perf_counter()
        method = ANONYMIZERS[asked["method"]]
        settings = {"k": asked["k"], **({"require": asked["require"]} if asked.get("require") else {})}
        if any(entry.name == "seconds" for entry in fields(method)):
            settings["seconds"] = SEARCHED
        release = build(method, settings).anonymize(table, rng=int(asked.get("seed", 0)))
        measured = evaluate(table, release, MEASURED)
        return {
            "n": len(table),
            "sampled": self._sample is not None and self._sample[2],
            "seconds": time.perf_counter() - begun,
            "suppressed": int(release.suppressed.sum()),
            **{name: None if value != value else float(value) for name, value in measured.items()},
        }

    def _sampled(self, source: dict[str, Any], missing: str) -> Table:
        """A sample of the rows, the same until the table or its schema changes."""
        place = DataSource.from_settings({**source, "missing": missing}).as_found()
        if self._sample is None or self._sample[0] != place:
            table = place.load()
            rows = np.random.default_rng(0).permutation(len(table))[:SAMPLE]
            table.refuse_without_key()
            self._opened = None
            sampled = len(table) > SAMPLE
            self._sample = (place, table.select_rows(np.sort(rows)) if sampled else table, sampled)
            del table
            gc.collect()
        return self._sample[1]

    def do_steps(self, source: dict[str, Any], missing: str, steps: list[str]) -> dict[str, Any]:
        """Risk and loss after some steps of disclosure control, and before them, on the sample."""
        table = self._sampled(source, missing)
        problem = SdcProblem(table, steps=tuple(map(parse_step, steps)))
        rows = [
            {"title": str(title), "after": row["modified"], "before": row["original"]}
            for title, row in problem.summary().iterrows()
        ]
        return {"n": len(table), "sampled": self._sample is not None and self._sample[2], "rows": rows}

    # ---- releases -------------------------------------------------------------------------------

    def do_facts(self, **given: Any) -> dict[str, Any]:
        """What a released file shows, recounted from the file."""
        return release_facts(ReleaseFiles(**given))

    def do_rows(self, start: int, **given: Any) -> dict[str, Any]:
        """Rows of the original beside those of the release."""
        return release_rows(ReleaseFiles(**given), start=start)

    def do_ledger(self, schema: str) -> list[dict[str, Any]]:
        """The releases of a series as its ledger knows them; an error if its seal does not hold."""
        place = Path(schema)
        ledger = SeriesLedger.read(place, Schema.read(place).sha256)
        return [{"name": e.name, "sha256": e.file_sha256, "classes": len(e.classes)} for e in ledger.entries]

    # ---- federations ----------------------------------------------------------------------------

    def do_server(self, folder: str) -> dict[str, Any]:
        """What the folder of a real server says."""
        from fedanon.federated.deployment.server_folder import read_server_folder

        return read_server_folder(Path(folder))

    # ---- experiments ----------------------------------------------------------------------------

    def do_experiments(self, folder: str) -> list[dict[str, Any]]:
        """The result sets of a folder: those in its folders, or the folder itself."""
        here = Path(folder)
        places = [here, *sorted(one for one in here.iterdir() if one.is_dir())] if here.is_dir() else []
        found = []
        for place in places:
            try:
                manifest = read_manifest(place)
            except FedanonError:
                continue
            if "experiment" in manifest:
                findings = [
                    one if isinstance(one, dict) else {"text": str(one)} for one in manifest.get("findings", [])
                ]
                told = [{"text": str(one["text"]), "holds": one.get("holds")} for one in findings]
                about = {"title": str(manifest.get("title", "")), "findings": told}
                found.append({"name": str(manifest["experiment"]), "folder": str(place), **about})
        return found

    def do_results(self, folder: str, filters: Mapping[str, str]) -> dict[str, Any]:
        """The numbers of a result set, means over its seeds, with what can be filtered by."""
        frame = read_results(Path(folder)).results
        choices = {name: sorted(frame[name].dropna().astype(str).unique()) for name in filters}
        for name, wanted in filters.items():
            frame = frame[frame[name].astype(str) == wanted] if wanted else frame
        by = [name for name in ("label", "dataset", "method", "k", "model", "measure") if name in frame]
        means = frame.groupby(by, dropna=False, sort=False)["value"].agg(["mean", "count"]).reset_index()
        rows = [
            {**{name: _shown(row[name]) for name in by}, "value": row["mean"], "n": int(row["count"])}
            for row in means.head(MOST_ROWS).to_dict("records")
        ]
        usual = dict.fromkeys(("label", "dataset", "method", "k", "model", "measure"), "")
        return {"choices": choices, "rows": [{**usual, **row} for row in rows], "total": len(means)}

    def do_draw(self, panels: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Panels as SVG, with the samples of their lines for a legend."""
        from fedanon.report.drawing import legend_svg, panel_svg

        drawn = {}
        for name, given in panels.items():
            series = tuple(Series(**{**one, **_tuples(one)}) for one in given["series"])
            panel = Panel(**{**given, **_tuples(given), "series": series})
            legend = [legend_svg(one.style, f"{name}-l{i}") for i, one in enumerate(series)] if len(series) > 1 else []
            drawn[name] = {"svg": panel_svg(panel, name), "legend": legend or [""] * len(series)}
        return drawn


def _tuples(given: Mapping[str, Any]) -> dict[str, Any]:
    """The lists among values as the tuples they were before they travelled."""
    return {
        name: tuple(tuple(one) if isinstance(one, list) else one for one in value)
        for name, value in given.items()
        if isinstance(value, list) and name != "series"
    }


def _distribution(known: pd.Series[Any]) -> dict[str, Any]:
    """Bars of a column: of ranges if it holds many numbers, else of its most frequent values."""
    values = pd.to_numeric(known, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    if len(known) and np.isfinite(values).all() and known.nunique() > BARS:
        counts, edges = np.histogram(values, bins=BARS)
        labels = [f"{low:g} … {high:g}" for low, high in pairwise(edges)]
        return {"bars": counts.tolist(), "labels": labels, "others": 0}
    sizes = known.value_counts()
    top = sizes.head(BARS)
    return {
        "bars": [int(n) for n in top],
        "labels": [_shown(value) for value in top.index],
        "others": int(sizes.sum() - top.sum()),
    }


def _shown(cell: Any) -> str:
    if cell is None or cell is pd.NA or cell != cell:
        return ""
    text = str(cell)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _dialect(dialect: Any) -> dict[str, Any]:
    return {name: getattr(dialect, name) for name in ("separator", "decimal", "encoding", "quoting", "header")}


def serve_desk() -> None:
    """Answer questions, a line of JSON each, until there are no more."""
    bench, answers = Bench(), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    for line in sys.stdin:
        try:
            question, given = json.loads(line)
            answer: tuple[str, Any] = ("ok", getattr(bench, f"do_{question}")(**given))
        except FedanonError as error:
            answer = ("error", str(error))
        except Exception as error:  # a foreign message may quote a cell
            answer = ("error", f"Internal error ({type(error).__name__}).")
        answers.write(json.dumps(_plain(answer)) + "\n")
        answers.flush()


def _plain(value: Any) -> Any:
    """Values as JSON knows them; numbers that do not exist become null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    serve_desk()
