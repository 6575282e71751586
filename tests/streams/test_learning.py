"""Nodes that learn from the windows of gateways: by the local engine, behind their own doors, and in simulated days."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from fedanon.data.schema import Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.errors import ConfigError, PrivacyViolationError
from fedanon.federated import wire
from fedanon.federated.client import client_app
from fedanon.federated.deployment import worker
from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.deployment.node import NodeFolder
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.federated.stream_simulation import simulate_streams
from fedanon.learning.egress_ledger import EgressLedger
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import make_model
from fedanon.models.outcome import Outcome
from fedanon.streams.config import GatewayConfig
from fedanon.streams.drift import drift_by_column, stability_index
from fedanon.streams.learning_node import StreamNode
from fedanon.streams.running import replay_file
from fedanon.streams.window_check import check_windows
from fedanon.streams.windowed import AUDIT_FILE, WindowedStream
from tests.streams.wards import QUASI, SCHEMA, readings

METHODS = {"people": "k = 4\ndelay = 60\nactive = 60\nepoch = 300", "records": "k = 4\ndelay = 40"}
STREAM = RunSettings(method="stream", method_settings={"k": 4, "windows": 3}, model="lr", rounds=3)


def ward() -> Schema:
    """Readings with a target: whether the pressure is high, which grows with age."""
    attributes = {**SCHEMA["attributes"], "high": {"role": "sensitive", "type": "categorical", "values": ["no", "yes"]}}
    del attributes["pressure"]
    return Schema.from_dict({**SCHEMA, "target": "high", "attributes": attributes})


def publish(folder: Path, seed: int, count: int = 1200, claim: str = "people", shift: float = 0.0) -> Path:
    """The windows of a gateway; with ``shift``, the second half of the stay brings older people."""
    folder.mkdir(parents=True)
    (folder / "ward.toml").write_text(schema_toml(ward()), encoding="utf-8")
    (folder / "gateway.toml").write_text(
        f'schema = "ward.toml"\nclaim = "{claim}"\ntime = "time"\nstep = 10\n[method]\n{METHODS[claim]}\n'
        '[sink]\nseconds = 60\nformat = "csv"\n',
        encoding="utf-8",
    )
    frame = readings(seed, 60, count, gap=25.0, absent=0.2).drop(columns="pressure")
    rng = np.random.default_rng(seed)
    late = frame["time"] > frame["time"].max() / 2
    frame["age"] = np.where(late, np.minimum(frame["age"] + int(shift), 100), frame["age"])
    frame["high"] = np.where(frame["age"] + rng.normal(0, 15, len(frame)) > 55, "yes", "no")
    lines = frame.to_json(orient="records", lines=True)
    (folder / "in.jsonl").write_text(lines, encoding="utf-8")
    replay_file(GatewayConfig.read(folder / "gateway.toml"), folder / "in.jsonl")
    return folder / "windows"


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("gateways")
    return [publish(folder / f"ward{seed}", seed) for seed in range(2)]


def node_folder(folder: Path, windows: Path, number: int = 0, **policy: Any) -> NodeFolder:
    schema = str(windows.parent / "ward.toml")
    config = NodeConfig(stream=str(windows), schema=schema, number=number, **{"min_k": 4, **policy})
    return NodeFolder.init(folder, config, None)


def grid_of(nodes: list[NodeFolder], settings: RunSettings) -> LocalGrid:
    """The local engine with nodes behind their own doors."""
    grid = LocalGrid(client_app(), settings, len(nodes))
    for node_id, node in enumerate(nodes, 1):
        grid._contexts[node_id] = Context(
            run_id=1,
            node_id=node_id,
            node_config=node.config.for_flower(node.folder),
            state=RecordDict(),
            run_config=wire.encode_settings(settings),
        )
    return grid


@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_nodes_learn_from_windows_through_their_doors(model: str, gateways: list[Path], tmp_path: Path) -> None:
    settings = replace(STREAM, model=model)
    nodes = [node_folder(tmp_path / f"node{i}", windows, i) for i, windows in enumerate(gateways)]
    for node in nodes:
        node.check()
    outcome = FederatedRun(grid_of(nodes, settings), settings, forgetful=True, ask_egress=True).run()
    assert len(outcome.rounds) == 3
    assert outcome.rejected == outcome.unresponsive == []
    assert outcome.counted == "people"
    assert all(facts.measures["k_reached"] == 4 for facts in outcome.facts.values())
    assert outcome.rounds[-1]["accuracy_released"] > 0.6
    assert outcome.egress is not None
    assert outcome.egress[0]["updates"] == outcome.egress[0]["evaluations"] == 3
    noted = EgressLedger(nodes[0].folder / "egress.json").read()
    assert [len(made) for made in noted.releases.values()] == [1]


def test_windows_that_come_between_rounds_are_learned_and_are_no_other_release(tmp_path: Path) -> None:
    windows = publish(tmp_path / "ward", 3)
    manifests = sorted(windows.glob("*.manifest.json"))
    held = {path: path.read_bytes() for path in manifests[4:]}
    for path in held:
        path.unlink()
    node = node_folder(tmp_path / "node", windows)
    grid = grid_of([node], STREAM)
    seen: list[int] = []

    def more(scores: dict[str, Any]) -> None:
        path = manifests[4 + len(seen)]
        path.write_bytes(held[path])
        kept = json.loads((node.folder / "store" / AUDIT_FILE).read_text(encoding="utf-8"))
        seen.append(kept["counts"][0])

    outcome = FederatedRun(grid, STREAM, forgetful=True, on_round=more).run()
    assert seen == [4, 5, 6]
    assert outcome.rejected == outcome.unresponsive == []
    assert [len(made) for made in EgressLedger(node.folder / "egress.json").read().releases.values()] == [1]


def test_what_all_windows_together_show_is_verified_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    windows = publish(tmp_path / "ward", 4)
    schema = Schema.read(tmp_path / "ward" / "ward.toml")
    stream = WindowedStream(windows, schema, tmp_path / "store")
    assert stream.verify(3) == 3
    again = WindowedStream(windows, schema, tmp_path / "store")
    assert again.verified == 3
    again.verify()
    whole = check_windows(windows, QUASI)
    assert (again.verified, again._audit.rows, again._audit.broken) == (whole.windows, whole.rows, 0)
    last = sorted(windows.glob("*.csv"))[-1]
    lines = last.read_text(encoding="utf-8").splitlines(keepends=True)
    last.write_text("".join([*lines, lines[-1]]), encoding="utf-8")  # a row twice breaks no claim; one less may
    with pytest.raises(PrivacyViolationError, match="is not the file"):
        WindowedStream(windows, schema).verify()
    node = node_folder(tmp_path / "node", windows)
    reply = _ask(node, STREAM)
    assert reply.has_error()
    assert reply.error.reason == "This node refuses to answer: privacy."


@pytest.mark.parametrize(
    ("policy", "asked", "refusal"),
    [
        ({"min_k": 5}, {"k": 5}, "privacy"),  # the stream claims 4
        ({"min_k": 5}, {"k": 4}, "k"),
        ({"methods": "mondrian"}, {"k": 4}, "method"),
        ({"require": "l=2:high"}, {"k": 4}, "requirements"),
        ({"scores": "private"}, {"k": 4}, "settings"),
    ],
)
def test_the_policy_of_a_node_holds_for_its_stream(
    policy: dict[str, Any], asked: dict[str, int], refusal: str, gateways: list[Path], tmp_path: Path
) -> None:
    node = node_folder(tmp_path / "node", gateways[0], **policy)
    reply = _ask(node, RunSettings(method="stream", method_settings=asked))
    assert reply.has_error()
    assert reply.error.reason == f"This node refuses to answer: {refusal}."


def test_a_stream_takes_no_other_method_and_no_budget(gateways: list[Path], tmp_path: Path) -> None:
    node = node_folder(tmp_path / "node", gateways[0])
    reply = _ask(node, RunSettings(method="mondrian", method_settings={"k": 5}))
    assert reply.error.reason == "This node refuses to answer: settings."
    stream = WindowedStream(gateways[0], ward())
    noisy = RunSettings(method="stream", dp_settings={"mode": "central", "epsilon": 1.0})
    with pytest.raises(ConfigError, match="adds no noise"):
        StreamNode(stream, noisy, 0)


def _ask(node: NodeFolder, settings: RunSettings) -> Any:
    content = wire.request_content(0, wire.pack_arrays([]))
    [reply] = grid_of([node], settings).send_and_receive([wire.request(1, "query", 0, content)])
    return reply


def test_records_are_counted_where_no_pseudonym_tells_people_apart(tmp_path: Path) -> None:
    windows = publish(tmp_path / "ward", 5, claim="records")
    node = StreamNode(WindowedStream(windows, ward()), STREAM, 0)
    assert node.facts.counted == "records"


# ---- simulated days ------------------------------------------------------------------------------


def test_drift_shows_where_people_change(tmp_path: Path) -> None:
    moved = publish(tmp_path / "moved", 6, 2500, shift=45)
    still = publish(tmp_path / "still", 6, 2500)
    run = RunSettings(method="stream", method_settings={"k": 4, "windows": 6, "tested": 3}, rounds=6)
    found = simulate_streams([moved, still], ward(), run).to_dict()
    assert [one["round"] for one in found["rounds"]] == [1, 2, 3, 4, 5, 6]
    moments = [one["moment"] for one in found["rounds"]]
    assert moments == sorted(moments)
    last = found["rounds"][-1]["drift"]
    assert last["moved"]["high"] > 0.25 > last["still"]["high"]
    assert last["moved"]["age"] > last["still"]["age"]  # little, as cells are wide
    assert "time" not in last["moved"]


def test_trees_are_added_while_windows_come(gateways: list[Path]) -> None:
    run = replace(STREAM, model="xgb", rounds=4)
    found = simulate_streams(gateways, ward(), run).to_dict()
    assert found["rejected"] == []
    areas = [one["auc_pooled_released"] for one in found["rounds"]]
    assert len(areas) == 4
    assert areas[-1] > 0.6


def test_the_stability_index_is_that_of_its_definition() -> None:
    # (.3 - .2) ln(.3 / .2) + (.7 - .8) ln(.7 / .8)
    assert stability_index(np.array([0.2, 0.8]), np.array([0.3, 0.7])) == pytest.approx(0.0538997, abs=1e-6)
    assert stability_index(np.array([0.2, 0.8]), np.array([0.2, 0.8])) == 0.0


def test_drift_of_a_release_with_itself_is_none(gateways: list[Path]) -> None:
    stream = WindowedStream(gateways[0], ward())
    stream.verify()
    release = stream.release(0, 3)
    drift = drift_by_column(release, release, skip="time")
    assert set(drift) == {*QUASI, "high"}
    assert all(value == 0.0 for value in drift.values())


def test_forked_workers_keep_the_weight_a_node_has_stated(tmp_path: Path) -> None:
    """A deployed node answers every message in a fork, which ends with its reply."""
    windows = publish(tmp_path / "ward", 7)
    manifests = sorted(windows.glob("*.manifest.json"))
    held = {path: path.read_bytes() for path in manifests[4:]}
    for path in held:
        path.unlink()
    node = node_folder(tmp_path / "node", windows)
    context = grid_of([node], STREAM)._contexts[1]

    def ask(kind: str, number: int, arrays: list[Any]) -> Any:
        reply = worker.answer(
            wire.request(1, kind, number, wire.request_content(number, wire.pack_arrays(arrays))), context, lambda: None
        )
        assert not reply.has_error(), reply.error
        return reply

    _, facts = wire.read_facts(ask("query", 0, []))
    reference = make_model(STREAM, Outcome(2)).initial(facts.width)
    before = wire.read_update(ask("train", 1, reference))
    for path, content in held.items():
        path.write_bytes(content)
    after = wire.read_update(ask("train", 2, reference))
    assert before[1] == after[1] == facts.n_train
    assert not np.array_equal(before[2][0], after[2][0]), "it has learned from other windows"
    kept = json.loads((node.folder / "store" / AUDIT_FILE).read_text(encoding="utf-8"))
    assert kept["counts"][0] == len(manifests)
