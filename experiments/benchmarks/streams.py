"""What streams lose, and how fast they are.

    python experiments/benchmarks/streams.py [loss | buffers | eicu | speed | gateway | memory | continual] ...

`loss`: mean NCP of castle, fads and prospect on Adult, the first 12,000 rows of a permutation (numpy default_rng(0)), a
record that is dropped counting 1; the parameters of prospect were chosen on rows 12,000 to 24,000. `buffers`: the same
where a record leaves when the buffer is full, however long it has waited. `eicu`: the same as `loss` on
the first blood pressure readings of the eICU demo, a record each with age, gender, ethnicity, unit type and admission
source of the stay, k counting stays; and sticky classes on all readings, with attacks. `speed`: records and readings
per CPU second of one core, by `time.process_time`. `gateway`: readings through a whole one. `memory`: that of processes
that replay a file. `continual`: a gateway for every region of the eICU demo, whose nodes learn together from the
windows as days pass; the figure goes to experiments/results/streams/continual.png. Needs the folder named by
FEDANON_DATA for `eicu` and `continual`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedanon.attacks.context import AttackContext
from fedanon.attacks.on_streams import StreamIntersection, StreamTiming
from fedanon.cli.simulate_streams import draw_streams
from fedanon.data.schema import Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.datasets.files import need
from fedanon.federated.stream_simulation import simulate_streams
from fedanon.fields import build
from fedanon.learning.settings import RunSettings
from fedanon.metrics import METRICS
from fedanon.streams import RECORD_METHODS, replay_people, replay_records
from fedanon.streams.config import GatewayConfig
from fedanon.streams.gateway import Gateway, Incoming
from fedanon.streams.people import StickyClasses
from fedanon.streams.publication import Reading
from fedanon.streams.running import replay_file
from fedanon.streams.space import coded_columns
from fedanon.streams.sticky import StickyEngine

CELLS = [(delay, k) for delay in (500, 2000) for k in (5, 10, 20)]
METHODS = ("castle", "fads", "prospect")


def measure_records(table: Table, name: str, k: int, delay: int) -> tuple[float, float]:
    """Mean loss, and the share of records dropped."""
    method = build(RECORD_METHODS[name], {"k": k, "delay": delay})
    release = replay_records(method, table)
    return METRICS["ncp"].function(table, release), float(release.suppressed.mean())


def print_losses(table: Table) -> None:
    """A line per k and delay."""
    print("| delay | k | castle | fads | prospect | prospect / better |")
    print("|---|---|---|---|---|---|")
    for delay, k in CELLS:
        found = [measure_records(table, name, k, delay) for name in METHODS]
        shown = [f"{loss:.3f}" + (f" ({dropped:.2%} dropped)" if dropped else "") for loss, dropped in found]
        ratio = found[2][0] / min(found[0][0], found[1][0])
        print(f"| {delay} | {k} | {' | '.join(shown)} | {ratio:.2f} |", flush=True)


def adult() -> Table:
    """The rows that numbers are reported on."""
    table = load("adult")
    return table.select_rows(np.random.default_rng(0).permutation(len(table))[:12_000])


def eicu() -> Table:
    """Blood pressure readings in the order of their offsets, as if all stays had begun at once."""
    stays = pd.read_csv(need("eicu_demo/patient.csv.xz", dataset="eicu_demo"), dtype=str)
    vitals = pd.read_csv(need("eicu_demo/vitalaperiodic.csv.xz", dataset="eicu_demo"))
    columns = ["patientunitstayid", "age", "gender", "ethnicity", "unittype", "unitadmitsource"]
    stays = stays[columns].dropna()
    stays["age"] = stays["age"].str.replace("> ", "").astype(int)
    stays["patientunitstayid"] = stays["patientunitstayid"].astype(int)
    frame = vitals[["patientunitstayid", "observationoffset", "noninvasivemean"]].dropna().merge(stays)
    frame = frame[frame["observationoffset"] >= 0]
    frame = frame.rename(columns={"patientunitstayid": "stay", "noninvasivemean": "pressure"})
    frame["time"] = frame.pop("observationoffset") * 60
    attributes = {
        "stay": {"role": "identifying"},
        "age": {"role": "quasi_identifying", "type": "numeric", "range": [0, 90], "integer": True},
        **{
            name: {"role": "quasi_identifying", "type": "categorical", "values": sorted(stays[name].unique())}
            for name in columns[2:]
        },
        "time": {"role": "insensitive", "type": "numeric"},
        "pressure": {"role": "sensitive", "type": "numeric"},
    }
    schema = Schema.from_dict({"name": "eicu", "person_id": "stay", "attributes": attributes})
    ordered = frame.sort_values(["time", "stay"], kind="stable").reset_index(drop=True)
    return Table.from_frame(ordered, schema)


def run_loss() -> None:
    """Adult."""
    print_losses(adult())


def run_buffers() -> None:
    """Adult again, where the oldest record leaves when `delay` records wait, and not when it has waited for `delay`."""
    from fedanon.data.spans import points
    from fedanon.streams.base import NOBODY, Arrivals

    table = adult()
    arrivals = Arrivals(points(table), np.full(len(table), NOBODY), np.zeros(len(table)), {})
    print("| records that wait | k | fads | prospect | prospect / fads | longest wait of fads, later records |")
    print("|---|---|---|---|---|---|")
    for held, k in CELLS:
        losses = []
        for name in METHODS[1:]:
            settings = {"k": k, "clock": "seconds", "delay": 1e9, "buffer": held}
            method = build(RECORD_METHODS[name], settings)
            release = replay_records(method, table, moments=arrivals.moments)
            losses.append(METRICS["ncp"].function(table, release))
            if name == "fads":
                left = method.start(table.columns).feed(arrivals)
                _, first = np.unique(left.cause, return_index=True)
                before = np.repeat(np.sort(first), np.diff([*np.sort(first), len(left.cause)]))
                longest = int((before + held - left.number).max())
        ratio = losses[1] / losses[0]
        print(f"| {held} | {k} | {losses[0]:.3f} | {losses[1]:.3f} | {ratio:.2f} | {longest} |", flush=True)


def run_eicu() -> None:
    """Records on the first 12,000 readings, people on all of them."""
    table = eicu()
    print(f"{len(table)} readings of {table.n_units} stays")
    print_losses(table.select_rows(np.arange(12_000)))
    times = table.frame["time"].to_numpy(dtype=np.float64)
    print("| k | align | NCP of published | published | intersection (first box) | timing (guess) |")
    print("|---|---|---|---|---|---|")
    for k in (5, 10):
        for align in (False, True):
            method = StickyClasses(k=k, delay=7200, active=14400, epoch=86400, align=align)
            release = replay_people(method, table, times, time="time", step=3600)
            shown = ~release.suppressed
            loss = (METRICS["ncp"].function(table, release) - (~shown).mean()) / shown.mean()
            context = AttackContext(table, release, None)
            linked = StreamIntersection().run(context, context.rng("intersection"))
            timed = StreamTiming(time="time").run(context, context.rng("timing"))
            print(
                f"| {k} | {align} | {loss:.3f} | {shown.mean():.1%} | {linked.rate:.4f} ({linked.baseline:.4f}) | "
                f"{timed.rate:.3f} [{timed.interval[0]:.3f}, {timed.interval[1]:.3f}] ({timed.baseline:.3f}) |",
                flush=True,
            )


def run_speed() -> None:
    """One core."""
    table = adult()
    from fedanon.data.spans import points
    from fedanon.streams.base import NOBODY, Arrivals

    where, nobody = points(table), np.full(len(table), NOBODY)
    for name in METHODS[1:]:  # CASTLE is a baseline in plain Python
        for k in (5, 10, 20):
            method = build(RECORD_METHODS[name], {"k": k, "delay": 2000})
            speeds = []
            for _ in range(2):  # the first run loads the kernels
                engine = method.start(table.columns)
                begun = time.process_time()
                engine.feed(Arrivals(where, nobody, np.zeros(len(table)), {}))
                engine.finish()
                speeds.append(len(table) / (time.process_time() - begun))
            print(f"records {name} k={k} delay=2000: {speeds[-1]:,.0f} per CPU second", flush=True)
    method = build(RECORD_METHODS["prospect"], {"k": 10, "delay": 2000, "require": f"l=2:{table.schema.target}"})
    values = {str(table.schema.target): table.frame[str(table.schema.target)].to_numpy()}
    begun = time.process_time()
    engine = method.start(table.columns)
    engine.feed(Arrivals(where, nobody, np.zeros(len(table)), values))
    engine.finish()
    print(f"records prospect k=10 l=2: {len(table) / (time.process_time() - begun):,.0f} per CPU second", flush=True)
    _speed_of_people()


def _wards(people: int) -> tuple[Schema, list[tuple[float, ...]]]:
    columns = {f"q{i}": {"role": "quasi_identifying", "type": "numeric", "range": [0, 100]} for i in range(4)}
    attributes = {"p": {"role": "identifying"}, **columns, "time": {"role": "insensitive", "type": "numeric"}}
    schema = Schema.from_dict({"person_id": "p", "attributes": attributes})
    return schema, [tuple(row) for row in np.random.default_rng(0).integers(0, 101, (people, 4)).astype(float).tolist()]


def _speed_of_people(people: int = 10_000, count: int = 300_000) -> None:
    schema, where = _wards(people)
    engine = StickyEngine(StickyClasses(k=10, delay=600), coded_columns(schema), key=b"speed")
    engine.push([Reading(i, f"p{i}", where[i], 100.0, {}) for i in range(people)])
    engine.advance(800.0)
    who, spent = np.random.default_rng(1).integers(0, people, count).tolist(), 0.0
    for first in range(0, count, 1000):
        batch = [
            Reading(people + j, f"p{who[j]}", where[who[j]], 800.0 + j / 500, {}) for j in range(first, first + 1000)
        ]
        begun = time.process_time()
        engine.push(batch)
        spent += time.process_time() - begun
    print(f"people: {count / spent:,.0f} readings per CPU second in {engine.classes} classes of {people} people")


#: the command line, then its peak memory and that of its largest child (never less than its parent, by `getrusage`)
PEAK = """
import atexit, resource, sys
from pathlib import Path
def tell():
    sys.stderr.write(Path("/proc/self/status").read_text())
    sys.stderr.write(f"Child: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss} kB\\n")
