"""The server of a deployed federation: its folder, the nodes it knows, and a run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from fedanon.errors import ConfigError, DataError, InfeasibleError
from fedanon.federated.deployment.bundle import write_bundle
from fedanon.federated.deployment.children import leaving_on_signals
from fedanon.federated.deployment.config import SERVER_FILE, ServerConfig
from fedanon.federated.deployment.folders import new_private_folder, private_folder, toml_text, write_private
from fedanon.federated.deployment.keys import LOCAL, check_public_key, server_keys
from fedanon.federated.deployment.link import Link
from fedanon.federated.deployment.registering import register
from fedanon.federated.deployment.serving import checkpoints_in, result_path

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

RUN_TEMPLATE = """
# What every node agrees to; `fedanon methods` lists the methods.
[run]
method = "mondrian"
model = "lr"
strategy = "fedavg"
rounds = 10
min_replies = 0.5
test_share = 0.2
features = "quasi_identifiers"
seed = 0

[run.method_settings]
k = 5
"""


class Server:
    """A server's folder.

    Parameters
    ----------
    folder : made by :meth:`init`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.config = ServerConfig.read(self.folder)

    @classmethod
    def init(cls, folder: Path, *, host: str, port: int, nodes: int, days: int) -> Server:
        """Make the folder: keys, certificates and a `server.toml` to edit."""
        keys = server_keys(host, days)
        new_private_folder(folder)
        listen = "127.0.0.1" if host in LOCAL else "0.0.0.0"
        config = ServerConfig(host=host, listen=listen, port=port, nodes=nodes)
        names = ("host", "listen", "port", "nodes", "wait_seconds", "reply_seconds")
        write_private(folder / "ca.crt", keys.ca)
        write_private(folder / "server.crt", keys.certificate)
        write_private(folder / "server.key", keys.key)
        write_private(folder / SERVER_FILE, toml_text({name: getattr(config, name) for name in names}) + RUN_TEMPLATE)
        return cls(folder)

    # ---- nodes ----------------------------------------------------------------------------------

    def register(self, key: Path, name: str) -> bool:
        """Keep a node's public key; whether a running server has been told too. The others learn it at their start."""
        if not NAME.fullmatch(name):
            raise ConfigError("The name of a node must be letters, digits, '.', '_' or '-', at most 64.")
        try:
            public = check_public_key(key.read_bytes())
        except OSError:
            raise DataError(f"The key {key.name} cannot be read.") from None
        path = self._keys / f"{name}.pub"
        if path.exists() and path.read_bytes() != public:
            raise ConfigError(f"A node named {name} is registered with another key.")
        private_folder(self._keys)
        write_private(path, public)
        link = Link(self.folder, self.config, insecure=False)
        return link.is_up() and not register([path], link.NAME, link.environment)

    @property
    def _keys(self) -> Path:
        return self.folder / "nodes"

    def names(self) -> list[str]:
        """The registered nodes."""
        return sorted(path.stem for path in self._keys.glob("*.pub"))

    # ---- runs -----------------------------------------------------------------------------------

    def run(self, *, insecure: bool, resume: bool, restart: bool = False) -> Path:
        """Serve one run from its first or last round to its result, and return the path of that."""
        settings = self.config.run
        if not insecure and not self.names():
            raise ConfigError("No node is registered; `fedanon server register` takes a node's public key.")
        self._check_checkpoint(resume=resume, restart=restart)
        path = result_path(self.folder, settings)
        path.unlink(missing_ok=True)
        app = write_bundle(self.folder / "app", settings)
        with leaving_on_signals(), Link(self.folder, self.config, insecure=insecure) as link:
            if not insecure:
                failed = register(sorted(self._keys.glob("*.pub")), link.NAME, link.environment)
                if failed:
                    raise InfeasibleError(f"These nodes could not be registered: {', '.join(failed)}.")
            link.stream(["run", str(app), link.NAME, "--stream"])
        shutil.rmtree(app, ignore_errors=True)
        if not path.exists():
            raise InfeasibleError("The run ended without a result; superlink.log says why.")
        return path

    def _check_checkpoint(self, *, resume: bool, restart: bool) -> None:
        checkpoints, settings = checkpoints_in(self.folder), self.config.run
        last = checkpoints.last(settings)
        if last is None or resume:
            return
        if last.round_number < settings.rounds and not restart:
            raise ConfigError(
                f"A run with these settings stopped after round {last.round_number} of {settings.rounds}: "
                "--resume goes on from there, --restart begins again."
            )
        checkpoints.discard(settings)
