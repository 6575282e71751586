"""Apps of other people: their bundles, and a server that asks a node to run them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.cli.build import build_fab_from_files
from flwr.supercore.task_identity import TaskIdentity

from fedanon.federated.deployment.node import NodeFolder
from fedanon.federated.gate import BUNDLE, AppLimits
from fedanon.federated.gate.allowed import AllowedApp, AllowedApps
from fedanon.federated.gate.app import allowed_app

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "theirs"
version = "1.0.0"
description = "An app of somebody else"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "somebody"
[tool.flwr.app.components]
serverapp = "theirs.server_app:app"
clientapp = "theirs.client_app:app"
[tool.flwr.app.config]
"""
SERVER = "from flwr.serverapp import ServerApp\napp = ServerApp()\n"
#: the head of an app whose `train` returns four weights, of which it makes what it likes
HEAD = """
import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from fedanon.federated.gate import load_release

app = ClientApp()

def reply(message, weights=(0, 0, 0, 0), loss=0.5, **more):
    arrays = ArrayRecord([np.resize(np.asarray(weights, dtype=np.float32), 4)])
    metrics = MetricRecord({"num-examples": len(load_release().train), "loss": loss})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics, **more}), reply_to=message)

"""
REPLY = {
    "arrays": {"arrays/0": "float32 4"},
    "numbers": {"metrics/num-examples": "0..100000", "metrics/loss": "0..100 3 decimals"},
}


def limits(**more: Any) -> AppLimits:
    return AppLimits(**({"slot_seconds": 0, "seconds": 120, "replies": {"train": REPLY}} | more))


def bundle_of(client: str, server: str = SERVER, config: str = "", **files: str) -> bytes:
    """A bundle as `flwr build` makes it."""
    named = {"pyproject.toml": PROJECT + config, "theirs/__init__.py": "", "theirs/client_app.py": client}
    named |= {"theirs/server_app.py": server, **{f"theirs/{name}.py": text for name, text in files.items()}}
    return build_fab_from_files({name: text.encode() for name, text in named.items()})[0]


def bundle_that(body: str) -> bytes:
    """The bundle of an app with this body of its `train`."""
    indented = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return bundle_of(f"{HEAD}\n@app.train()\ndef train(message, context):\n{indented}\n")


class AppServer:
    """Asks one node, whose people have allowed an app, over and over."""

    def __init__(self, node: NodeFolder, bundle: bytes, allowed: AppLimits | None = None) -> None:
        self.node = node
        self.app: AllowedApp = AllowedApps(node.folder / "apps").allow(bundle, allowed or limits())
        self.refusals: list[str] = []
        self.start(1)

    def start(self, run_id: int, config: Mapping[str, Any] | None = None) -> None:
        """Begin another run."""
        own = self.node.config.for_flower(self.node.folder) | {BUNDLE: self.app.sha256}
        self.context = Context(run_id, 1, own, RecordDict(), dict(config or {}))

    def ask(self, kind: str = "train", content: RecordDict | None = None) -> Message | None:
        """The node's answer, or None."""
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, self.context.run_id, 0
        asked = content or RecordDict({"arrays": ArrayRecord([np.zeros(4, np.float32)]), "config": ConfigRecord({})})
        message = Message(asked, dst_node_id=1, message_type=kind, group_id="1")
        message.metadata.__dict__["_message_id"] = "1"
        handler = allowed_app(self.context)
        assert handler is not None
        try:
            return handler(message, self.context)
        except Exception as error:
            self.refusals.append(f"{type(error).__name__}: {error}")
            return None


def bytes_of(message: Message | None) -> bytes:
    """Everything a reply says."""
    if message is None:
        return b""
    found = [repr(message.metadata.__dict__).encode()]
    for name, record in message.content.items():
        found.append(name.encode())
        for key, value in record.items():
            found += [key.encode(), value.data if isinstance(value, Array) else repr(value).encode()]
            found += [np.float64(value).tobytes()] if isinstance(value, float) else []
    return b"\n".join(found)


def folder_bytes(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
