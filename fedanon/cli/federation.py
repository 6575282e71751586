"""`fedanon federation`: what a real federation is doing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table
from fedanon.cli.server import Insecure

app = typer.Typer(help="A federation of real machines.", no_args_is_help=True)

SHOWN = 20


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    nodes: Annotated[int, typer.Option(help="Number of nodes.", min=1)] = 2,
    host: Annotated[str, typer.Option(help="Name or address by which nodes find the server.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port.", min=1, max=65535)] = 9443,
    dataset: Annotated[
        str | None, typer.Option(help="A data set by name to distribute among the nodes, for a trial.")
    ] = None,
) -> None:
    """Make the folders of a server and all its nodes, ready to run.

    Certificates are issued, and nodes are registered and know each other's
    keys. Everything is made in one place, so whoever does this has seen the
    private keys of all nodes: for trials, or where that is agreed on.
    Otherwise `fedanon server init` and `fedanon node init` make them apart.
    """
    from fedanon.federated.deployment.new_federation import DATA, SCHEMA, new_federation

    made = new_federation(folder, nodes=nodes, host=host, port=port, dataset=dataset)
    out = console()
    names = made.server.roster.names()
    out.print(f"Made {folder}: the server's folder and those of {', '.join(names)}.", soft_wrap=True)
    if dataset is None:
        out.print(f"Put {DATA} and {SCHEMA} into the folder of every node, and {SCHEMA} into the server's as well.")
    out.print("Next, for every node:", f"fedanon node run {folder}/NAME", soft_wrap=True)
    out.print(f"and for the server:   fedanon server run {folder}/server", soft_wrap=True)


@app.command("app")
def write_app(
    folder: Annotated[Path, typer.Argument(help="A new folder; its name is that of the app.")],
    method: Annotated[str, typer.Option(help="Name of the method.")] = "mondrian",
    k: Annotated[int, typer.Option(help="Minimum number of people in a class.", min=2)] = 5,
) -> None:
    """Write a Flower app that anonymizes at every node, as a start for your own.

    It is a bundle as `flwr new` makes them: `flwr run FOLDER` runs it in
    Flower's simulation or on a SuperLink.
    """
    from fedanon.errors import ConfigError
    from fedanon.federated.deployment.folders import write_bundle
    from fedanon.learning.settings import RunSettings

    if folder.exists():
        raise ConfigError(f"The folder {folder} exists; name a new one.")
    write_bundle(folder, RunSettings(method=method, method_settings={"k": k}))
    # what `--run-config` may set beside the settings of a run; Flower refuses keys that an app does not list
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write('checkpoint-folder = ""\nmodel-folder = ""\nwait-seconds = 60\n')
    console().print(f"Written: {folder}/pyproject.toml and {folder}/federation.py", soft_wrap=True)
    console().print(f"Next: flwr run {folder}", soft_wrap=True)


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(help="The server's folder.")],
    insecure: Insecure = False,
    as_json: options.Json = False,
) -> None:
    """Show the nodes, the run, the last round kept, and who was left out, unresponsive or a suspect until then."""
    from fedanon.federated.deployment.server import status as look

    found = look(folder, insecure=insecure)
    if as_json:
        print_json(found)
        return
    shown = {
        "server": found["server"],
        "registered nodes": ", ".join(found["registered"]),
        "nodes online": ", ".join(sorted(node["name"] for node in found["nodes"] if node["status"] == "online")),
        "last run": found["runs"][0].get("status") if found["runs"] else None,
        "last checkpoint": f"round {found['checkpoint_round']} of {found['rounds']}",
        "updates left out": len(found["rejected"]),
        "answers missing": len(found["unresponsive"]),
        "suspects": ", ".join(entry["name"] for entry in found["conduct"] if entry["suspect"]) or "none",
        "finished": "yes" if found["finished"] else "no",
        **{f"{name} expires": _when(days) for name, days in found["days_left"].items()},
    }
    print_table("Federation", ["what", "now"], list(shown.items()))
    _print_conduct(found["conduct"])
    _print_events(found)
    _warn(found["days_left"])


def _print_conduct(conduct: list[dict[str, Any]]) -> None:
    """Those with whom something is wrong; `--json` has all."""
    wrong = [entry for entry in conduct if entry["suspect"] or entry["left_out"] or entry["no_answer"]]
    if wrong:
        columns = ["node", "left out", "no answer", "updates", "refused or unlike", "score", "suspect"]
        title = f"Nodes with faults: {len(wrong)} of {len(conduct)}{', the first' * (len(wrong) > SHOWN)}"
        print_table(title, columns, [_conduct_row(entry) for entry in wrong[:SHOWN]])
    if any(entry["suspect"] for entry in wrong):
        console().print(
            "A suspect's updates are refused or unlike the others'; its patients may differ. It is no proof."
        )


def _conduct_row(entry: dict[str, Any]) -> list[Any]:
    counts = [entry[name] for name in ("left_out", "no_answer", "rounds", "rounds_flagged", "score")]
    return [entry["name"], *counts, "yes" if entry["suspect"] else "no"]


def _print_events(found: dict[str, Any]) -> None:
    """The last of those left out and of those unresponsive; `--json` has all."""
    events = [(each, f"left out: {each['reason']}") for each in found["rejected"]]
    events += [(each, f"no answer to: {each['during']}") for each in found["unresponsive"]]
    events.sort(key=lambda event: event[0]["round"])
    if events:
        rows = [(each["round"], str(each.get("name", each["node"])), what) for each, what in events[-SHOWN:]]
        print_table(f"The last {len(rows)} of {len(events)} faults", ["round", "node", "what"], rows)


def _warn(days_left: dict[str, int]) -> None:
    from fedanon.federated.deployment.certificates import WARN_DAYS

    advice = {
        "server.crt": "`fedanon server renew` issues a new one",
        "ca.crt": "all nodes will need the ca.crt of a new `fedanon server init`",
    }
    for name, days in days_left.items():
        if days < WARN_DAYS:
            console(stderr=True).print(f"warning: {name} expires {_when(days)}; {advice[name]}.")


def _when(days: int) -> str:
    return f"in {days} days" if days >= 0 else f"{-days} days ago"
