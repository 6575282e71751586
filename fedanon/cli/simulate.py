"""`fedanon simulate`: a whole federation on this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table
from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from rich.progress import Progress

    from fedanon.learning.settings import RunSettings


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
        str, typer.Option(help="fedavg, fedprox, fedmedian, trimmed_mean, krum, multikrum, bulyan, robust.")
    ] = "fedavg",
    clients: Annotated[int, typer.Option(help="Number of clients.", min=1)] = 10,
    rounds: Annotated[int, typer.Option(help="Rounds of training.", min=1)] = 100,
    per_round: Annotated[int, typer.Option(help="Clients that train in a round; 0 means all.", min=0)] = 0,
    partition: Annotated[str, typer.Option(help="iid, dirichlet:0.5, quantity:0.5, by:COLUMN, or stored.")] = "iid",
    features: Annotated[str, typer.Option(help="quasi_identifiers or all.")] = "quasi_identifiers",
    protocol: Annotated[
        str, typer.Option(help="corrected, or as_published (what the thesis's code did).")
    ] = "corrected",
    hostile: Annotated[int, typer.Option(help="Number of hostile clients.", min=0)] = 0,
    tampering: Annotated[
        str, typer.Option(help="What they do: nan, sign_flip, scale, label_flip, gaussian or backdoor.")
    ] = "sign_flip",
    exclude_suspects: Annotated[
        bool, typer.Option("--exclude-suspects", help="Leave out clients whose updates are unlike the others'.")
    ] = False,
    dp_epsilon: Annotated[float | None, typer.Option(help="Privacy budget of the training; none if not given.")] = None,
    dp_delta: Annotated[float, typer.Option(help="Chance of a larger loss than the budget.")] = 1e-5,
    dp_mode: Annotated[
        str, typer.Option(help="record (noise on gradients), local (on each client's update) or central.")
    ] = "record",
    dp_clip: Annotated[float, typer.Option(help="Largest norm of a gradient (record) or an update.")] = 2.0,
    dp_seeded: Annotated[
        bool, typer.Option("--dp-seeded", help="Noise from the seed: for experiments, promises nothing.")
    ] = False,
    engine: Annotated[str, typer.Option(help="local (reproducible) or ray.")] = "local",
    resume: Annotated[Path | None, typer.Option(help="Folder of checkpoints; a killed run goes on from there.")] = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Simulate a federation: every client anonymises its own training rows, trains and sends only arrays.

    The model is tested on raw rows the training never saw, and on rows recoded like the training rows.
    """
    from fedanon.learning.settings import RunSettings

    _check_engine(engine)
    method, chosen = _checked_method(method, k, k_local, options.parse_settings(settings))
    run = RunSettings(
        dataset=dataset,
        method=method,
        method_settings=chosen,
        model=model,
        model_settings=options.parse_settings(model_settings),
        strategy=strategy,
        nodes=clients,
        rounds=rounds,
        nodes_per_round=per_round,
        partition=partition,
        features=features,  # type: ignore[arg-type]
        dp_settings=_dp_settings(dp_epsilon, dp_delta, dp_mode, dp_clip, seeded=dp_seeded),
        evaluate_every=max(1, rounds // 20),
        protocol=protocol,  # type: ignore[arg-type]
        malicious=hostile,
        malicious_attack=tampering,
        exclude_suspects=exclude_suspects,
        seed=seed,
    )
    result = _run(run, engine, resume)
    if as_json:
        print_json(result)
    else:
        print_result(f"{method} k={k or '-'}, {model}, {clients} clients, {rounds} rounds", result)


def _check_engine(engine: str) -> None:
    if engine not in ("local", "ray"):
        raise ConfigError("--engine takes local or ray.")


def _dp_settings(epsilon: float | None, delta: float, mode: str, clip: float, *, seeded: bool) -> dict[str, Any]:
    """Those of the privacy budget, if there is one."""
    if epsilon is None:
        return {}
    randomness = "seeded" if seeded else "secure"
    return {"mode": mode, "epsilon": epsilon, "delta": delta, "clip": clip, "randomness": randomness}


def _checked_method(
    method: str, k: int | None, k_local: int | None, settings: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """The method's name and settings; bad ones are told before anything is loaded."""
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


def _run(run: RunSettings, engine: Any, resume: Path | None) -> dict[str, Any]:
    """Simulate, with a bar that shows the scores of the last evaluated round."""
    from fedanon.federated.simulation import simulate as start

    logging.getLogger("fedanon").setLevel(logging.ERROR)
    with _progress() as progress:
        task = progress.add_task("preparing the nodes", total=run.rounds)

        def show(scores: dict[str, Any]) -> None:
            text = f"loss {scores['log_loss']:.4f}  accuracy {scores['accuracy']:.4f}  AUC {scores['auc_pooled']:.4f}"
            progress.update(task, completed=scores["round"], description=text)

        return start(run, engine=engine, checkpoints=resume, on_round=show).to_dict()


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


# ---- The result of a simulated federation for people ---------------------------------------------

SHOWN = ("accuracy", "auc_pooled", "auc_client_mean", "log_loss", "f1", "ncp", "linkage", "truthfulness", "seconds")
#: updates that were left out, at most
LEFT_OUT = 10
#: said where noise can be taken off by whoever knows the seed
NO_PROMISE = " The noise follows from the seed: nothing is promised."


def print_result(title: str, result: dict[str, Any]) -> None:
    """The main measures, and the notes."""
    print_table(title, ["measure", "value"], [(name, result.get(name)) for name in SHOWN])
    out = console()
    for note in _notes(result):
        out.print(note)


def _notes(result: dict[str, Any]) -> Iterator[str]:
    yield "Scores are on raw test rows; ncp, linkage and truthfulness are means over the clients' releases."
    if "joint" in result:
        yield _agreed(result["joint"])
        yield _disclosed(result["joint"])
    yield from map(_suspect, result["suspects"])
    if "dp" in result:
        yield _budget(result["dp"])
    for entry in result["rejected"][:LEFT_OUT]:
        yield f"Left out: client {entry['client']} in round {entry['round']}: {entry['reason']}"


def _agreed(agreed: dict[str, Any]) -> str:
    """What nodes that anonymized jointly reached."""
    return (
        f"Anonymized jointly by {len(agreed['nodes'])} nodes: every class holds at least "
        f"{agreed['smallest_class_at_least']} people of the federation (confidence {agreed['confidence']:g}); "
        f"ncp is that of the published cells. {agreed['warning']}"
    )


def _disclosed(agreed: dict[str, Any]) -> str:
    """What the counts gave away, in words."""
    told = agreed["disclosure"]
    if "epsilon" not in told:
        words = {
            "plain": "the server saw exact counts of every node",
            "threshold": f"the server saw counts of every node, none below {told.get('threshold')}",
            "secure": "the server saw sums over all nodes only",
        }
        return f"Counts: {words[told['counts']]} ({agreed['queries']} queries)."
    return (
        f"Counts: epsilon {agreed['epsilon_spent']:g} of each node is spent on {agreed['queries']} queries "
        f"({agreed['protocols']} protocols), against {told['against']}." + ("" if agreed["promised"] else NO_PROMISE)
    )


def _suspect(entry: dict[str, Any]) -> str:
    return (
        f"Suspect: client {entry['client']}: its updates were refused or unlike the others' in "
        f"{entry['rounds_flagged']} of {entry['rounds']} rounds."
    )


def _budget(spent: dict[str, Any]) -> str:
    promise = "" if spent["promised"] else NO_PROMISE
    return (
        f"Privacy budget: epsilon {spent['epsilon_spent']:.3g} spent at delta {spent['delta']:g}, unit: "
        f"{spent['unit']}. It covers {spent['covers']}.{promise}"
    )
