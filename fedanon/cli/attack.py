"""`fedanon attack`: what someone could find out from a release, tried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.anonymize import asked_of_classes
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, json_text, print_json, print_table, tell_progress
from fedanon.cli.runs import make_anonymizer
from fedanon.cli.series import Previous, known_series
from fedanon.cli.stream import attack_stream
from fedanon.errors import ConfigError, DataError, PrivacyViolationError
from fedanon.fields import default_of

if TYPE_CHECKING:
    from fedanon.anonymizers.base import Anonymizer
    from fedanon.attacks.base import Attack, AttackResult
    from fedanon.attacks.context import AttackContext
    from fedanon.attacks.record_risk import RecordRisk
    from fedanon.attacks.suite import AttackReport
    from fedanon.data.table import Table
    from fedanon.release.release import Release
    from fedanon.verification import KnownSeries

COLUMNS = ("attack", "rate %", "95 % interval", "baseline %", "lift", "n", "seconds")
EXPOSED = ("attack", "tried on", "chance %", "most exposed", "theirs %", "95 % interval", "by guess %", "subgroups %")
RESULTS_FILE = "attacks.json"

ReleaseFile = Annotated[
    Path | None, typer.Option(help="A release of INPUT, with its manifest next to it, instead of a method.")
]
Stream = Annotated[
    Path | None, typer.Option(help="A gateway.toml: attack what it would publish over time from the readings in INPUT.")
]
Suite = Annotated[str, typer.Option(help="Attacks a,b,c; or `all`, or all on a `release`, a `model`, a `federation`.")]
AttackSettings = Annotated[
    list[str] | None,
    typer.Option("--set-attack", metavar="ATTACK.NAME=VALUE", help="A parameter of an attack; may be repeated."),
]
FailAbove = Annotated[
    float | None, typer.Option(help="Exit code 4 if the lower end of any rate's interval is above this.", min=0)
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="Also write the results: a .json file, or a folder for one.")
]
Plot = Annotated[Path | None, typer.Option(help="Also plot rates and baselines (PNG, SVG or PDF).")]
Records = Annotated[
    Path | None,
    typer.Option(
        "--records",
        help="Also write a CSV with the success chance of every record, by row number, without cells: do not share it.",
    ),
]
Listing = Annotated[bool, typer.Option("--list", help="List the attacks and their parameters, then exit.")]


@options.takes_table_source
def attack(
    source: options.TableSource,
    release: ReleaseFile = None,
    stream: Stream = None,
    row_key: options.RowKey = None,
    previous: Previous = None,
    suite: Suite = "all",
    method: options.Method = None,
    k: options.MinimumK = None,
    require: options.Requirement = None,
    settings: options.Settings = None,
    attack_settings: AttackSettings = None,
    fail_above: FailAbove = None,
    seed: options.Seed = 0,
    output: Output = None,
    plot: Plot = None,
    records: Records = None,
    force: options.Force = False,
    listing: Listing = False,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Attack a release, models trained on it and a federation, and compare each success rate with guessing.

    The release is made here by a method, or read from a file beside its original; attacks that need the method are then
    skipped. Every rate has a 95 % interval; some attacks say how exposed the most exposed 1 % are. The exit code is 0
    whatever succeeds, unless --fail-above says otherwise.
    """
    from fedanon.attacks.suite import select_attacks
    from fedanon.io.outputs import check_output
    from fedanon.report.drawing import PLOTS

    if listing:
        _list_attacks(as_json=as_json)
        return
    if stream is not None:
        made_here = (release, row_key, previous, method, k, require, settings, records)
        _reject_beside_stream(source, suite, (*made_here, attack_settings, fail_above, output, plot, audit))
        attack_stream(stream, Path(str(source.file)), seed, as_json=as_json)
        return
    output, inputs = _results_file(output), [*source.inputs, release, row_key]
    for path, endings in ((output, ()), (plot, PLOTS), (records, (".csv",))):
        check_output(path, inputs=inputs, endings=endings, force=force)
        inputs.append(path)
    attacks = select_attacks(suite, _parse_attack_settings(attack_settings))
    if release is not None:
        _reject_method(method, k, require, settings)
    with audited(audit, "attack") as entry:
        table, series = source.load(), _read_series(source, release, previous)
        if series is not None and source.file is not None:
            table = series.with_counterfeits(table, source.source)
        read = _read_release(release, table, row_key)
        context = _make_context(table, read, method or "mondrian", k, require, settings, seed)
        if series is not None:
            context = replace(context, series=series.seen())
        entry |= {"suite": suite, "seed": seed, "data_sha256": table.sha256}
        report = _run(context, attacks)
        entry["rates"] = {result.attack: result.rate for result in report.results}
        entry["written"] = _publish(context, report, output, plot, records, as_json=as_json)
    _enforce_limit(report, fail_above)


