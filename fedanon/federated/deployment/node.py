"""A node of a deployed federation: its folder and its SuperNode."""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import time
from pathlib import Path

from fedanon.errors import ConfigError, InfeasibleError
from fedanon.federated.deployment import processes, worker
from fedanon.federated.deployment.certificates import read_in_force
from fedanon.federated.deployment.config import NODE_FILE, SPLIT_KEY, NodeConfig
from fedanon.federated.deployment.folders import new_private_folder, private_folder, toml_text, write_private
from fedanon.federated.deployment.processes import leaving_on_signals, running
from fedanon.federated.policy import KEY_BYTES
from fedanon.io.keys import node_keys
from fedanon.joint.signing import NodeIdentity

KEY = "node.key"
PUBLIC_KEY = "node.pub"
#: the folder for the public keys of the other nodes
PEERS = "peers"


class NodeFolder:
    """A node's folder.

    Parameters
    ----------
    folder : made by :meth:`init`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.config = NodeConfig.read(self.folder)

    @classmethod
    def init(cls, folder: Path, config: NodeConfig, ca: Path | None) -> NodeFolder:
        """Make the folder: a key pair, and `node.toml`. ``ca`` is the server's `ca.crt`, if at hand."""
        certificate = read_in_force(ca) if ca else None
        keys = node_keys()
        new_private_folder(folder)
        write_private(folder / KEY, keys.private)
        write_private(folder / PUBLIC_KEY, keys.public)
        if certificate:
            write_private(folder / config.ca, certificate)
        if config.peer_keys == PEERS:
            private_folder(folder / PEERS)
        write_private(folder / NODE_FILE, config.to_toml())
        make_split_key(folder)
        return cls(folder)

    @property
    def public_key(self) -> str:
        """What the server has to register."""
        return (self.folder / PUBLIC_KEY).read_text(encoding="ascii").strip()

    def command(self, *, insecure: bool) -> tuple[list[str], dict[str, str]]:
        """The SuperNode's command line and environment."""
        self._check_table()
        make_split_key(self.folder)
        NodeIdentity.from_config(self.config.for_flower(self.folder))  # likewise reported at once
        path = self.folder / "flower-node.toml"
        write_private(path, toml_text(self.config.for_flower(self.folder)))
        start = [processes.command("flower-supernode"), "--superlink", self.config.server, "--node-config", str(path)]
        start += ["--host", "127.0.0.1", "--port", str(_free_port())]
        start += ["--insecure"] if insecure else self._secure()
        first = worker.install_command(self.folder / "bin")
        return start, processes.environment(private_folder(self.folder / "flower"), first=first)

    def run(self, *, insecure: bool, tries: int = 0, pause: float = 5.0) -> None:
        """Take part in runs until ended; a server that is away or does not know the key yet is tried again.

        Parameters
        ----------
        insecure : without TLS and keys.
        tries : how many times to start; 0 is without end.
        pause : seconds between them.
        """
        os.umask(processes.UMASK)
        with leaving_on_signals(), worker.listening() as listener:
            for number in itertools.count(1):
                start, env = self.command(insecure=insecure)
                with running(start, env | {worker.VARIABLE: listener.getsockname()}) as process:
                    worker.serve(listener, process)
                if number == tries:
                    raise InfeasibleError(
                        "The server could not be reached, is not the one of ca.crt, or refused the key."
                    )
                time.sleep(pause)

    def _secure(self) -> list[str]:
        ca = self.folder / self.config.ca
        if not ca.exists():
            raise ConfigError(f"Copy the server's ca.crt into the folder of this node, as {self.config.ca}.")
        read_in_force(ca)
        return ["--root-certificates", str(ca), "--auth-supernode-private-key", str(self.folder / KEY)]

    def _check_table(self) -> None:
        """Report a table that cannot be read here, at once, to the people who can mend it."""
        from fedanon.data.readers import read_table
        from fedanon.data.schema import Schema

        schema = Schema.read(self.folder / self.config.schema)
        read_table(self.folder / self.config.data, schema, missing=self.config.missing)  # type: ignore[arg-type]


def make_split_key(folder: Path) -> None:
    """Make the key of a node's split, unless it has one."""
    if not (folder / SPLIT_KEY).exists():
        write_private(folder / SPLIT_KEY, secrets.token_bytes(KEY_BYTES))


def _free_port() -> int:
    """For the SuperNode's own processes, which speak over this machine only."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
