"""The report of one or several result sets, as a document: findings, figures, tables, glossary, limits, provenance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from fedanon._version import __version__
from fedanon.harness.frames import summary
from fedanon.harness.result_set import ResultSet
from fedanon.metrics import METRICS
from fedanon.report.charts import REFERENCE
from fedanon.report.document import (
    Block,
    Bullets,
    Code,
    Details,
    Document,
    Facts,
    Note,
    Paragraph,
    Section,
    TableBlock,
    TableCell,
    TableColumn,
)
from fedanon.report.figure_parts import Styles
from fedanon.report.figures import figures_of, published_figure
from fedanon.report.glossary import glossary, meaning
from fedanon.report.grouping import LOSS, RANKING, RISK, first_of, of_releases, panels_of, several, with_series
from fedanon.report.numbers import number
from fedanon.report.sweeps import figures_of_sweep, is_sweep, sentences_of_sweep, tables_of_sweep
from fedanon.report.tables import (
    comparison_table,
    differences_table,
    is_statistics,
    key_metrics,
    means_table,
    statistics_blocks,
)

#: longer tables are folded
MANY_ROWS = 60
KICKER = "fedanon · experiment report"


def experiment_report(found: Sequence[ResultSet], *, title: str | None = None) -> Document:
    """Return a document about result sets: sections for each, the glossary and the limits once for all."""
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
        reason = "No cell of this experiment has finished; failures are listed under methods and provenance."
        return [*blocks, Note("No results", (reason,), "warning")]
    styles = _styles(results, str(found.manifest["baseline"]))
    for name, frame in results.groupby("grid", sort=False):
        own_curves = curves[curves["grid"] == name] if len(curves) else curves
        blocks.append(_grid(str(name), frame, own_curves, found, styles, prefix))
    return blocks + _published(found.comparison, prefix)


def _findings(found: ResultSet, results: pd.DataFrame) -> list[Block]:
    blocks: list[Block] = []
    said = found.manifest["findings"]
    holding = [one["text"] for one in said if one["holds"]] + found.manifest.get("remarks", [])
    broken = [one["text"] for one in said if not one["holds"]]
    if broken:
        blocks.append(Note("Stated, but not so in these results", tuple(broken), "alarm"))
    if holding:
        blocks.append(Note("Findings", tuple(holding), "finding"))
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
    key = key_metrics(frame)
    interval = (
        "mean ± 95 % interval over seeds, no ± where seeds agree"
        if several(frame["seed"])
        else "one seed, so without intervals"
    )
    blocks.append(_folded(means_table(f"{name}: {interval}", frame, key)))
    baseline = str(found.manifest["baseline"])
    if baseline in set(frame["label"]):
        caption = f"{name}: difference from {baseline}, seed by seed (▲ better, ▼ worse: the 95 % interval excludes 0)"
        lost = differences_table(caption, frame, baseline, [name for name in key if name != "k_reached"])
        blocks += [_folded(lost)] if lost is not None else []
    rest = [metric for metric in dict.fromkeys(frame["measure"]) if metric not in key]
    if rest:
        table = means_table(f"{name}: the other metrics, {interval}", frame, rest)
        blocks.append(Details(f"{len(rest)} more metrics of {name}", (table,), printed=False))
    return Section(f"Results: {name}", tuple(blocks))


def _folded(table: TableBlock) -> Block:
    return table if len(table.rows) <= MANY_ROWS else Details(f"{table.caption} ({len(table.rows)} rows)", (table,))


def _verdicts(comparison: pd.DataFrame) -> pd.Series:
    """Return 'True', 'False', or '' if no tolerance is stated."""
    return comparison["within"].map(lambda within: "" if pd.isna(within) else str(within))


def _published(comparison: pd.DataFrame, prefix: str) -> list[Block]:
    if comparison.empty:
        return []
    verdicts, missing = _verdicts(comparison), comparison["ours"].isna()
    text = (
        f"{(verdicts == 'True').sum()} of {(verdicts != '').sum()} numbers with a stated tolerance are within it; "
        f"{((verdicts == 'False') & ~missing).sum()} are beyond it. Of all {len(comparison)} published numbers, "
        f"{missing.sum()} were not computed; those with a tolerance count as missed."
    )
    figure = published_figure(prefix + "all", comparison)
    tables = [
        _folded(comparison_table(f"{grid}: {source} and ours (means over seeds)", part))
        for (grid, source), part in comparison.groupby(["grid", "source"], sort=False)
    ]
    return [Section("Published numbers and ours", (Paragraph(text), *([figure] if figure else []), *tables))]


def _glossary(frames: Sequence[pd.DataFrame]) -> list[Block]:
    # statistics of columns are explained where they are shown
    named = [frame[frame["task"] != "statistics"] for frame in frames if len(frame)]
    names = dict.fromkeys(name for frame in named for name in frame["measure"])
    if not names:
        return []
    directions = {"lower": "lower is better", "higher": "higher is better", "neither": ""}
    rows = [
        (TableCell(m.title), TableCell(m.text), TableCell(directions[m.better]), TableCell(f"`{name}`"))
        for name, m in glossary(names)
    ]
    columns = (
        TableColumn("Metric"),
        TableColumn("Meaning"),
        TableColumn("Direction"),
        TableColumn("Name in the files"),
    )
    return [Section("What the metrics mean", (TableBlock("The metrics of this report", columns, tuple(rows)),))]


def file_name(text: str) -> str:
    """Return a text as part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "grid"