def _read_series(source: options.TableSource, release: Path | None, previous: list[Path] | None) -> KnownSeries | None:
    """The releases before the one that is attacked, if they are named."""
    if previous and release is None:
        raise ConfigError("--previous names releases before that of --release; name this one too.")
    return None if release is None else known_series(release, source.schema, previous)


def _reject_method(method: str | None, k: int | None, require: str | None, settings: list[str] | None) -> None:
    if method or k or require or settings:
        raise ConfigError("--release names a release that exists; --method, --k, --require and --set make one.")


def _reject_beside_stream(source: options.TableSource, suite: str, others: Sequence[object]) -> None:
    if source.file is None or suite != "all" or any(one is not None for one in others):
        raise ConfigError("--stream takes readings as INPUT, --seed and --json; its gateway.toml says the rest.")


def _publish(
    context: AttackContext,
    report: AttackReport,
    output: Path | None,
    plot: Path | None,
    records: Path | None,
    *,
    as_json: bool,
) -> list[str]:
    """Write and draw what was asked for, then print; returns the names of the files."""
    from fedanon.attacks.record_risk import record_frame
    from fedanon.io.atomic import atomic_write

    document = _document(context, report)
    if output is not None:
        _write(document, output)
    plot = plot if report.results else None
    if plot is not None:
        draw_attacks(report.results, _describe(context), plot)
    if records is not None:
        atomic_write(records, record_frame(context.table, report.records).to_csv(index=False))
    written = [path for path in (output, plot, records) if path is not None]
    if as_json:
        print_json(document)
    else:
        _print_report(context, report, written)
    return [path.name for path in written]


def _parse_attack_settings(settings: list[str] | None) -> dict[str, dict[str, str]]:
    """Group ``attack.name=value`` texts by attack and name."""
    found: dict[str, dict[str, str]] = {}
    for key, value in options.parse_settings(settings).items():
        name, dot, parameter = key.partition(".")
        if not dot:
            raise ConfigError(f"--set-attack takes ATTACK.NAME=VALUE; {key!r} has no '.'.")
        found.setdefault(name, {})[parameter] = value
    return found


def _make_context(
    table: Table,
    release: Release | None,
    method: str,
    k: int | None,
    require: str | None,
    settings: list[str] | None,
    seed: int,
) -> AttackContext:
    from fedanon.attacks.context import AttackContext

    if release is not None:
        return AttackContext(table, release, None, seed)
    k, more = asked_of_classes(k, require)
    anonymizer = make_anonymizer(method, k, {**options.parse_settings(settings), **more})
    return AttackContext(table, anonymizer.anonymize(table, rng=seed), anonymizer, seed)


