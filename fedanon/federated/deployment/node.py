"""A node of a deployed federation: its folder, and what it does while it takes part."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fedanon.errors import ConfigError, DataError, InfeasibleError
from fedanon.federated.deployment import processes
from fedanon.federated.deployment.certificates import read_in_force
from fedanon.federated.deployment.config import NODE_FILE, SPLIT_KEY, NodeConfig
from fedanon.federated.deployment.folders import new_private_folder, private_folder, write_private
from fedanon.federated.deployment.presence import present
from fedanon.federated.deployment.processes import Pause, leaving_on_signals
from fedanon.federated.gate import APPS_FOLDER
from fedanon.federated.policy import KEY_BYTES
from fedanon.federated.sources import own_source
from fedanon.io.keys import node_keys
from fedanon.joint.signing import NodeIdentity

if TYPE_CHECKING:
    from fedanon.data.schema import Schema
    from fedanon.federated.deployment.fleet import Fleet
    from fedanon.federated.gate.allowed import AllowedApps

log = logging.getLogger("fedanon")

KEY = "node.key"
PUBLIC_KEY = "node.pub"
#: the folder for the public keys of the other nodes
PEERS = "peers"
#: the number of the node's process, and the one its server knows it by
PID_FILE, MEMORY = "node.pid", "node.id"
#: seconds between looks for a message, where nothing has come for long
LONGEST_PAUSE = 3.0


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
        keys = node_keys(f"number={config.number}")
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
    def apps(self) -> AllowedApps:
        """Apps of other people that this node runs."""
        from fedanon.federated.gate.allowed import AllowedApps

        return AllowedApps(self.folder / APPS_FOLDER)

    @property
    def public_key(self) -> str:
        """What the server has to register."""
        return (self.folder / PUBLIC_KEY).read_text(encoding="ascii").strip()

    def run(self, *, insecure: bool, tries: int = 0, pause: float = 1.0) -> None:
        """Take part in runs until ended; a server that is away or does not know the key yet is tried again.

        Parameters
        ----------
        insecure : without TLS and keys.
        tries : how many times to connect; 0 is without end.
        pause : seconds between them.
        """
        os.umask(processes.UMASK)
        self.check()
        make_split_key(self.folder)
        settings = self.config.for_flower(self.folder)
        os.environ.update(processes.QUIET)
        with leaving_on_signals(), present(self.folder / PID_FILE, "This node"):
            from fedanon.federated.deployment import fleet  # seconds of imports: not before what may be wrong here

            ca, key = (None, None) if insecure else self._secure()
            line = fleet.Fleet(self.config.server, settings, ca=ca, key=key, memory=self.folder / MEMORY)
            said = ""
            for number in itertools.count(1):
                try:
                    take_part(line)
                except fleet.LostError as reason:
                    if str(reason) != said:
                        log.warning("%s", reason)
                    said = str(reason)
                if number == tries:
                    raise InfeasibleError(
                        "The server could not be reached, is not the one of ca.crt, or refused the key."
                    )
                time.sleep(pause)

    def _secure(self) -> tuple[Path, Path]:
        """The server's authority and this node's key."""
        ca = self.folder / self.config.ca
        if not ca.exists():
            raise ConfigError(f"Copy the server's ca.crt into the folder of this node, as {self.config.ca}.")
        read_in_force(ca)
        return ca, self.folder / KEY

    def check(self) -> None:
        """Report a table or a key that cannot be read here, at once, to the people who can mend it."""
        from fedanon.data.schema import Schema

        if self.config.stream:
            self._check_stream(Schema.read(self.folder / self.config.schema))
            return
        config = self.config.for_flower(self.folder)
        own_source(config).load()
        NodeIdentity.from_config(config)

    def _check_stream(self, schema: Schema) -> None:
        """Verify the windows that are there; a gateway that has just begun has none yet."""
        from fedanon.streams.windowed import WindowedStream

        folder = self.folder / self.config.stream
        if not folder.is_dir():
            raise DataError(f"The folder {folder} of the stream does not exist.")
        stream = WindowedStream(folder, schema, self.folder / "store")
        if stream.available:
            log.info("%d windows of the stream keep their claim together.", stream.verify())
        else:
            log.warning("The folder of the stream has no windows yet; runs are refused until it has.")


def make_split_key(folder: Path) -> None:
    """Make the key of a node's split, unless it has one."""
    if not (folder / SPLIT_KEY).exists():
        write_private(folder / SPLIT_KEY, secrets.token_bytes(KEY_BYTES))


def take_part(line: Fleet) -> None:
    """Answer messages until the line is lost."""
    import httpx

    from fedanon.federated.deployment import worker

    def beat() -> None:
        with contextlib.suppress(httpx.HTTPError):  # the answer is kept until the line is back
            line.beat()

    worker.load()
    with line.connected():
        print("Connected; waiting for runs.", flush=True)
        line.push()
        pause = Pause(LONGEST_PAUSE)
        while True:
            line.beat()
            if (asked := line.pull()) is None:
                if not line.waits:
                    pause.wait()
                continue
            waited = pause.waited
            line.push(worker.answer(*asked, beat))
            pause = Pause(LONGEST_PAUSE, before=waited)