# ---- what the numbers do not say -----------------------------------------------------------------

_ALWAYS = (
    "Only the columns declared as quasi-identifiers are anonymized. Everything else, including sensitive columns, is "
    "published unchanged; a column that others know but that is not declared as a quasi-identifier is not protected.",
    "k-anonymity hides who is who among at least k people. It does not hide a diagnosis that all k of them share, nor "
    "does it protect against someone who combines several releases of the same people.",
    "The risk is that from one attacker, who knows the exact quasi-identifiers of everyone and picks the nearest "
    "record. Attackers who know more, or guess better, are not measured.",
    "A method that promises nothing (such as the original rows, DAS or fixed intervals) may score well here and still "
    "single out individual people.",
    "A ± is the 95 % interval of the mean over seeds (Student's t): how much the randomness of method, partition and "
    "training moves a number. It says nothing about other nodes, other years or other people.",
)
_MODELS = "Classes differ in size: an accuracy at the share of the most common class means that nothing was learned."
_FEDERATION = (
    "The federation is simulated on one machine. What a model's updates reveal about training rows is not measured "
    "here; anonymized rows limit it but do not rule it out."
)


def limits(results: list[pd.DataFrame]) -> Section:
    """Return the section that applies to these results."""
    tasks = {task for frame in results if len(frame) for task in frame["task"]}
    items = list(_ALWAYS)
    items += [_MODELS] if tasks & {"central", "federation"} else []
    items += [_FEDERATION] if "federation" in tasks else []
    return Section("What is not protected, and what the numbers do not say", (Bullets(tuple(items)),))


# ---- sentences read from the numbers -------------------------------------------------------------

MAX_PANELS = 3


def highlights(frame: pd.DataFrame, baseline: str) -> list[str]:
    """Return one sentence each for loss, risk and usefulness of a grid, for each of its first parts."""
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
        f"At k = {k}{where}, {meaning(name).title} ranges from {number(least['mean'])} ({least['series']}) "
        f"to {number(most['mean'])} ({most['series']})"
    )
    reference = table[table["label"] == baseline]["mean"]
    return text + (f"; {baseline} has {number(reference.iloc[0])}." if len(reference) else ".")


# ---- provenance ----------------------------------------------------------------------------------

MANY = 20


def provenance(found: ResultSet) -> Section:
    """Return versions, code, data, seeds, machine, failures, the experiment itself and the commands."""
    manifest = found.manifest
    blocks: list[Block] = [Facts(_facts(manifest)), _hashes(manifest)]
    blocks += _failures(manifest["failures"])
    blocks += [
        Paragraph("To reproduce the numbers, save the experiment below under its name and run:"),
        Code(f"fedanon experiment run {found.name}.toml\nfedanon report {found.name}.toml -o report.html"),
        Details(f"The experiment, {found.name}.toml", (Code(str(manifest.get("config", ""))),)),
    ]
    return Section("Methods and provenance", tuple(blocks))


def _facts(manifest: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    run, computer = manifest.get("run") or {}, manifest["machine"]
    seconds = f", {manifest['cell_seconds']:,} s of computing" if manifest.get("cell_seconds") else ""
    facts = [
        ("Cells", f"{manifest['finished']} of {manifest['cells']} finished{seconds}"),
        ("Seeds", ", ".join(map(str, manifest["seeds"]))),
        ("Machine", f"{computer['system']}, {computer['processor']}, {computer['cores']} cores"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())),
    ]
    if run:
        facts.append(
            ("Last run", f"{run['computed']} cells in {run['seconds']:,} s, {run['workers']} workers, {run['engine']}")
        )
    return tuple(facts)


def _hashes(manifest: dict[str, Any]) -> TableBlock:
    rows = [("experiment file", manifest.get("config_sha256", ""))]
    rows += [(f"data: {name}", sha) for name, sha in manifest["data"].items()]
    rows += [(f"code of {count} cells", sha) for sha, count in manifest["code"].items()]
    cells = tuple((TableCell(what), TableCell(f"`{sha}`")) for what, sha in rows)
    return TableBlock(
        "SHA-256 of what determines the numbers (for code, the first 16 digits)",
        (TableColumn("What"), TableColumn("SHA-256")),
        cells,
    )


def _failures(failures: list[dict[str, str]]) -> list[Block]:
    if not failures:
        return []
    rows = tuple((TableCell(f["what"]), TableCell(f["grid"]), TableCell(f["reason"])) for f in failures)
    table = TableBlock(
        f"{len(failures)} cells that failed", (TableColumn("Cell"), TableColumn("Grid"), TableColumn("Reason")), rows
    )
    note = Note("Not everything could be computed", (f"{len(failures)} cells failed and have no numbers.",), "warning")
    return [note, table if len(failures) <= MANY else Details(table.caption, (table,))]
