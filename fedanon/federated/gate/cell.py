"""The process of somebody else's app: raises its walls, tells the gate what stands, and only then is given anything.

Started afresh (`python -I -m fedanon.federated.gate.cell`), never forked off a process that has seen a raw row. What it
writes afterwards is not trusted: the gate reads it as it would a stranger's.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from fedanon.federated.gate import walls
from fedanon.federated.gate.frames import read_frame, write_frame

#: bytes of a request; it comes from the gate, which is trusted
_ANY = 1 << 40
APP_FOLDER, RELEASE_FILE = "app", "release.npz"


def main(plan: str, descriptor: str) -> None:
    """In the order that matters: walls, then what stands, then the request, then the app."""
    replies = int(descriptor)
    chosen = walls.WallPlan(**{**(found := json.loads(plan)), "asked": tuple(found["asked"])})
    standing = walls.raise_walls(chosen, walls.fork_guarded(chosen))
    write_frame(replies, json.dumps(standing.to_dict()).encode())
    bundle, message, context, release = (read_frame(0, _ANY) for _ in range(4))
    Path(RELEASE_FILE).write_bytes(release)
    content, state = _answer(bundle, message, context)
    write_frame(replies, content)
    write_frame(replies, state)


def _answer(bundle: bytes, message: bytes, context: bytes) -> tuple[bytes, bytes]:
    """The content of the app's reply, and what it wants to remember."""
    from flwr.common.serde import context_from_proto, message_from_proto, recorddict_to_proto
    from flwr.proto.message_pb2 import Context, Message
    from flwr.supercore.task_identity import TaskIdentity

    from fedanon.federated.gate import released

    asked, told = message_from_proto(Message.FromString(message)), context_from_proto(Context.FromString(context))
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, told.run_id, told.node_id
    with released.handed_over(released.Released.from_bytes(Path(RELEASE_FILE).read_bytes())):
        reply = load_app(bundle, Path(APP_FOLDER).absolute())(asked, told)
    content, state = (recorddict_to_proto(part).SerializeToString() for part in (reply.content, told.state))
    return content, state


def load_app(bundle: bytes, folder: Path) -> Any:
    """Unpack a bundle and import its ClientApp."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as packed:
        packed.extractall(folder)
    sys.path.insert(0, str(folder))
    module, _, name = client_component(bundle).partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def client_component(bundle: bytes) -> str:
    """The place of the ClientApp in a bundle, as its pyproject.toml states it."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as packed:
        project = tomllib.loads(packed.read("pyproject.toml").decode())
    return str(project["tool"]["flwr"]["app"]["components"]["clientapp"])


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(0)  # not through what the app may have left for the end
