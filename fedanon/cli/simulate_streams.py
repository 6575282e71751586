"""`fedanon simulate --stream`: rounds that go on while gateways publish, and what drifts meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_table
from fedanon.errors import ConfigError

STREAMS = "Streams"


@dataclass(frozen=True, kw_only=True)
class SimulatedSource(options.TableSource):
    """The table of a simulation, or the windows of gateways."""

    stream: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of a gateway's windows, one per node; may be repeated.", rich_help_panel=STREAMS),
    ] = None

    def run_settings(self) -> dict[str, Any]:
        """See :meth:`TableSource.run_settings`; with streams, their folders and their schema."""
        if not self.stream:
            return super().run_settings()
        if self.is_given:
            raise ConfigError("--stream takes the place of a table; give one or the other.")
        if self.schema is None:
            raise ConfigError("--stream needs the --schema of the readings.")
        return {"dataset": None, "source": {}, "stream": self.stream, "stream_schema": self.schema}


#: a bar over so many rounds, which shows the scores it is called with
Progress = Callable[[int], AbstractContextManager[Callable[[dict[str, Any]], None]]]


def run_streams(chosen: dict[str, Any], every: float, plot: Path | None, progress: Progress) -> dict[str, Any]:
    """Simulate; show the scores of every round, draw them if a file is named."""
    from fedanon.data.schema import Schema
    from fedanon.federated.stream_simulation import simulate_streams
    from fedanon.fields import build
    from fedanon.io.outputs import check_output
    from fedanon.learning.settings import RunSettings
    from fedanon.report.drawing import PLOTS
    from fedanon.streams.windowed import STREAM

    folders, schema = chosen.pop("stream"), Schema.read(chosen.pop("stream_schema"))
    check_output(plot, inputs=[], endings=PLOTS, force=True)
    fixed = {"method": STREAM, "dataset": RunSettings.dataset, "partition": RunSettings.partition, "evaluate_every": 1}
    run = build(RunSettings, chosen | fixed)
    with progress(run.rounds) as show:
        result = simulate_streams(folders, schema, run, every=every, on_round=show).to_dict()
    if plot is not None:
        draw_streams(result, plot)
    return result


#: what is shown of a round, where it is there
SCORES = {
    "auc_pooled_released": "AUC",
    "accuracy_released": "accuracy",
    "log_loss_released": "log loss",
    "mae_released": "MAE",
}


def print_streams(result: dict[str, Any], plot: Path | None) -> None:
    """Print rounds and notes."""
    shown = {name: title for name, title in SCORES.items() if any(name in one for one in result["rounds"])}
    rows = [
        (one["round"], f"{one['moment']:,.0f}", *(one.get(name) for name in shown), *_worst(one["psi"]))
        for one in result["rounds"]
    ]
    title = f"{result['model']}, windows of {len(result['nodes'])} gateways"
    print_table(title, ["round", "time", *shown.values(), "largest PSI", "of column"], rows)
    out = console()
    for node in result["nodes"]:
        out.print(
            f"{node['name']}: {node['windows']} windows, of which all together keep k={node['k']} ({node['counted']})."
        )
    out.print("Scores are on the newest windows, before any round has learned them; PSI against the first windows.")
    if plot is not None:
        out.print(f"Plot: {plot}")


def _worst(psi: dict[str, float]) -> tuple[Any, ...]:
    name = max(psi, key=psi.__getitem__, default="")
    return (psi[name], name) if name else (None, "")


def draw_streams(result: dict[str, Any], path: Path) -> None:
    """Draw the scores over time beside the drift of every column."""
    from fedanon.report.charts import MAJORITY, Panel, Series
    from fedanon.report.drawing import write_plot

    rounds = result["rounds"]
    span = rounds[-1]["moment"] - rounds[0]["moment"]
    label, unit = ("days", 86400.0) if span > 2 * 86400 else ("seconds", 1.0)
    moments = tuple(one["moment"] / unit for one in rounds)
    name = next((name for name in SCORES if name in rounds[-1]), "log_loss_released")
    scored = [(x, float(one[name])) for x, one in zip(moments, rounds, strict=True) if name in one]
    score = Series(label="newest windows", style=0, x=tuple(x for x, _ in scored), y=tuple(y for _, y in scored))
    columns = [
        Series(label=column, style=i + 1, x=moments, y=tuple(one["psi"][column] for one in rounds))
        for i, column in enumerate(rounds[0]["psi"])
    ]
    shifted = Series(label="shifted (.25)", style=MAJORITY, x=(), y=(0.25,), form="level")
    panels = [
        Panel(title="Score on windows not learned yet", x_label=label, y_label=SCORES.get(name, name), series=(score,)),
        Panel(
            title="Drift from the first windows",
            x_label=label,
            y_label="PSI, mean of nodes",
            series=(*columns, shifted),
            y_zero=True,
        ),
    ]
    write_plot(panels, path)
