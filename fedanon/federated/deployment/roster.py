"""The nodes a server knows: one public key per file, under the node's name, and the same list in a running SuperLink.

A key that was removed is never accepted again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedanon.errors import ConfigError, DataError, InfeasibleError
from fedanon.federated.deployment import processes
from fedanon.federated.deployment.folders import private_folder, write_private
from fedanon.io.keys import check_public_key

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: what `fedanon node init` writes after a public key
NUMBER = re.compile(rb" number=\d+$")


class Roster:
    """The keys in a server's folder.

    Parameters
    ----------
    folder : of the server.
    """

    def __init__(self, folder: Path) -> None:
        self._registered = folder / "nodes"
        self._removed = folder / "removed"

    def keys(self) -> list[Path]:
        """The files of the registered keys."""
        return sorted(self._registered.glob("*.pub"))

    def names(self) -> list[str]:
        """The registered nodes."""
        return [path.stem for path in self.keys()]

    def add(self, key: Path, name: str) -> None:
        """Keep a node's public key."""
        if not NAME.fullmatch(name):
            raise ConfigError("The name of a node must be letters, digits, '.', '_' or '-', at most 64.")
        try:
            text = key.read_bytes()
        except OSError:
            raise DataError(f"The key {key.name} cannot be read.") from None
        public, path = check_public_key(text), self._path(name)
        if path.exists() and check_public_key(path.read_bytes()) != public:
            raise ConfigError(f"A node named {name} is registered with another key.")
        if any(check_public_key(removed.read_bytes()) == public for removed in self._removed.glob("*.pub")):
            raise ConfigError("This key was removed; the node needs a new one, which `fedanon node init` makes.")
        self._check_number(text, path)
        private_folder(self._registered)
        write_private(path, public.rstrip() + _comment(text) + b"\n")

    def _check_number(self, text: bytes, path: Path) -> None:
        """Refuse the number of a node if another has it; keys of older versions do not say theirs."""
        for other in self.keys():
            if _comment(text) and other != path and _comment(other.read_bytes()) == _comment(text):
                raise ConfigError(
                    f"The node {other.stem} has this node's{_comment(text).decode().replace('=', ' ')}: "
                    "make its folder anew by `fedanon node init --number`, with another one."
                )

    def remove(self, name: str) -> None:
        """Put a node's key among those that are never taken again."""
        if name not in self.names():
            known = ", ".join(self.names()) or "none"
            raise ConfigError(f"No node named {name!r} is registered; registered: {known}.")
        public = self._path(name).read_bytes()
        private_folder(self._removed)
        write_private(self._removed / f"{name}-{hashlib.sha256(public).hexdigest()[:16]}.pub", public)
        self._path(name).unlink()

    def _path(self, name: str) -> Path:
        return self._registered / f"{name}.pub"


def _comment(text: bytes) -> bytes:
    """The number a key was made for, as it stands after it; empty if it does not say."""
    found = NUMBER.search(text.rstrip())
    return found.group() if found else b""


# ---- the keys a running SuperLink lets in, in one process: Flower's starts take seconds ----------
#
# The SuperLink looks a key up at every request of a node, so a key that is taken off the list is refused at once, also
# in the middle of a run. Flower never forgets such a key, and never takes it on again.

GONE = "unregistered"
DONE = "registered "
STOP, LIST = "--stop-runs", "--list"
LISTED = "nodes "


def let_in(keys: Sequence[Path], link: str, env: Mapping[str, str], *, stop_runs: bool = False) -> list[str]:
    """Let in the keys, under the names of their files, and no others; return the names that failed.

    ``stop_runs`` also stops every run the SuperLink takes for one that goes on: where its server has just started, it
    is one whose processes are dead, and nodes are not to answer it.

    Raises
    ------
    InfeasibleError
        If the SuperLink could not be reached, so that a key may be let in that should not.
    """
    command = ["-m", __name__, link, *([STOP] if stop_runs else []), *map(str, keys)]
    done, said = processes.call_python(command, env, seconds=120 + 5 * len(keys))
    if not done:
        raise InfeasibleError("The SuperLink did not accept the list of nodes that may take part.")
    registered = {line.removeprefix(DONE) for line in said.splitlines() if line.startswith(DONE)}
    return [key.stem for key in keys if key.stem not in registered]


def nodes_of(link: str, env: Mapping[str, str]) -> list[dict[str, Any]]:
    """The nodes a SuperLink knows, by the names they were registered under; empty if it cannot be asked."""
    done, said = processes.call_python(["-m", __name__, link, LIST], env, seconds=60)
    lines = [line.removeprefix(LISTED) for line in said.splitlines() if line.startswith(LISTED)] if done else []
    return list(json.loads(lines[0])) if lines else []


def main() -> None:
    """In the process: the name of the SuperLink, what else to do, then the files."""
    from flwr.cli.flower_config import read_superlink_connection
    from flwr.cli.supernode.register import try_load_public_key
    from flwr.cli.utils import init_http_client_from_connection
    from flwr.proto.control_pb2 import (
        ListNodesRequest,
        ListRunsRequest,
        RegisterNodeRequest,
        StopRunRequest,
        UnregisterNodeRequest,
    )

    link, *files = sys.argv[1:]
    asked, files = files[:1], [file for file in files if file not in (STOP, LIST)]
    wanted = {try_load_public_key(Path(file)): Path(file).stem for file in files}
    control = init_http_client_from_connection(read_superlink_connection(link))
    if asked == [LIST]:
        known_nodes = control.ListNodes(ListNodesRequest()).nodes_info
        print(LISTED + json.dumps([{"name": n.name or _unnamed(n.node_id), "status": n.status} for n in known_nodes]))
        return
    if asked == [STOP]:
        for run in control.ListRuns(ListRunsRequest()).run_dict.values():
            if run.status.status != "finished":
                with contextlib.suppress(Exception):  # it may have ended meanwhile
                    control.StopRun(StopRunRequest(run_id=run.run_id))
        if not files:  # a server without keys: its nodes register themselves
            return
    nodes = control.ListNodes(ListNodesRequest()).nodes_info
    known = {node.public_key: node.node_id for node in nodes if node.status != GONE}
    for key in known.keys() - wanted.keys():
        control.UnregisterNode(UnregisterNodeRequest(node_id=known[key]))
    for key, name in wanted.items():
        try:
            if key not in known:
                control.RegisterNode(RegisterNodeRequest(public_key=key, name=name))
            print(f"{DONE}{name}")
        except Exception as error:  # the others are still to be registered
            print(f"failed {name}: {error}")


def _unnamed(node: int) -> str:
    from fedanon.learning.participants import unnamed  # seconds of imports, for nodes of servers without keys alone

    return unnamed(node)


if __name__ == "__main__":
    main()
