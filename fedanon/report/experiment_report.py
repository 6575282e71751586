"""The report of one or several result sets, as a document."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from fedanon._version import __version__
from fedanon.harness.result_set import ResultSet
from fedanon.report.charts import REFERENCE
from fedanon.report.column_statistics import is_statistics, statistics_blocks
from fedanon.report.document import Block, Cell, Column, Details, Document, Facts, Note, Paragraph, Section, Table
from fedanon.report.figure_parts import Styles
from fedanon.report.figures import figures_of
from fedanon.report.highlights import highlights
from fedanon.report.limits import limits
from fedanon.report.places import several, with_series
from fedanon.report.provenance import provenance
from fedanon.report.published_figure import published_figure
from fedanon.report.sweep_blocks import figures_of_sweep, sentences_of_sweep, tables_of_sweep
from fedanon.report.sweep_points import is_sweep
from fedanon.report.tables import comparison_table, differences_table, key_measures, means_table
from fedanon.report.words import glossary

#: longer tables are shown on request
MANY_ROWS = 60
KICKER = "fedanon · experiment report"


def experiment_report(found: Sequence[ResultSet], *, title: str | None = None) -> Document:
    """A document about result sets: each its own sections, what the measures mean and do not say once for all."""
    if len(found) == 1:
        manifest = found[0].manifest
        blocks = _sections(found[0], "")
        heading, lead = str(manifest["title"]), str(manifest["about"])
    else:
        blocks = [_experiment(one, f"{number}-") for number, one in enumerate(found, 1)]
        heading, lead = f"{len(found)} experiments", "; ".join(str(one.manifest["title"]) for one in found) + "."
    frames = [one.results for one in found]
    blocks += [*_glossary(frames), limits(frames)]
    sources = [Section(f"{one.manifest['title']}: provenance", provenance(one).blocks) for one in found]
    blocks += [provenance(found[0])] if len(found) == 1 else [Section("Methods and provenance", tuple(sources))]
    return Document(title or heading, KICKER, lead, tuple(blocks), f"Made by fedanon {__version__}.")


def _experiment(found: ResultSet, prefix: str) -> Section:
    about = [Paragraph(str(found.manifest["about"]))] if found.manifest["about"] else []
    return Section(str(found.manifest["title"]), (*about, *_sections(found, prefix)))


def _sections(found: ResultSet, prefix: str) -> list[Block]:
    results = with_series(found.results) if len(found.results) else found.results
    curves = with_series(found.curves) if len(found.curves) else found.curves
    blocks: list[Block] = [*_findings(found, results), Facts(_key_facts(found, results), large=True)]
    if results.empty:
        reason = "No cell of this experiment has finished; the failures are listed under methods and provenance."
        return [*blocks, Note("No results", (reason,), "warning")]
    styles = _styles(results, str(found.manifest["baseline"]))
    for name, frame in results.groupby("grid", sort=False):
        own_curves = curves[curves["grid"] == name] if len(curves) else curves
        blocks.append(_grid(str(name), frame, own_curves, found, styles, prefix))
    return blocks + _published(found.comparison, prefix)


def _findings(found: ResultSet, results: pd.DataFrame) -> list[Block]:
    blocks: list[Block] = []
    if found.manifest["findings"]:
        blocks.append(Note("Findings", tuple(found.manifest["findings"]), "finding"))
    baseline = str(found.manifest["baseline"])
    grids = [frame for _, frame in results.groupby("grid", sort=False)] if len(results) else []
    read = [sentence for frame in grids for sentence in _read(frame, baseline)][:8]
    if read:
        blocks.append(Note("Read from the numbers", tuple(read), "note"))
    return blocks


def _read(frame: pd.DataFrame, baseline: str) -> list[str]:
    if is_statistics(frame):
        return []
    return sentences_of_sweep(frame) if is_sweep(frame) else highlights(frame, baseline)


def _key_facts(found: ResultSet, results: pd.DataFrame) -> tuple[tuple[str, str], ...]:
    manifest = found.manifest
    facts = [("cells finished", f"{manifest['finished']} of {manifest['cells']}")]
    if manifest["failures"]:
        facts.append(("cells failed", str(len(manifest["failures"]))))
    if len(results):
        facts += [
            ("methods", str(results["label"].nunique())),
            ("data sets", ", ".join(map(str, results["dataset"].unique()))),
        ]
        ks = sorted(results["k"].dropna().unique())
        facts += [("k", _listed(ks))] if ks else []
    facts.append(("seeds", str(len(manifest["seeds"]))))
    if len(found.comparison):
        verdicts = _verdicts(found.comparison)
        facts.append(("published numbers met", f"{(verdicts == 'True').sum()} of {(verdicts != '').sum()}"))
    return tuple(facts)


def _listed(ks: list[int]) -> str:
    return ", ".join(map(str, ks)) if len(ks) <= 6 else f"{ks[0]} to {ks[-1]} ({len(ks)} values)"


def _styles(results: pd.DataFrame, baseline: str) -> Styles:
    names = list(dict.fromkeys(results["series"]))
    references = set(results.loc[results["label"] == baseline, "series"])
    others = [name for name in names if name not in references]
    return dict.fromkeys(references, REFERENCE) | {name: number for number, name in enumerate(others)}


def _grid(
    name: str, frame: pd.DataFrame, curves: pd.DataFrame, found: ResultSet, styles: Styles, prefix: str
) -> Section:
    if is_statistics(frame):
        return Section(f"Results: {name}", statistics_blocks(frame))
    place = prefix + file_name(name)
    figures = figures_of_sweep(place, frame) if is_sweep(frame) else figures_of(place, frame, curves, styles)
    ranked = tables_of_sweep(name, frame) if is_sweep(frame) else []
    if ranked:
        return Section(f"Results: {name}", (*figures, *ranked))
    blocks: list[Block] = [*figures]
    key = key_measures(frame)
    interval = (
        "mean ± 95 % interval over seeds, no ± where seeds agree"
        if several(frame["seed"])
        else "one seed, so without intervals"
    )
    blocks.append(_folded(means_table(f"{name}: {interval}", frame, key)))
    baseline = str(found.manifest["baseline"])
    if baseline in set(frame["label"]):
        caption = f"{name}: difference to {baseline}, seed by seed (▲ better, ▼ worse: the 95 % interval excludes 0)"
        lost = differences_table(caption, frame, baseline, [name for name in key if name != "k_reached"])
        blocks += [_folded(lost)] if lost is not None else []
    rest = [measure for measure in dict.fromkeys(frame["measure"]) if measure not in key]
    if rest:
        table = means_table(f"{name}: the other measures, {interval}", frame, rest)
        blocks.append(Details(f"{len(rest)} more measures of {name}", (table,), printed=False))
    return Section(f"Results: {name}", tuple(blocks))


def _folded(table: Table) -> Block:
    return table if len(table.rows) <= MANY_ROWS else Details(f"{table.caption} ({len(table.rows)} rows)", (table,))


def _verdicts(comparison: pd.DataFrame) -> pd.Series:
    """'True', 'False', or nothing where no tolerance is stated."""
    return comparison["within"].map(lambda within: "" if pd.isna(within) else str(within))


def _published(comparison: pd.DataFrame, prefix: str) -> list[Block]:
    if comparison.empty:
        return []
    verdicts, missing = _verdicts(comparison), comparison["ours"].isna()
    text = (
        f"{(verdicts == 'True').sum()} of {(verdicts != '').sum()} numbers with a stated tolerance are within it; "
        f"{((verdicts == 'False') & ~missing).sum()} are beyond it. Of all {len(comparison)} published numbers, "
        f"{missing.sum()} were not computed; where they have a tolerance, it counts as missed."
    )
    figure = published_figure(prefix + "all", comparison)
    tables = [
        _folded(comparison_table(f"{grid}: {source} beside ours (means over seeds)", part))
        for (grid, source), part in comparison.groupby(["grid", "source"], sort=False)
    ]
    return [Section("Published beside ours", (Paragraph(text), *([figure] if figure else []), *tables))]


def _glossary(frames: Sequence[pd.DataFrame]) -> list[Block]:
    # statistics of columns are named where they stand
    told = [frame[frame["task"] != "statistics"] for frame in frames if len(frame)]
    names = dict.fromkeys(name for frame in told for name in frame["measure"])
    if not names:
        return []
    words = {"lower": "lower is better", "higher": "higher is better", "neither": ""}
    rows = [(Cell(m.title), Cell(m.text), Cell(words[m.better]), Cell(f"`{name}`")) for name, m in glossary(names)]
    columns = (Column("Measure"), Column("Meaning"), Column("Direction"), Column("Name in the files"))
    return [Section("What the measures mean", (Table("The measures of this report", columns, tuple(rows)),))]


def file_name(text: str) -> str:
    """A text as part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "grid"
