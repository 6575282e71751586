"""The gate: limits of replies, the tripwire, slots, entries, the ledger, and what happens where walls do not stand."""

from __future__ import annotations

import json
import sys
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from fedanon.errors import ConfigError, RefusedError, UpdateRejectedError
from fedanon.federated.deployment.egress_log import read_egress
from fedanon.federated.gate import AppLimits, limits_of, load_release, runner
from fedanon.federated.gate import app as gate
from fedanon.federated.gate.allowed import AllowedApps, limits_text
from fedanon.federated.gate.limits import ArrayLimit, NumberLimit, round_to_bits
from fedanon.federated.gate.tripwire import Tripwire
from fedanon.federated.gate.walls import Standing, readable_folders
from fedanon.federated.sources import load_node_table
from fedanon.learning.egress_ledger import EgressLedger
from tests.federated.foreign import REPLY, AppServer, bundle_that, limits, write_canaries
from tests.federated.hostile_server import make_node

linux = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")
SIMPLE = "return reply(message, load_release().train.features.mean(axis=0))"


def content(weights: Any = (1, 2, 3, 4), **metrics: Any) -> RecordDict:
    arrays = ArrayRecord([np.asarray(weights, dtype=np.float32)])
    return RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 9, "loss": 0.5} | metrics)})


def passed(found: RecordDict, **more: Any) -> RecordDict:
    return limits(**more).by_type["train"].passed(found, 11)[0]


# ---- limits --------------------------------------------------------------------------------------


def test_a_reply_is_made_anew_of_what_is_listed() -> None:
    made = passed(content([1, -0.0, 1 / 3, 1e-30], loss=12.34567, other=7.0, **{"num-examples": 9}))
    assert made["arrays"]["0"].numpy().tolist() == [1, 0, float(round_to_bits(np.float32([1 / 3]), 11)[0]), 0]
    assert np.signbit(made["arrays"]["0"].numpy()).sum() == 0
    assert dict(made["metrics"]) == {"num-examples": 9, "loss": 12.346}
    assert list(made) == ["arrays", "metrics"]


@pytest.mark.parametrize(
    "hostile",
    [
        content([np.nan, 0, 0, 0]),
        content([np.inf, 0, 0, 0]),
        content([1e7, 0, 0, 0]),
        content([0, 0, 0]),
        content([[0, 0, 0, 0]]),
        content(loss=float("nan")),
        content(loss=-1.0),
        content(loss=101.0),
        content(loss=[0.5]),
        content(**{"num-examples": 10**6}),
        RecordDict({"arrays": content()["arrays"]}),
        RecordDict({**content(), "config": ConfigRecord({"text": "TAKEN"})}),
        RecordDict({**content(), "more": ArrayRecord([np.zeros(4, np.float32)])}),
        RecordDict({"metrics": content()["arrays"], "arrays": content()["metrics"]}),
        RecordDict({**content(), "arrays": ArrayRecord([np.zeros(4)])}),
        RecordDict({**content(), "arrays": ArrayRecord([np.zeros(4, np.float32), np.zeros(4, np.float32)])}),
        RecordDict({**content(), "arrays": ArrayRecord({"1": content()["arrays"]["0"]})}),
        RecordDict({**content(), "arrays": ArrayRecord({"0": Array("float32", (4,), "numpy.ndarray", b"x" * 99)})}),
        RecordDict({**content(), "arrays": ArrayRecord({"0": Array("float32", (4,), "pickle", b"")})}),
        RecordDict({**content(), "metrics": MetricRecord({"loss": 0.5})}),
        RecordDict(),
    ],
)
def test_everything_else_is_refused_without_a_word_of_it(hostile: RecordDict) -> None:
    with pytest.raises(UpdateRejectedError) as refusal:
        passed(hostile)
    assert "TAKEN" not in str(refusal.value)


@given(
    nps.arrays(np.float32, 20, elements=st.floats(-1e6, 1e6, width=32)),
    st.integers(2, 24),
)
def test_floats_keep_their_leading_bits_alone(values: Any, bits: int) -> None:
    rounded = round_to_bits(values, bits)
    assert rounded.dtype == np.float32
    assert (np.abs(rounded - values) <= np.abs(values) * 2.0**-bits + 2.0**-29).all()
    assert len(np.unique(np.frexp(rounded)[0])) <= 2**bits + 1
    assert (round_to_bits(rounded, bits) == rounded).all()