atexit.register(tell)
from fedanon.cli.__main__ import main
main()
"""


def run_gateway(people: int = 10_000) -> None:
    """Readings through a whole gateway: on disk, published in windows; and one at a time."""
    schema, where = _wards(people)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s.toml").write_text(schema_toml(schema), encoding="utf-8")
        settings = 'schema = "s.toml"\nclaim = "people"\ntime = "time"\n[method]\nk = 10\ndelay = 600\n'
        (folder / "gateway.toml").write_text(settings, encoding="utf-8")
        gateway = Gateway(GatewayConfig.read(folder / "gateway.toml"))

        def message(i: int, moment: float) -> dict[str, Any]:
            return {"p": f"p{i}", "time": moment, **{f"q{j}": where[i][j] for j in range(4)}}

        gateway.take([Incoming(message(i, 100.0)) for i in range(people)], 100.0)
        gateway.tick(800.0)
        who = np.random.default_rng(2).integers(0, people, 50_000).tolist()
        batches = [[Incoming(message(i, 801.0)) for i in who[j : j + 500]] for j in range(0, len(who), 500)]
        begun = time.process_time()
        for batch in batches:
            gateway.take(batch, 801.0)
        speed = len(who) / (time.process_time() - begun)
        waits = []
        for i in who[:1000]:
            begun = time.perf_counter()
            gateway.take([Incoming(message(i, 802.0))], 802.0)
            waits.append(time.perf_counter() - begun)
        assert gateway.counts.published == people + len(who) + 1000
        gateway.close()
        print(f"gateway, people: {speed:,.0f} readings per CPU second, journal and windows included")
        print(f"one reading at a time, synced to disk: median {1000 * statistics.median(waits):.2f} ms")


def run_memory(people: int = 10_000) -> None:
    """Peak memory of gateways in processes of their own; records also where no kernel has been compiled before."""
    schema, where = _wards(people)
    who = [*range(people), *np.random.default_rng(2).integers(0, people, 50_000).tolist()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "in.jsonl").open("w", encoding="utf-8") as file:
            for j, i in enumerate(who):
                row = {"p": f"p{i}", "time": 100 + j / 50, **{f"q{c}": where[i][c] for c in range(4)}}
                file.write(json.dumps(row) + "\n")
        methods = {"people": "k = 10\ndelay = 600", "records": "k = 10\ndelay = 2000"}
        for claim, cold in (("people", False), ("records", False), ("records", True)):
            place = folder / f"{claim}{cold}"
            place.mkdir()
            (place / "s.toml").write_text(schema_toml(schema), encoding="utf-8")
            settings = f'schema = "s.toml"\nclaim = "{claim}"\ntime = "time"\n[method]\n{methods[claim]}\n'
            (place / "gateway.toml").write_text(f'{settings}[sink]\nformat = "csv"\n', encoding="utf-8")
            arguments = ["stream", "replay", "--json", str(place / "gateway.toml"), str(folder / "in.jsonl")]
            own = {"NUMBA_CACHE_DIR": str(folder / "cache")} if cold else {}
            command = [sys.executable, "-c", PEAK, *arguments]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | own)
            memory = int(done.stderr.split("VmHWM:")[1].split()[0]) / 1024
            child = int(done.stderr.split("Child:")[1].split()[0]) / 1024
            kernels = f", kernels compiled by a child of {child:,.0f} MB" if cold else ""
            print(f"{claim}: {memory:,.0f} MB to replay {len(who)} readings of {people} people{kernels}", flush=True)


# ---- learning that goes on -----------------------------------------------------------------------

CONTINUAL = """schema = "vitals.toml"
claim = "people"
time = "time"
step = 3600
[method]
k = 5
delay = 7200
active = 14400
epoch = 86400
[sink]
seconds = 21600
format = "csv"
"""
#: days over which the stays of the demo, which states no dates, begin
DAYS = 14


def vitals() -> dict[str, pd.DataFrame]:
    """Blood pressure readings by region; the target is whether the next mean of the stay is below 65 mmHg."""
    stays = pd.read_csv(need("eicu_demo/patient.csv.xz", dataset="eicu_demo"), dtype=str)
    hospitals = pd.read_csv(need("eicu_demo/hospital.csv.xz", dataset="eicu_demo"), dtype=str)
    readings = pd.read_csv(need("eicu_demo/vitalaperiodic.csv.xz", dataset="eicu_demo"))
    quasi = ["age", "gender", "ethnicity", "unittype", "unitadmitsource"]
    stays = stays.merge(hospitals, on="hospitalid")[["patientunitstayid", *quasi, "region"]].dropna()
    stays["age"] = stays["age"].str.replace("> ", "").astype(int)
    stays["begun"] = np.random.default_rng(0).integers(0, DAYS * 1440, len(stays))
    stays["patientunitstayid"] = stays["patientunitstayid"].astype(int)
    values = ["noninvasivesystolic", "noninvasivediastolic", "noninvasivemean"]
    frame = readings[["patientunitstayid", "observationoffset", *values]].dropna()
    frame = frame[
        (frame["observationoffset"] >= 0) & (frame[values] >= 0).all(axis=1) & (frame[values] <= 300).all(axis=1)
    ]
    frame = frame.sort_values(["patientunitstayid", "observationoffset"], kind="stable")
    after = frame.groupby("patientunitstayid")["noninvasivemean"].shift(-1)
    frame["low_next"] = np.where(after < 65, "yes", "no")
    frame = frame[after.notna()].merge(stays)
    frame["time"] = 60 * (frame.pop("begun") + frame.pop("observationoffset"))
    frame = frame.rename(
        columns={"patientunitstayid": "stay", **dict(zip(values, ("systolic", "diastolic", "mean"), strict=True))}
    )
    ordered = frame.sort_values(["time", "stay"], kind="stable")
    return {str(region): part.drop(columns="region") for region, part in ordered.groupby("region")}


def vitals_schema(parts: dict[str, pd.DataFrame]) -> Schema:
    """One schema for all regions."""
    whole = pd.concat(parts.values())
    pressure = {"role": "sensitive", "type": "numeric", "range": [0, 300]}
    attributes = {
        "stay": {"role": "identifying"},
        "age": {"role": "quasi_identifying", "type": "numeric", "range": [0, 90], "integer": True},
        **{
            name: {"role": "quasi_identifying", "type": "categorical", "values": sorted(whole[name].unique())}
            for name in ("gender", "ethnicity", "unittype", "unitadmitsource")
        },
        "time": {"role": "insensitive", "type": "numeric", "range": [0, 86400 * 365]},
        **dict.fromkeys(("systolic", "diastolic", "mean"), pressure),
        "low_next": {"role": "sensitive", "type": "categorical", "values": ["no", "yes"]},
    }
    document = {"name": "vitals", "person_id": "stay", "target": "low_next", "attributes": attributes}
    return Schema.from_dict(document)


def run_continual() -> None:
    """Four gateways, two models, a round every day."""
    parts = vitals()
    schema, folder = vitals_schema(parts), Path("experiments/results/streams")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        streams = []
        for region, frame in parts.items():
            place = Path(name) / region
            place.mkdir()
            (place / "vitals.toml").write_text(schema_toml(schema), encoding="utf-8")
            (place / "gateway.toml").write_text(CONTINUAL, encoding="utf-8")
            (place / "in.jsonl").write_text(frame.to_json(orient="records", lines=True), encoding="utf-8")
            counts = replay_file(GatewayConfig.read(place / "gateway.toml"), place / "in.jsonl").counts
            print(
                f"{region}: {counts.taken} readings, {counts.published} published in {counts.windows} windows",
                flush=True,
            )
            streams.append(place / "windows")
        for model in ("lr", "xgb"):
            settings = RunSettings(
                method="stream", method_settings={"k": 5, "windows": 8, "tested": 4}, model=model, features="all"
            )
            found = simulate_streams(streams, schema, settings, every=86400).to_dict()
            write_continual(found, folder / f"continual_{model}.csv")
            draw_streams(found, folder / f"continual_{model}.png")
            areas = [one["auc_pooled_released"] for one in found["rounds"] if "auc_pooled_released" in one]
            half = len(areas) // 2
            print(
                f"{model}: {len(areas)} rounds, AUC on windows not learned yet {np.mean(areas[:half]):.3f} in "
                f"the first half, "
                f"{np.mean(areas[half:]):.3f} in the second; {found['seconds']:.0f} s",
                flush=True,
            )


def write_continual(found: dict[str, Any], path: Path) -> None:
    """A line per round: when, AUC, and PSI by column."""
    rows = [
        {"round": one["round"], "moment": one["moment"], "auc": one.get("auc_pooled_released"), **one["psi"]}
        for one in found["rounds"]
    ]
    pd.DataFrame(rows).round(4).to_csv(path, index=False)


PARTS = {
    "loss": run_loss,
    "buffers": run_buffers,
    "eicu": run_eicu,
    "speed": run_speed,
    "gateway": run_gateway,
    "memory": run_memory,
    "continual": run_continual,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    for part in parser.parse_args().parts:
        print(f"\n{part}")
        PARTS[part]()