def _read_release(path: Path | None, table: Table, row_key: Path | None) -> Release | None:
    """Read the release in a file, with all columns as they are published there, beside the rows of the original."""
    from fedanon.io.manifest import Manifest, file_sha256
    from fedanon.io.release_file import ALL, read_release
    from fedanon.io.row_order import read_row_key
    from fedanon.release.reconstruction import reconstruct
    from fedanon.verification import UNMATCHED, with_known_facts

    if path is None:
        return None
    if table.lacks_key:
        raise ConfigError("The schema declares pseudonyms or shifted dates; give the key of the release (--key).")
    view = read_release(path, table.schema, also=ALL)
    order = None if row_key is None else read_row_key(row_key, file_sha256(path))
    known = with_known_facts(view, table, Manifest.beside(path), order)
    if not known.is_matched and known.matching != "size":
        raise DataError(f"The release cannot be attacked: {UNMATCHED[known.matching]}.")
    return reconstruct(known.view, table)


def _run(context: AttackContext, attacks: list[tuple[str, Attack]]) -> AttackReport:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from fedanon.attacks.suite import run_attacks

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(attacks), completed=-1)

        def show(name: str) -> None:
            progress.update(task, advance=1, description=name)
            tell_progress(progress.tasks[0].completed / len(attacks), name)

        return run_attacks(context, attacks, show)


def _document(context: AttackContext, report: AttackReport) -> dict[str, Any]:
    method = context.anonymizer
    return {
        "n": len(context.table),
        "method": None if method is None else method.name,
        "parameters": {} if method is None else _stated(method),
        "seed": context.seed,
        "data_sha256": context.table.sha256,
        "results": [result.to_dict() for result in report.results],
        "not_tried": report.not_tried,
        "record_risks": [risk.to_dict() for risk in report.record_risks],
    }


def _stated(method: Anonymizer) -> dict[str, Any]:
    """The method's parameters; those that came later only where they were set."""
    later = {entry.name: default_of(entry) for entry in fields(method) if entry.metadata.get("optional")}
    return {name: value for name, value in asdict(method).items() if name not in later or value != later[name]}


def _results_file(output: Path | None) -> Path | None:
    """The file itself, or the one in the folder that is named."""
    return output if output is None or output.suffix == ".json" else output / RESULTS_FILE


def _write(document: dict[str, Any], output: Path) -> None:
    from fedanon.io.atomic import atomic_write

    if output.name == RESULTS_FILE:
        output.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(output, json_text(document))


def _describe(context: AttackContext) -> str:
    method = context.anonymizer
    what = "The release" if method is None else f"{method.name}, k={getattr(method, 'k', '-')}"
    return f"{what}: {len(context.table):,} rows, seed {context.seed}"


def _print_report(context: AttackContext, report: AttackReport, written: list[Path]) -> None:
    out = console()
    if report.results:
        print_table(_describe(context), COLUMNS, [_format_row(result) for result in report.results])
        out.print("rate: tries that succeed; baseline: the same without the release, by the best guess or on others.")
    _print_record_risks(report.record_risks)
    for name, reason in report.not_tried.items():
        out.print(f"Not tried: {name}: {reason}")
    out.print(_conclude(report.results))
    for path in written:
        out.print(f"Written: {path}")


def _print_record_risks(risks: list[RecordRisk]) -> None:
    """Who is most exposed: how many and how much, and the column whose subgroups differ most."""
    from fedanon.attacks import ATTACKS

    if not risks:
        return
    rows = [
        [
            ATTACKS[one.attack].title,
            f"{one.n:,} {one.unit}",
            f"{100 * one.chance:.2f}",
            one.most,
            f"{100 * one.most_chance:.2f}",
            f"{100 * one.most_low:.2f} to {100 * one.most_high:.2f}",
            f"{100 * one.most_guess:.2f}",
            _describe_subgroups(one),
        ]
        for one in risks
    ]
    print_table("The most exposed 1 %", EXPOSED, rows)


def _describe_subgroups(risk: RecordRisk) -> str:
    if not risk.columns:
        return "none large enough"
    column = risk.columns[0]
    low, high = column.subgroups[0].chance, column.subgroups[-1].chance
    return f"{column.column}: {100 * low:.2f} to {100 * high:.2f}" + ("" if column.differs else " (may be chance)")


