"""`fedanon node`, where no process of Flower's is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedanon.errors import ConfigError
from fedanon.federated.deployment.node import NodeFolder
from fedanon.io.keys import node_keys
from fedanon.joint.signing import NodeIdentity
from tests.cli.conftest import Run
from tests.federated.deployed import write_tables


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
