"""`fedanon stream`: readings published as they come."""

from __future__ import annotations

import json
import logging
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table
from fedanon.errors import ConfigError, DataError, FedanonError

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.streams.config import GatewayConfig
    from fedanon.streams.gateway import Gateway
    from fedanon.streams.release import StreamRelease

app = typer.Typer(help="Publish readings as they arrive: a gateway, replays, and checks.", no_args_is_help=True)

Config = Annotated[Path, typer.Argument(help="The gateway.toml.")]


@app.command()
def replay(
    config: Config,
    file: Annotated[Path, typer.Argument(help="Readings: JSON lines, or CSV with a header line.")],
    as_json: options.Json = False,
) -> None:
    """Publish a file as if its readings came now, by the time they state, as fast as possible.

    The stream ends with the file: what waits is published or dropped. An interrupted replay goes on where it was.
    """
    from fedanon.streams.config import GatewayConfig
    from fedanon.streams.running import replay_file

    _log()
    _report(replay_file(GatewayConfig.read(config), file), as_json=as_json)


@app.command()
def run(config: Config, as_json: options.Json = False) -> None:
    """Publish what comes, until the source ends or the command is ended (Ctrl-C, SIGTERM).

    A reading that was acknowledged is neither lost nor published twice, also if the gateway is killed.
    """
    from fedanon.streams.config import GatewayConfig
    from fedanon.streams.running import run_gateway

    _log()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    _report(run_gateway(GatewayConfig.read(config), stop), as_json=as_json)


@app.command()
def check(
    windows: Annotated[Path, typer.Argument(help="The folder of the windows.")],
    schema: Annotated[Path, typer.Option(help="Schema of the readings (TOML).")],
    as_json: options.Json = False,
) -> None:
    """Recount the claim on all windows together, after each of them, from the files alone.

    Exit code 4 if it does not hold, or if a window is missing or not the one that was written.
    """
    from fedanon.data.schema import Schema
    from fedanon.streams.window_check import check_windows

    found = check_windows(windows, [a.name for a in Schema.read(schema).quasi_identifiers])
    unit = "pseudonyms" if found.claim["stream"] == "people" else "records"
    if as_json:
        print_json({**vars(found), "counted": unit})
    else:
        rows = [("windows", found.windows), ("rows", found.rows), ("k", found.claim["k"]), ("counted", unit)]
        rows += [("classes that break the claim", found.broken), ("faults", len(found.faults))]
        print_table(str(windows), ["", "value"], rows)
        out = console()
        for fault in found.faults:
            out.print(f"fail  {fault}", style="bold red")
        if not found.broken and not found.faults:
            out.print(f"After every window, every class holds at least k={found.claim['k']} {unit}.")
        for left_open in found.left_open:
            out.print(left_open)
    found.require()


@app.command()
def attack(
    config: Config,
    file: Annotated[Path, typer.Argument(help="Readings: JSON lines, or CSV with a header line.")],
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Attack what a gateway would publish of a file: intersection over time, timing, homogeneity in a window.

    Every rate has a 95 % interval and stands beside that of a guess. Nothing is written. The same as
    `fedanon attack FILE --stream CONFIG`.
    """
    attack_stream(config, file, seed, as_json=as_json)


def attack_stream(config: Path, file: Path, seed: int, *, as_json: bool) -> None:
    """Run the attacks on streams, and print what they find."""
    from fedanon.attacks.context import AttackContext
    from fedanon.attacks.on_streams import STREAM_ATTACKS
    from fedanon.attacks.suite import run_attacks
    from fedanon.fields import build
    from fedanon.streams.config import GatewayConfig

    read = GatewayConfig.read(config)
    table, release = _replayed(read, file, seed)
    settings = {"timing": {"time": read.time}}
    attacks = [(name, build(kind, settings.get(name, {}))) for name, kind in STREAM_ATTACKS.items()]
    report = run_attacks(AttackContext(table, release, None, seed), attacks)
    if as_json:
        print_json({"results": [r.to_dict() for r in report.results], "not_tried": report.not_tried})
        return
    rows = [(r.title, r.rate, f"{r.low:.4g} to {r.high:.4g}", r.baseline, r.n) for r in report.results]
    print_table("Attacks", ["attack", "rate", "95 % interval", "baseline", "n"], rows)
    for name, reason in report.not_tried.items():
        console().print(f"{name} was not tried: {reason}")


def _replayed(config: GatewayConfig, file: Path, seed: int) -> tuple[Table, StreamRelease]:
    """The readings of a file as a table, and their release."""
    import numpy as np
    import pandas as pd

    from fedanon.data.schema import Schema
    from fedanon.data.table import Table
    from fedanon.streams import replay_people, replay_records
    from fedanon.streams.encoding import Encoder
    from fedanon.streams.reader import MessageReader
    from fedanon.streams.sources import FileSource

    schema = Schema.read(config.path(config.schema))
    reader = MessageReader(config, Encoder(schema))
    source, found, refused = FileSource(file), list[dict[str, Any]](), 0
    while (batch := source.read(10_000, 0.0)) is not None:
        for message in batch:
            try:
                found.append(reader.read(message.data).message)
            except FedanonError:
                refused += 1
    source.close()
    if refused:
        logging.getLogger("fedanon.streams").warning("%d messages are left out, which a gateway refuses.", refused)
    if not found:
        raise DataError(f"The file {file} has no reading that fits the schema.")
    table = Table.from_frame(pd.DataFrame(found), schema)
    # the clock of a replay does not go back either
    times = np.maximum.accumulate([reader.time(message) for message in found]) if config.time else None
    records, sticky = config.record_method, config.sticky_classes
    if records is not None:
        return table, replay_records(records, table, seed=seed, moments=times)
    assert sticky is not None
    if times is None:
        raise ConfigError("Attacks on people need the 'time' column in gateway.toml.")
    return table, replay_people(sticky, table, times, time=config.time, step=config.step)


@app.command()
def status(config: Config, as_json: options.Json = False) -> None:
    """Show what a gateway has done so far, according to its last status file."""
    from fedanon.streams.config import GatewayConfig
    from fedanon.streams.gateway import STATUS

    read = GatewayConfig.read(config)
    path = read.path(read.state) / STATUS
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"The gateway has not written {STATUS} yet; has it been started?") from None
    except (OSError, ValueError):
        raise DataError(f"The file {path} cannot be read.") from None
    if as_json:
        print_json(facts)
    else:
        shown = [(name, "-" if value is None else value) for name, value in facts.items()]
        print_table("Gateway", ["", "value"], shown)


def _report(gateway: Gateway, *, as_json: bool) -> None:
    counts = gateway.counts.to_dict() | {"waiting": gateway.engine.waiting}
    if as_json:
        print_json(counts)
        return
    print_table("Gateway", ["", "value"], list(counts.items()))
    console().print(f"Windows: {gateway.config.path(gateway.config.sink.windows)}")


def _log() -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