def _format_row(result: AttackResult) -> list[Any]:
    rate, low, high, baseline = (f"{100 * x:.2f}" for x in (result.rate, result.low, result.high, result.baseline))
    lift = None if result.lift is None else float(f"{result.lift:.3g}")
    return [result.title, rate, f"{low} to {high}", baseline, lift, result.n, round(result.seconds, 2)]


def _conclude(results: list[AttackResult]) -> str:
    """Sum up the results in plain words."""
    from fedanon.attacks import ATTACKS

    better = [result for result in results if result.low > result.baseline]
    if not results:
        return "No attack could be tried."
    if not better:
        return f"None of {len(results)} attacks does better than its baseline by more than chance."
    most = max(better, key=lambda result: result.low - result.baseline)
    return (
        f"{len(better)} of {len(results)} attacks do better than their baseline by more than chance. The largest gain: "
        f"{most.title}, {most.rate:.1%} against {most.baseline:.1%}. {ATTACKS[most.attack].meaning}"
    )


def _enforce_limit(report: AttackReport, limit: float | None) -> None:
    above = [] if limit is None else [result.attack for result in report.results if result.low > limit]
    if above:
        raise PrivacyViolationError(f"Above the rate of {limit:g} that --fail-above allows: {', '.join(above)}.")


def _list_attacks(*, as_json: bool) -> None:
    from fedanon.attacks import ATTACKS

    found = [
        {"name": name, "target": kind.target, "meaning": kind.meaning, "parameters": _list_parameters(kind)}
        for name, kind in ATTACKS.items()
    ]
    if as_json:
        print_json(found)
        return
    rows = [
        (entry["name"], entry["target"], entry["meaning"], _format_parameters(entry["parameters"])) for entry in found
    ]
    print_table("Attacks", ["name", "attacks", "what it means if it succeeds", "parameters"], rows)


def _format_parameters(parameters: Any) -> str:
    return "\n".join(f"{entry['name']}={entry['default']}: {entry['help']}" for entry in parameters)


def _list_parameters(kind: type[Attack]) -> list[dict[str, Any]]:
    return [
        {
            "name": e.name,
            "default": "required" if e.default is MISSING else e.default,
            "help": options.with_names(e.metadata.get("help", "")),
        }
        for e in fields(kind)
    ]


# ---- the plot ------------------------------------------------------------------------------------


def draw_attacks(results: Sequence[AttackResult], title: str, path: Path) -> None:
    """Draw one line per attack, the highest gain over its baseline on top."""
    from fedanon.report.charts import BEYOND, REFERENCE, WITHIN, Panel, Series
    from fedanon.report.drawing import write_plot

    ordered = sorted(results, key=lambda one: one.rate - one.baseline, reverse=True)
    lines = [(float(line), one) for line, one in enumerate(ordered)]

    def rates(label: str, style: int, chosen: list[tuple[float, AttackResult]]) -> Series:
        return Series(
            label=label,
            style=style,
            x=tuple(one.rate for _, one in chosen),
            y=tuple(line for line, _ in chosen),
            low=tuple(one.low for _, one in chosen),
            high=tuple(one.high for _, one in chosen),
            texts=tuple(f"{one.rate:.1%}" for _, one in chosen),
            form="points",
        )

    above = rates("95 % interval above baseline", BEYOND, [(y, one) for y, one in lines if one.low > one.baseline])
    others = rates("not above baseline", WITHIN, [(y, one) for y, one in lines if one.low <= one.baseline])
    baseline = Series(
        label="baseline: without release",
        style=REFERENCE,
        x=tuple(one.baseline for _, one in lines),
        y=tuple(line for line, _ in lines),
        form="points",
    )
    panel = Panel(
        title=title,
        x_label="share of the attempts that succeed",
        y_label="",
        series=tuple(one for one in (above, others, baseline) if one.x),
        x_ticks=tuple((share / 4, f"{share / 4:.0%}") for share in range(5)),
        y_ticks=tuple((line, one.title) for line, one in lines),
        x_zero=True,
        intervals_across=True,
        large=True,
    )
    write_plot([panel], path)