def test_the_capacity_counts_every_reply_that_can_leave() -> None:
    """Of an array so small that all numbers it can hold are listed here."""
    every = np.frombuffer(np.arange(2**16, dtype=np.uint16).tobytes(), dtype=np.float16)
    limit = ArrayLimit.parse("a", "float16 scalar -8..8")
    kept = {
        float(limit.passed(value.reshape(()), 3)) for value in every if np.isfinite(value) and abs(float(value)) <= 8
    }
    assert 50 < len(kept) <= 2 ** limit.capacity(3)
    assert ArrayLimit.parse("a", "int8 3 0..3").capacity(11) == 6
    assert NumberLimit.parse("n", "0..1 1 decimals").capacity == pytest.approx(np.log2(11))
    narrow = NumberLimit.parse("n", "0.04..0.16 1 decimals")
    assert {narrow.passed(float(x)) for x in np.linspace(0.04, 0.16, 999)} == {0, 0.1, 0.2}
    assert narrow.capacity == pytest.approx(np.log2(3))
    whole = limits(slot_seconds=30, seconds=120)
    assert whole.capacity("train") == pytest.approx(2 + whole.by_type["train"].capacity(11), abs=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"train": {"arrays": {"arrays/0": "float32"}}},
        {"train": {"arrays": {"arrays/0": "object 4"}}},
        {"train": {"arrays": {"arrays/0": "int64 4"}}},
        {"train": {"arrays": {"weights": "float32 4"}}},
        {"train": {"numbers": {"metrics/loss": "any"}}},
        {"train": {"numbers": {"metrics/loss": "5..1"}}},
        {"train": {"numbers": {"arrays/loss": "0..1"}, "arrays": {"arrays/0": "float32 4"}}},
        {"train": {"texts": {"a/b": "c"}}},
        {},
    ],
)
def test_wrong_limits_say_what_is_wrong(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="app"):
        AppLimits(replies=wrong)


def test_limits_are_written_read_and_told(tmp_path: Path) -> None:
    chosen = limits(slot_seconds=5, bits=8)
    assert AppLimits.from_toml(limits_text(chosen, "title")) == chosen
    said = " ".join(chosen.describe())
    assert "release by mondrian (k=5)" in said
    assert "To 'train' it answers 1 arrays and 2 numbers" in said
    assert f"can carry {int(np.ceil(chosen.capacity('train')))} bits" in said
    assert "AT ANY MOMENT" in " ".join(limits().describe())


def test_an_author_gets_limits_from_an_example() -> None:
    found = limits_of({"train": content()})
    assert found == {
        "train": {
            "arrays": {"arrays/0": "float32 4"},
            "numbers": {"metrics/num-examples": "0..1000000", "metrics/loss": "0..1000 3 decimals"},
        }
    }
    assert AppLimits(replies=found).by_type["train"].passed(content(), 11)


# ---- when answers leave --------------------------------------------------------------------------


