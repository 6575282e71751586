"""The server of a deployed federation: its folder, the nodes it knows, and a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from fedanon.errors import ConfigError, InfeasibleError
from fedanon.federated.deployment import processes
from fedanon.federated.deployment.certificates import (
    LOCAL,
    Certified,
    new_authority,
    new_certificate,
    read_in_force,
)
from fedanon.federated.deployment.config import EVERYWHERE, SERVER_FILE, ServerConfig
from fedanon.federated.deployment.folders import new_private_folder, toml_text, write_bundle, write_private
from fedanon.federated.deployment.link import Link
from fedanon.federated.deployment.presence import present
from fedanon.federated.deployment.processes import leaving_on_signals
from fedanon.federated.deployment.roster import Roster, let_in, nodes_of
from fedanon.federated.deployment.server_folder import (
    AUTHORITY,
    CERTIFICATE,
    PID_FILE,
    certificate_days,
    checkpoints_in,
    read_server_folder,
    result_path,
)

AUTHORITY_KEY = "ca.key"
#: what a status takes over from the folder
STATUS = (
    *("registered", "rounds", "checkpoint_round", "rejected", "unresponsive"),
    *("conduct", "finished", "days_left"),
)

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
        self.roster = Roster(self.folder)

    @classmethod
    def init(
        cls,
        folder: Path,
        *,
        host: str,
        port: int,
        nodes: int,
        days: int,
        listen: str | None = None,
        ca_key: Path | None = None,
    ) -> Server:
        """Make the folder: keys, certificates and a `server.toml` to edit.

        ``ca_key`` is where the authority's key is to lie, if not in the folder.
        """
        if ca_key and ca_key.exists():
            raise ConfigError(f"The file {ca_key.name} exists; nothing was changed.")
        authority = new_authority()
        listen = listen or ("127.0.0.1" if host in LOCAL else EVERYWHERE)
        config = ServerConfig(host=host, listen=listen, port=port, nodes=nodes)
        names = ("host", "listen", "port", "nodes", "wait_seconds", "reply_seconds", "return_seconds", "schema")
        new_private_folder(folder)
        write_private(ca_key or folder / AUTHORITY_KEY, authority.key)
        write_private(folder / AUTHORITY, authority.certificate)
        write_private(folder / SERVER_FILE, toml_text({name: getattr(config, name) for name in names}) + RUN_TEMPLATE)
        server = cls(folder)
        server._certify(authority, days)
        return server

    # ---- the certificate ------------------------------------------------------------------------

    def renew(self, *, days: int, ca_key: Path | None = None) -> None:
        """A new key and certificate from the same authority, for the names that stand in `server.toml` now."""
        path = ca_key or self.folder / AUTHORITY_KEY
        certificate = read_in_force(self.folder / AUTHORITY)
        try:
            key = path.read_bytes()
        except OSError:
            raise ConfigError(f"The authority's key {path.name} cannot be read; --ca-key says where it lies.") from None
        self._certify(Certified(certificate, key), days)

    def _certify(self, authority: Certified, days: int) -> None:
        hosts = [host for host in (self.config.host, self.config.listen) if host != EVERYWHERE]
        made = new_certificate(authority, hosts, days)
        write_private(self.folder / "server.key", made.key)
        write_private(self.folder / CERTIFICATE, made.certificate)

    def days_left(self) -> dict[str, int]:
        """Whole days until the server's certificate and its authority expire."""
        return certificate_days(self.folder)

    # ---- nodes ----------------------------------------------------------------------------------

    def register(self, key: Path, name: str) -> bool:
        """Keep a node's public key; whether a running server knows it too. Others learn it at their start."""
        self.roster.add(key, name)
        link = Link(self.folder, self.config, insecure=False)
        try:
            return link.is_up() and name not in let_in(self.roster.keys(), link.NAME, link.environment)
        except InfeasibleError:  # it listens without keys
            return False

    def remove(self, name: str) -> bool:
        """Refuse a node from now on, also in a run; whether a server was running and knows."""
        self.roster.remove(name)
        link = Link(self.folder, self.config, insecure=False)
        if not link.is_up():
            return False
        let_in(self.roster.keys(), link.NAME, link.environment)
        return True

    # ---- runs -----------------------------------------------------------------------------------

    def run(self, *, insecure: bool, resume: bool, restart: bool = False) -> Path:
        """Serve one run from its first or last round to its result, and return the path of that."""
        with leaving_on_signals(), present(self.folder / PID_FILE, "This server"):
            return self._run(insecure=insecure, resume=resume, restart=restart)

    def serve(self, *, insecure: bool) -> None:
        """Run the SuperLink until ended, for runs that `flwr run` starts."""
        if not insecure:
            self._check_keys()
        link = Link(self.folder, self.config, insecure=insecure)
        with leaving_on_signals(), present(self.folder / PID_FILE, "This server"), link:
            self._let_in(link, insecure=insecure)
            link.wait()

    def _let_in(self, link: Link, *, insecure: bool) -> None:
        """Let the registered nodes in, and stop what an earlier server has left."""
        keys = [] if insecure else self.roster.keys()
        if failed := let_in(keys, link.NAME, link.environment, stop_runs=True):
            raise InfeasibleError(f"These nodes could not be registered: {', '.join(failed)}.")

    def _run(self, *, insecure: bool, resume: bool, restart: bool) -> Path:
        settings = self.config.run
        if not insecure:
            self._check_keys()
        self._check_checkpoint(resume=resume, restart=restart)
        path = result_path(self.folder, settings)
        path.unlink(missing_ok=True)
        app = write_bundle(self.folder / "app", settings)
        with Link(self.folder, self.config, insecure=insecure) as link:
            self._let_in(link, insecure=insecure)
            link.stream(["run", str(app), link.NAME, "--stream"])
        shutil.rmtree(app, ignore_errors=True)
        if not path.exists():
            raise InfeasibleError("The run ended without a result; superlink.log says why.")
        return path

    def _check_keys(self) -> None:
        if not self.roster.names():
            raise ConfigError("No node is registered; `fedanon server register` takes a node's public key.")
        if self.days_left()[AUTHORITY] < 0:
            raise ConfigError(
                "The authority has expired: `fedanon server init` makes one, whose ca.crt all nodes need."
            )
        if self.days_left()[CERTIFICATE] < 0:
            raise ConfigError("The server's certificate has expired: `fedanon server renew` makes a new one.")

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


# ---- what a federation is doing, by its server's folder and, if it runs, its SuperLink -----------


def status(folder: Path, *, insecure: bool = False) -> dict[str, Any]:
    """What the folder says, and, if the server runs, the nodes that are online and the runs Flower knows."""
    server = Server(folder)
    link = Link(server.folder, server.config, insecure=insecure)
    up, said = link.is_up(), read_server_folder(server.folder)
    return {
        "server": "running" if up else "stopped",
        "nodes": nodes_of(link.NAME, link.environment) if up else [],
        "runs": _runs(link) if up else [],
        **{name: said[name] for name in STATUS},
    }


def _runs(link: Link) -> list[dict[str, Any]]:
    done, said = processes.call(["list", link.NAME, "--format", "json"], link.environment)
    try:
        found = json.loads(said[said.index("{") :]) if done else {}
    except ValueError:
        return []
    return list(found.get("runs", []))
