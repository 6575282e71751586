"""The policy of a node as a file: every line is explained and read back, and what cannot be is rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedanon.errors import ConfigError
from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.policy import NodePolicy
from tests.federated.hostile_server import (
    make_node,
)


def test_the_file_of_a_new_node_says_what_every_line_means_and_is_read_back(tmp_path: Path) -> None:
    node = make_node(tmp_path, min_k=7)
    text = (node.folder / "node.toml").read_text(encoding="utf-8")
    assert NodeConfig.read(node.folder) == node.config
    assert text.count("\n# ") >= len(NodeConfig.__dataclass_fields__)
    assert NodePolicy.from_config(node.config.for_flower(node.folder)) == NodePolicy(min_k=7)
    assert (node.folder / "split.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"methods": "mondrain"}, "Unknown methods in the policy: mondrain"),
        ({"methods": "mondrian:five"}, "must be followed by a whole number"),
        ({"counts": ""}, "must name rules"),
        ({"counts": "open"}, "Unknown rules for counts"),
        ({"require": "l=2"}, "must say what it is about"),
        ({"min_test_share": 0.6}, "is larger than its 'max_test_share'"),
        ({"scores": "private", "split": "run"}, "Private scores need split = 'secret'"),
        ({"scores": "private", "max_epsilon": 1.0}, "may not be larger than its 'max_epsilon'"),
        ({"scores": "all"}, "'scores' parameter"),
        ({"min_test": 0}, "'min_test' parameter"),
    ],
)
def test_a_policy_that_cannot_be_is_told(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        NodeConfig(**policy)
