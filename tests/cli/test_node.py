"""`fedanon node`, where no process of Flower's is needed."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedanon.errors import ConfigError
from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.deployment.node import KEY, PEERS, NodeFolder
from fedanon.federated.door import content_bytes
from fedanon.federated.gate.allowed import limits_text
from fedanon.fields import build
from fedanon.io.keys import node_keys
from fedanon.joint.signing import NodeIdentity
from tests.cli.conftest import Run
from tests.federated.deployed import write_tables
from tests.federated.foreign import bundle_that, limits
from tests.federated.hostile_server import TEMPLATE, HostileServer, make_node


@pytest.fixture
def node(tmp_path: Path, run: Run) -> NodeFolder:
    [table] = write_tables(tmp_path, 1, 40)
    options = ("--server", "127.0.0.1:9443", "--data", table, "--schema", tmp_path / "schema.toml")
    done = run("node", "init", tmp_path / "node", *options)
    assert done.code == 0, done.err
    assert "give it to the other nodes" in done.err
    return NodeFolder(tmp_path / "node")


def test_a_new_node_signs_by_its_own_key_and_asks_for_signatures(node: NodeFolder) -> None:
    def known() -> int:
        return len(NodeIdentity.from_config(node.config.for_flower(node.folder)).peers or ())

    assert known() == 1, "itself"
    for name in ("node", "other"):
        text = node.public_key.encode() if name == "node" else node_keys().public
        (node.folder / "peers" / f"{name}.pub").write_bytes(text)
    assert known() == 2


def test_a_key_that_cannot_be_read_is_told_at_the_start(node: NodeFolder) -> None:
    node.check()
    (node.folder / "peers" / "other.pub").write_text("not a key")
    with pytest.raises(ConfigError, match=r"other\.pub in peer_keys is not the public key"):
        node.check()


def test_a_node_made_before_there_were_signatures_runs_as_ever(node: NodeFolder) -> None:
    lines = (node.folder / "node.toml").read_text().splitlines()
    old = [line for line in lines if not line.startswith(("identity_key", "peer_keys"))]
    assert len(old) == len(lines) - 2
    (node.folder / "node.toml").write_text("\n".join(old))
    config = NodeFolder(node.folder).config.for_flower(node.folder)
    assert NodeIdentity.from_config(config) == NodeIdentity()


def test_the_former_name_of_the_peers_is_accepted(node: NodeFolder) -> None:
    text = (node.folder / "node.toml").read_text()
    (node.folder / "node.toml").write_text(text.replace("peer_keys", "hospital_keys"))
    with pytest.warns(FutureWarning, match="peer_keys"):
        config = NodeFolder(node.folder).config
    assert config.peer_keys == "peers"
    flower = config.for_flower(node.folder)
    flower["hospital-keys"] = flower.pop("peer-keys")
    with pytest.warns(FutureWarning, match="peer-keys"):
        assert NodeIdentity.from_config(flower).peers is not None


def test_egress_says_what_left_and_what_was_refused(node: NodeFolder, run: Run, tmp_path: Path) -> None:
    nothing = run("node", "egress", node.folder)
    assert nothing.code == 0
    assert "0 runs, 0 bytes in all" in nothing.out
    (tmp_path / "asked").mkdir()
    server = HostileServer(make_node(tmp_path / "asked"))
    model = [np.zeros(4), np.zeros(1)]
    server.ask("query")
    for number in (1, 2):
        server.ask("train", model, number)
        server.ask("evaluate", model, number)
    server.start(replace(TEMPLATE, method="identity", method_settings={}))
    server.ask("query")
    first, second = run("node", "egress", server.node.folder, "--json").json["runs"]
    assert first["answers"] == {
        "numbers of rows, and metrics of the release": 1,
        "model updates trained on the release": 2,
        "scores on a k-anonymous release of the test people": 2,
    }
    sent = sum(content_bytes(reply) for reply in server.replies)
    assert sum(first["bytes"].values()) == sent
    assert list(first["releases"].values()) == ["mondrian (k=5)"]
    assert (second["answers"], second["refusals"]) == ({}, {"method": 1})
    shown = run("node", "egress", server.node.folder)
    assert "refused: method" in shown.out
    assert f"2 runs, {sent} bytes in all. releases of one data file: 1 of 1" in " ".join(shown.out.split())
    log = server.node.folder / "egress.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"k":5', b'"k":9', 1))
    changed = run("node", "egress", server.node.folder)
    assert changed.code != 0
    assert "Line 1 of egress.jsonl does not fit" in changed.err


def test_the_example_is_what_init_writes() -> None:
    path = Path(__file__).parents[2] / "clients"
    text = (path / "node.example.toml").read_text(encoding="utf-8")
    config = build(NodeConfig, tomllib.loads(text))
    assert config.to_toml() == text
    own = ("server", "data", "schema")
    assert replace(config, **{name: getattr(NodeConfig(), name) for name in own}) == NodeConfig(
        identity_key=KEY, peer_keys=PEERS
    )


def test_init_takes_an_address_and_a_query(run: Run, tmp_path: Path) -> None:
    own = ("--schema", tmp_path / "schema.toml", "--server", "127.0.0.1:9443", "--query", "SELECT * FROM stays")
    made = run("node", "init", tmp_path / "node", "--data", "postgresql://host/ward", *own)
    assert made.code == 0, made.err
    config = NodeFolder(tmp_path / "node").config
    assert (config.data, config.query) == ("postgresql://host/ward", "SELECT * FROM stays")
    told = run("node", "init", tmp_path / "other", "--data", "postgresql://me:secret@host/ward", *own)
    assert (told.code, (tmp_path / "other").exists()) == (2, False)
    assert "secret" not in told.err


def test_an_app_is_allowed_shown_and_disallowed(tmp_path: Path, node: NodeFolder, run: Run) -> None:
    (tmp_path / "app.fab").write_bytes(bundle_that("return reply(message)"))
    (tmp_path / "limits.toml").write_text(limits_text(limits(slot_seconds=5)), encoding="utf-8")
    done = run("node", "allow", node.folder, tmp_path / "app.fab", "--limits", tmp_path / "limits.toml")
    assert done.code == 0, done.err
    assert "Allowed: somebody/theirs 1.0.0, sha256" in done.out
    assert "To 'train' it answers 1 arrays and 2 numbers: metrics/num-examples (0..100000)" in done.out
    [sha256] = node.apps.names()
    shown = run("node", "status", node.folder)
    assert shown.code == 0, shown.err
    assert sha256 in shown.out
    assert "seccomp" in shown.out
    told = json.loads(run("node", "status", node.folder, "--json").out)
    assert set(told["walls"]["closed"]) <= {"files", "network", "processes", "writing"}
    assert run("node", "disallow", node.folder, sha256).code == 0
    assert node.apps.names() == []
    assert run("node", "disallow", node.folder, sha256).code == 2


def test_an_app_that_the_policy_would_refuse_is_not_allowed(tmp_path: Path, node: NodeFolder, run: Run) -> None:
    (tmp_path / "app.fab").write_bytes(bundle_that("return reply(message)"))
    for settings, code in (({"method": "identity", "method_settings": {}}, 4), ({"method_settings": {"k": 2}}, 4)):
        (tmp_path / "limits.toml").write_text(limits_text(limits(**settings)), encoding="utf-8")
        done = run("node", "allow", node.folder, tmp_path / "app.fab", "--limits", tmp_path / "limits.toml")
        assert done.code == code, done.err
    missing = run("node", "allow", node.folder, tmp_path / "none.fab", "--limits", tmp_path / "limits.toml")
    assert missing.code != 0
    assert node.apps.names() == []
