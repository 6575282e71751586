"""`fedanon simulate`: a whole federation on this machine."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table
from fedanon.errors import ConfigError

SHOWN = ("accuracy", "auc_pooled", "auc_client_mean", "log_loss", "f1", "ncp", "linkage", "truthfulness", "seconds")


def simulate(
    dataset: Annotated[str, typer.Option(help="Data set; see `fedanon data list`.")] = "adult",
    method: Annotated[str, typer.Option(help="Anonymizer of every client; see `fedanon methods`.")] = "mondrian",
    k: Annotated[int | None, typer.Option(help="Minimum number of people who share a published record.")] = None,
    k_local: Annotated[
        int | None, typer.Option(help="The same within every client, where k is counted over the federation.")
    ] = None,
    settings: options.Settings = None,
    model: Annotated[str, typer.Option(help="lr, xgb or mlp.")] = "lr",
    model_settings: Annotated[
        list[str] | None, typer.Option("--model-set", metavar="NAME=VALUE", help="A parameter of the model.")
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="fedavg, fedprox, fedmedian, trimmed_mean, krum, multikrum, bulyan.")
    ] = "fedavg",
    clients: Annotated[int, typer.Option(help="Number of clients.", min=1)] = 10,
    rounds: Annotated[int, typer.Option(help="Rounds of training.", min=1)] = 100,
    per_round: Annotated[int, typer.Option(help="Clients that train in a round; 0 means all.", min=0)] = 0,
    partition: Annotated[str, typer.Option(help="iid, dirichlet:0.5, quantity:0.5, by:COLUMN, or stored.")] = "iid",
    features: Annotated[str, typer.Option(help="quasi_identifiers or all.")] = "quasi_identifiers",
    protocol: Annotated[
        str, typer.Option(help="corrected, or as_published (what the thesis's code did).")
    ] = "corrected",
    engine: Annotated[str, typer.Option(help="local (reproducible) or ray.")] = "local",
    resume: Annotated[Path | None, typer.Option(help="Folder of checkpoints; a killed run goes on from there.")] = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Simulate a federation: every client anonymises its own training rows, trains and sends only arrays.

    The model is tested on raw rows the training never saw, and on rows recoded like the training rows.
    """
    from fedanon.federated.settings import RunSettings

    if engine not in ("local", "ray"):
        raise ConfigError("--engine takes local or ray.")
    method, chosen = _checked_method(method, k, k_local, options.parse_settings(settings))
    run = RunSettings(
        dataset=dataset,
        method=method,
        method_settings=json.dumps(chosen),
        model=model,
        model_settings=json.dumps(options.parse_settings(model_settings)),
        strategy=strategy,
        clients=clients,
        rounds=rounds,
        clients_per_round=per_round,
        partition=partition,
        features=features,  # type: ignore[arg-type]
        evaluate_every=max(1, rounds // 20),
        protocol=protocol,  # type: ignore[arg-type]
        seed=seed,
    )
    result = _run(run, engine, resume)
    if as_json:
        print_json(result)
        return
    print_table(
        f"{method} k={k or '-'}, {model}, {clients} clients, {rounds} rounds",
        ["measure", "value"],
        [(name, result.get(name)) for name in SHOWN],
    )
    _print_notes(result)


def _checked_method(
    method: str, k: int | None, k_local: int | None, settings: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """The method's name and settings; bad ones are told before anything is loaded."""
    from fedanon.cli.runs import make_anonymizer
    from fedanon.federated.together import TOGETHER
    from fedanon.parameters import build

    chosen = settings | {name: str(value) for name, value in (("k", k), ("k_local", k_local)) if value is not None}
    if method.replace("-", "_") in TOGETHER:
        method = method.replace("-", "_")
        build(TOGETHER[method], chosen).check_possible()
    elif k_local is not None:
        raise ConfigError(f"--k-local goes with a method of the federation: {', '.join(TOGETHER)}.")
    else:
        make_anonymizer(method, k, settings)
    return method, chosen


def _print_notes(result: dict[str, Any]) -> None:
    out = console()
    out.print("Scores are on raw test rows; ncp, linkage and truthfulness are means over the clients' releases.")
    if "together" in result:
        agreed = result["together"]
        out.print(
            f"Anonymised together by {len(agreed['clients'])} clients: every class holds at least "
            f"{agreed['smallest_class_at_least']} people of the federation (confidence {agreed['confidence']:g}); "
            f"ncp is that of the published cells. {agreed['warning']}"
        )
    for entry in result["rejected"][:10]:
        out.print(f"Left out: client {entry['client']} in round {entry['round']}: {entry['reason']}")


def _run(run: Any, engine: Any, resume: Path | None) -> dict[str, Any]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from fedanon.federated.simulation import simulate as start

    logging.getLogger("fedanon").setLevel(logging.ERROR)
    columns = (
        TextColumn("round"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("preparing the nodes", total=run.rounds)

        def show(scores: dict[str, Any]) -> None:
            text = f"loss {scores['log_loss']:.4f}  accuracy {scores['accuracy']:.4f}  AUC {scores['auc_pooled']:.4f}"
            progress.update(task, completed=scores["round"], description=text)

        return start(run, engine=engine, checkpoints=resume, on_round=show).to_dict()
