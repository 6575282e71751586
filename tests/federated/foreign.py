"""Apps of other people: their bundles, and a server that asks a node to run them."""

from __future__ import annotations

import re
import warnings
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
from fedanon.federated.gate.released import Released

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a library that Flower uses
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


# ---- a table whose every raw value is a canary ---------------------------------------------------

CANARY_SCHEMA = """
name = "ward"
target = "ill"
[attributes.name]
role = "identifying"
type = "text"
[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [0, 110]
[attributes.bmi]
role = "quasi_identifying"
type = "numeric"
range = [10, 50]
[attributes.sex]
role = "quasi_identifying"
type = "categorical"
values = ["F", "M"]
[attributes.lab]
role = "insensitive"
type = "numeric"
range = [0, 1000]
[attributes.ill]
role = "sensitive"
type = "categorical"
values = ["mild", "no", "severe"]
"""


def write_canaries(folder: Path, rows: int = 300) -> Path:
    """A table of which no two numbers are alike, with a name that is random in every row."""
    rng = np.random.default_rng(7)
    (folder / "schema.toml").write_text(CANARY_SCHEMA, encoding="utf-8")
    age, bmi, lab = rng.uniform(18, 90, rows), rng.uniform(15, 45, rows), rng.uniform(0, 1000, rows)
    risk = age / 90 + bmi / 45 + rng.normal(0, 0.2, rows)
    ill = np.select([risk > 1.4, risk > 1.1], ["severe", "mild"], "no")
    lines = ["name,age,bmi,sex,lab,ill"]
    for i in range(rows):
        name = f"CANARY-{rng.integers(16**12):012x}"
        lines.append(f"{name},{age[i]:.6f},{bmi[i]:.6f},{'FM'[rng.integers(2)]},{lab[i]:.6f},{ill[i]}")
    path = folder / "patients.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class Canaries:
    """The raw values of a table that its release does not show, and where they are seen.

    Interval ends of a release are values of someone: what the app was given is taken out.
    """

    def __init__(self, table: Path, given: bytes) -> None:
        lines = [line.split(",") for line in table.read_text(encoding="utf-8").splitlines()[1:]]
        self.names = [line[0].encode() for line in lines]
        numbers = np.array([[float(line[place]) for place in (1, 2, 4)] for line in lines])
        scaled = (numbers - [0, 10, 0]) / [110, 40, 1000]
        self.values = np.setdiff1d(
            np.concatenate([numbers.ravel(), scaled.ravel()]).astype(np.float32), _numbers_in(given)
        ).astype(np.float64)

    def seen_in(self, captured: bytes) -> int:
        written = len(np.intersect1d(_written(captured), self.values.astype(np.float32)))
        stored = sum(np.float64(value).tobytes() in captured for value in self.values)
        return written + stored + sum(name in captured for name in self.names)

    def seen_in_reply(self, reply: Message | None) -> int:
        """Also among the numbers of its arrays; four bytes of one would be met in long texts by chance."""
        found = self.seen_in(bytes_of(reply))
        for record in reply.content.array_records.values() if reply else ():
            sent = [array.numpy().astype(np.float32).ravel() for array in record.values() if array.dtype != "uint8"]
            found += sum(len(np.intersect1d(numbers, self.values.astype(np.float32))) for numbers in sent)
        return found


def _written(data: bytes) -> Any:
    return np.array([float(n) for n in re.findall(rb"\d+\.\d+", data) if len(n) < 30], dtype=np.float32)


def _numbers_in(given: bytes) -> Any:
    release = Released.from_bytes(given)
    parts = [part.features.ravel() for part in (release.train, release.test)]
    return np.concatenate([*parts, _written(release.train.texts + release.test.texts)])
