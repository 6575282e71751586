"""`fedanon simulate`: a whole federation on this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table, tell_progress
from fedanon.cli.simulate_streams import STREAMS, SimulatedSource, print_streams, run_streams
from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from rich.progress import Progress

    from fedanon.learning.settings import RunSettings


@options.takes_run_settings(table=SimulatedSource, method=None, evaluate_every=None, partition=None)
def simulate(
    chosen: dict[str, Any],
    k: options.MinimumK = None,
    k_local: Annotated[
        int | None, typer.Option(help="Minimum within every node, where k is counted over the federation.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local (reproducible) or ray.")] = "local",
    subgroups: Annotated[
        str, typer.Option(help="Categorical columns a,b,c; the model is also scored for each of their values.")
    ] = "",
    every: Annotated[
        float,
        typer.Option(help="Time between rounds, as readings state it; 0 spreads --rounds.", rich_help_panel=STREAMS),
    ] = 0.0,
    plot: Annotated[
        Path | None,
        typer.Option(help="Plot scores and drift over time into this file (PNG, SVG, PDF).", rich_help_panel=STREAMS),
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Folder of checkpoints; a killed run resumes from there.")] = None,
    model_out: Annotated[
        Path | None, typer.Option("--model-out", "-o", help="Folder for the model and its card; it must be new.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Simulate a federation: every node anonymizes its own training rows, trains, and sends only arrays.

    The table is your own (INPUT with --schema, divided by --partition, or one --node FILE each) or a data set by name,
    `adult` by default. The model is tested on raw rows the training never saw, and on rows recoded like the
    training rows.

    With --stream, nodes learn from the verified windows of gateways as time passes: `--set windows=24` is how many of
    the last windows a round trains on, and the newest ones are scored before they are learned.
    """
    from fedanon.federated.sources import default_partition
    from fedanon.fields import build, listed
    from fedanon.learning.settings import RunSettings

    if engine not in ("local", "ray"):
        raise ConfigError("--engine takes local or ray.")
    if "stream" in chosen:
        _refuse_table_options(chosen["method"], engine, resume, model_out, subgroups)
        chosen["method_settings"] |= {} if k is None else {"k": str(k)}
        result = run_streams(chosen, every, plot, shown_progress)
        print_json(result) if as_json else print_streams(result, plot)
        return
    if every or plot:
        raise ConfigError("--every and --plot go with --stream.")
    method, parameters = _checked_method(chosen["method"] or "mondrian", k, k_local, chosen["method_settings"])
    chosen["dataset"] = chosen["dataset"] or RunSettings.dataset
    chosen["partition"] = chosen["partition"] or default_partition(chosen["source"])
    every = chosen["evaluate_every"] or max(1, chosen["rounds"] // 20)
    run = build(RunSettings, {**chosen, "method": method, "method_settings": parameters, "evaluate_every": every})
    if model_out is not None and model_out.exists() and (not model_out.is_dir() or any(model_out.iterdir())):
        raise ConfigError(f"{model_out} exists and is not an empty folder; nothing was run.")
    result = _run(run, engine, resume, model_out, listed(subgroups))
    if as_json:
        print_json(result)
    else:
        nodes = result["settings"]["nodes"]  # as many as there are: a partition by a column decides on it
        print_result(f"{method} k={k or '-'}, {run.model}, {nodes} nodes, {run.rounds} rounds", result)


def _refuse_table_options(method: str | None, engine: str, resume: Any, model_out: Any, subgroups: str) -> None:
    given = {"--method": method, "--resume": resume, "--model-out": model_out, "--subgroups": subgroups}
    named = [name for name, value in given.items() if value] + (["--engine ray"] if engine != "local" else [])
    if named:
        raise ConfigError(f"{', '.join(named)} goes with a table; gateways have anonymized the readings of --stream.")


def _checked_method(
    method: str, k: int | None, k_local: int | None, settings: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """The method's name and settings; bad ones are reported before anything is loaded."""
    from fedanon.cli.runs import make_anonymizer
    from fedanon.fields import build
    from fedanon.joint import JOINT_METHODS

    chosen = settings | {name: str(value) for name, value in (("k", k), ("k_local", k_local)) if value is not None}
    if method.replace("-", "_") in JOINT_METHODS:
        method = method.replace("-", "_")
        build(JOINT_METHODS[method], chosen).check_possible()
    elif k_local is not None:
        raise ConfigError(f"--k-local goes with a method of the federation: {', '.join(JOINT_METHODS)}.")
    else:
        make_anonymizer(method, k, settings)
    return method, chosen


def _run(
    run: RunSettings, engine: Any, resume: Path | None, model_out: Path | None, subgroups: list[str]
) -> dict[str, Any]:
    """Simulate, with a bar that shows the scores of the last evaluated round; keep the model if that is wanted."""
    from fedanon.federated.simulation import simulate as start

    with shown_progress(run.rounds) as show:
        done = start(run, engine=engine, checkpoints=resume, on_round=show, subgroups=subgroups)
    if model_out is not None:
        done.write_model(model_out)
    return done.to_dict()


@contextmanager
def shown_progress(rounds: int) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A bar that shows the scores of every round it is called with."""
    logging.getLogger("fedanon").setLevel(logging.ERROR)
    with _progress() as progress:
        task = progress.add_task("preparing the nodes", total=rounds)

        def show(scores: dict[str, Any]) -> None:
            plain = {name.removesuffix("_released"): value for name, value in scores.items()}
            text = "  ".join(f"{word} {plain[name]:.4f}" for name, word in PROGRESS.items() if name in plain)
            progress.update(task, completed=scores["round"], description=text)
            tell_progress(scores["round"] / rounds, text, scores=scores)

        yield show


def _progress() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("round"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console(stderr=True), transient=True)


# ---- The result, for people ----------------------------------------------------------------------

#: by the kind of target
SCORES = {
    "binary": ("accuracy", "auc_pooled", "auc_client_mean", "log_loss", "f1"),
    "multiclass": ("accuracy", "auc_pooled", "auc_weighted_pooled", "auc_client_mean", "log_loss", "f1_macro_pooled"),
    "regression": ("mae", "rmse", "r2"),
}
MEASURES = ("ncp", "linkage", "truthfulness", "seconds")
#: while it runs
PROGRESS = {"log_loss": "loss", "accuracy": "accuracy", "auc_pooled": "AUC", "mae": "MAE", "r2": "R2"}
#: at most so many updates that were left out are listed
LEFT_OUT = 10
#: shown where whoever knows the seed can take the noise off
NO_PROMISE = " The noise follows from the seed: nothing is promised."


def print_result(title: str, result: dict[str, Any]) -> None:
    """Print the main metrics and the notes."""
    shown = (*SCORES[result["outcome"]["kind"]], *MEASURES)
    print_table(title, ["metric", "value"], [(name, result.get(name)) for name in shown])
    for column, found in result.get("subgroups", {}).items():
        _print_subgroups(column, found, result["outcome"]["kind"])
    out = console()
    for note in _notes(result):
        out.print(note)


def _print_subgroups(column: str, found: dict[str, Any], kind: str) -> None:
    names = {
        "binary": ("accuracy", "auc", "log_loss", "f1"),
        "multiclass": ("accuracy", "auc", "log_loss", "f1_macro"),
        "regression": ("mae", "rmse", "r2"),
    }[kind]
    rows = [[group["group"], group["n"], *(group.get(name) for name in names)] for group in found["groups"]]
    print_table(f"By {column}", [column, "test rows", *names], rows)
    if found["smaller_groups"]:
        console().print(
            f"{found['smaller_groups']} values with fewer than {found['min_group']} test rows are left out."
        )


def _notes(result: dict[str, Any]) -> Iterator[str]:
    if "data" in result:
        data = result["data"]
        yield f"Table: {data['name']}, {data['rows']:,} rows, SHA-256 {data['data_sha256'][:16]} with its schema."
    yield "Scores are on raw test rows; ncp, linkage and truthfulness are means over the nodes' releases."
    if "ece" in result["calibration"]:
        yield f"Calibration: predicted and observed shares differ by {result['calibration']['ece']:.3f} on average."
    if "joint" in result:
        yield _agreed(result["joint"], result["counted"])
        yield _disclosed(result["joint"])
    yield from map(_suspect, result["suspects"])
    if "dp" in result:
        yield _budget(result["dp"])
    for entry in result["rejected"][:LEFT_OUT]:
        yield f"Left out: node {entry['node']} in round {entry['round']}: {entry['reason']}"


def _agreed(agreed: dict[str, Any], unit: str) -> str:
    """What nodes that anonymized jointly reached."""
    return (
        f"Anonymized jointly by {len(agreed['nodes'])} nodes: every class holds at least "
        f"{agreed['smallest_class_at_least']} {unit} of the federation (confidence {agreed['confidence']:g}); "
        f"ncp is that of the published cells. {agreed['warning']}"
    )


def _disclosed(agreed: dict[str, Any]) -> str:
    """What the counts gave away, in words."""
    disclosed = agreed["disclosure"]
    if "epsilon" not in disclosed:
        words = {
            "plain": "the server saw exact counts of every node",
            "threshold": f"the server saw counts of every node, none below {disclosed.get('threshold')}",
            "secure": "the server saw sums over all nodes only",
        }
        return f"Counts: {words[disclosed['counts']]} ({agreed['queries']} queries)."
    return (
        f"Counts: epsilon {agreed['epsilon_spent']:g} of each node is spent on {agreed['queries']} queries "
        f"({agreed['protocols']} protocols), against {disclosed['against']}."
        + ("" if agreed["promised"] else NO_PROMISE)
    )


def _suspect(entry: dict[str, Any]) -> str:
    return (
        f"Suspect: node {entry['node']}: its updates were rejected or unlike the others' in "
        f"{entry['rounds_flagged']} of {entry['rounds']} rounds."
    )


def _budget(spent: dict[str, Any]) -> str:
    promise = "" if spent["promised"] else NO_PROMISE
    return (
        f"Privacy budget: epsilon {spent['epsilon_spent']:.3g} spent at delta {spent['delta']:g}, unit: "
        f"{spent['unit']}. It covers {spent['covers']}.{promise}"
    )