@pytest.mark.parametrize(("took", "leaves"), [(0.1, 5), (4.9, 5), (5.1, 10), (12, 15)])
@pytest.mark.parametrize("fails", [False, True])
def test_answers_and_refusals_leave_in_slots(
    monkeypatch: pytest.MonkeyPatch, took: float, leaves: float, fails: bool
) -> None:
    now = [100.0]
    monkeypatch.setattr(gate.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(gate.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    try:
        with gate.in_slots(limits(slot_seconds=5)):
            now[0] += took
            if fails:
                raise RefusedError("app", "it failed")
    except RefusedError:
        assert fails
    assert now[0] == pytest.approx(100 + leaves)


# ---- entries -------------------------------------------------------------------------------------


def test_an_app_is_allowed_by_its_hash_and_no_longer_if_its_bundle_changes(tmp_path: Path) -> None:
    apps = AllowedApps(tmp_path / "apps")
    bundle = bundle_that(SIMPLE)
    made = apps.allow(bundle, limits())
    assert bundle_that(SIMPLE) == bundle, "bundles of the same files are the same"
    assert apps.find(made.sha256) == made
    assert made.name == "somebody/theirs 1.0.0"
    assert apps.find("0" * 64) is None
    assert apps.find("../../etc/passwd") is None
    assert (tmp_path / "apps").stat().st_mode & 0o077 == 0
    path = tmp_path / "apps" / f"{made.sha256}.fab"
    path.write_bytes(bundle + b"x")
    with pytest.raises(ConfigError, match="was changed"):
        apps.find(made.sha256)
    apps.remove(made.sha256)
    assert apps.find(made.sha256) is None
    with pytest.raises(ConfigError, match="status"):
        apps.remove(made.sha256)
    with pytest.raises(ConfigError, match="no bundle"):
        apps.allow(b"not a bundle", limits())


def test_without_a_gate_there_is_no_release() -> None:
    with pytest.raises(ConfigError, match="behind no gate"):
        load_release()


def test_files_of_the_node_may_not_lie_where_apps_read() -> None:
    with pytest.raises(ConfigError, match=r"patients\.csv of this node lies in"):
        runner.refuse_within_reach([readable_folders()[0] / "data" / "patients.csv"])


# ---- through the door ----------------------------------------------------------------------------


@linux
def test_replies_pass_the_door_of_the_node(tmp_path: Path) -> None:
    body = "import time\ncontext.state['n'] = ConfigRecord({'times': len(context.state)})\n" + SIMPLE
    allowed = limits(replies_per_run=2, mb_per_run=0.0004)
    server = AppServer(make_node(tmp_path), bundle_that(body), allowed)
    assert server.ask("evaluate") is None, "not a type that is listed"
    first, second = server.ask(), server.ask()
    assert first is not None
    assert second is not None
    assert server.context.state["n"]["times"] == 1, "what it remembered came back"
    assert server.ask() is None, "no more than replies_per_run"
    server.start(2)
    assert server.ask() is not None
    note = EgressLedger(server.node.folder / "egress.json").read()
    assert [run.app_replies for run in note.runs.values()] == [2, 1]
    assert sum(map(len, note.releases.values())) == 1, "the same release as of any other run"
    assert set(server.refusals) == {"RefusedError: This node refuses to answer: app."}
    egress = read_egress(server.node.folder)
    assert [run.refusals for run in egress] == [{"app": 2}, {}]
    assert sum(egress[0].bytes.values()) == note.runs["1"].app_bytes == 320


@linux
def test_a_hostile_process_is_ended_and_says_nothing(tmp_path: Path) -> None:
    """Too slow, too much memory, bytes that are no reply, a length nobody has the memory for."""
    node = make_node(tmp_path)
    find = "import os\nout = [n for n in range(3, 64) if os.path.exists(f'/dev/fd/{n}') or not os.system]\n"
    write = "for n in range(3, 64):\n    try:\n        os.write(n, {})\n    except OSError:\n        pass\nos._exit(0)"
    for body in (
        "while True:\n    pass",
        "return reply(message, np.zeros(10**10))",
        find + write.format("b'\\0' * 7 + b'\\x20' + b'TAKEN' * 100"),
        find + write.format("b'\\xff' * 64"),
        "import os\nos.kill(os.getpid(), 6)",
    ):
        server = AppServer(node, bundle_that(body), limits(seconds=3, memory_mb=1024))
        assert server.ask() is None
        assert server.refusals == ["RefusedError: This node refuses to answer: app."]


# ---- walls ---------------------------------------------------------------------------------------


@linux
def test_where_walls_do_not_stand_nothing_is_run_unless_the_node_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "run", partial(runner.run, asked=("namespaces",)))
    for walls, answered in (("required", False), ("any", True)):
        folder = tmp_path / walls
        folder.mkdir()
        server = AppServer(make_node(folder, app_walls=walls), bundle_that(SIMPLE))
        assert (server.ask() is not None) == answered
        said = json.loads((server.node.folder / "egress.jsonl").read_text().splitlines()[-1])["facts"]
        assert "OPEN: network, processes" in said["walls" if answered else "reason"]


def test_walls_are_enough_only_if_nothing_tried_succeeded() -> None:
    whole = Standing(namespaces=True, landlock=7, seccomp=True, closed=Standing.TRIED)
    assert whole.enough
    assert replace(whole, namespaces=False).enough
    assert replace(whole, landlock=0).enough
    for less in ({"seccomp": False}, {"namespaces": False, "landlock": 0}, {"closed": Standing.TRIED[1:]}):
        assert not replace(whole, **less).enough


# ---- the tripwire --------------------------------------------------------------------------------


def test_numbers_of_raw_records_do_not_leave(tmp_path: Path) -> None:
    node = make_node(tmp_path, table=write_canaries(tmp_path))
    handed: list[Any] = []
    server = AppServer(node, bundle_that(SIMPLE))

    def ask(job: Any, *_: Any, **__: Any) -> Any:
        handed.append(job)
        raise RefusedError("app", "far enough")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "run", ask)
        server.ask()
    release = gate.Released.from_bytes(handed[0].release)
    table, _ = load_node_table(server.context, limits().settings)
    wire = Tripwire(table, release)
    assert len(wire) > 1000
    raw = table.frame["age"].to_numpy(dtype=np.float32)
    rng = np.random.default_rng(0)
    wire.check([release.train.features, rng.normal(size=100_000).astype(np.float32), np.arange(500.0)])
    wire.check([raw[:2]])
    for leaked in (raw[:40], (raw[:40] / 110).astype(np.float64), np.concatenate([raw[:40], np.zeros(10**5)])):
        with pytest.raises(UpdateRejectedError, match="numbers of raw records"):
            wire.check([leaked])
    tree = json.dumps({"split_conditions": [round(float(x), 6) for x in table.frame["bmi"][:40]]}).encode()
    with pytest.raises(UpdateRejectedError, match="numbers of raw records"):
        wire.check([np.frombuffer(tree, dtype=np.uint8)])
    shown = set(release.train.frame.columns)
    assert shown == {"age", "bmi", "sex", "ill"}, "neither names nor columns that are carried along"
    assert tomllib.loads(limits_text(limits()))["replies"]["train"] == REPLY


def test_a_damaged_entry_is_refused_and_its_reason_stays_here(tmp_path: Path) -> None:
    server = AppServer(make_node(tmp_path), bundle_that(SIMPLE))
    entry = server.node.folder / "apps" / f"{server.app.sha256}.toml"
    entry.write_text("bits = 'many'", encoding="utf-8")
    with pytest.raises(RefusedError, match=r"^This node refuses to answer: app\.$"):
        gate.allowed_app(server.context)
