"""What stands in `server.toml` and `node.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedanon.errors import ConfigError
from fedanon.fields import build, check_fields, parameter
from fedanon.joint.disclosure import read_rules
from fedanon.learning.settings import RunSettings

SERVER_FILE = "server.toml"
NODE_FILE = "node.toml"
#: what a node's rows have cost over all runs; another name would forget it
LEDGER_FILE = "told.json"
EVERYWHERE = "0.0.0.0"


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """Where a server listens, whom it waits for, and the settings of its run."""

    host: str = parameter("127.0.0.1", help="name or address by which nodes find the server")
    listen: str = parameter("127.0.0.1", help="address to listen on; 0.0.0.0 is all")
    port: int = parameter(9443, help="port", at_least=1, at_most=65535)
    nodes: int = parameter(2, help="nodes to wait for before the first round", at_least=1)
    wait_seconds: float = parameter(600.0, help="how long to wait for them", at_least=1)
    reply_seconds: float = parameter(3600.0, help="how long to wait for a node's reply", at_least=1)
    return_seconds: float = parameter(30.0, help="how long a round waits for a node that goes away", at_least=0)
    run: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.run.protocol != "corrected":
            raise ConfigError("The protocol 'as_published' is for simulations only.")
        if self.run.malicious:
            raise ConfigError("Malicious nodes are for simulations only.")

    @property
    def here(self) -> str:
        """The address by which this machine itself reaches the server."""
        return "127.0.0.1" if self.listen == EVERYWHERE else self.listen

    @classmethod
    def read(cls, folder: Path) -> ServerConfig:
        """From the folder of a server."""
        return build(cls, _read(folder, SERVER_FILE))


@dataclass(frozen=True, kw_only=True)
class NodeConfig:
    """A node's own table, its server, and what it asks of a run before it takes part."""

    server: str = parameter("127.0.0.1:9443", help="HOST:PORT of the server")
    data: str = parameter("data.csv", help="the table, a CSV file")
    schema: str = parameter("schema.toml", help="its schema")
    number: int = parameter(0, help="number of this node, different at every node; seeds its randomness", at_least=0)
    missing: str = parameter("error", help="missing quasi-identifiers: error, category or wildcard")
    min_k: int = parameter(
        2, help="refuse a run whose release reaches a smaller k; 1 allows raw rows", at_least=1, aliases=("least_k",)
    )
    max_epsilon: float = parameter(
        0.0,
        help="privacy budget of all runs together; refuse any with more, or without one; 0 asks for none",
        at_least=0,
        aliases=("most_epsilon",),
    )
    max_delta: float = parameter(
        1e-5, help="delta at which that budget is counted", at_least=0, at_most=0.5, aliases=("most_delta",)
    )
    trust_server: bool = parameter(False, help="with a budget: also where the server adds the noise and counts")
    counts: str = parameter(
        "", help="rules for the counts of joint methods that it accepts, as in 'secure, secure_dp'; empty accepts any"
    )
    ca: str = parameter("ca.crt", help="certificate of the server's authority")
    identity_key: str = parameter("", help="private key that signs the keys of this node's masks; empty signs nothing")
    peer_keys: str = parameter(
        "",
        help="folder or file of the public keys of the nodes with which alone counts are summed; empty asks for none",
        aliases=("hospital_keys",),
    )

    def __post_init__(self) -> None:
        check_fields(self)
        host, colon, port = self.server.rpartition(":")
        if not (host and colon and port.isdigit()):
            raise ConfigError("The server of a node must be HOST:PORT.")
        read_rules(self.counts)

    @classmethod
    def read(cls, folder: Path) -> NodeConfig:
        """From the folder of a node."""
        return build(cls, _read(folder, NODE_FILE))

    def for_flower(self, folder: Path) -> dict[str, Any]:
        """The node config its app reads; paths count from the node's folder."""
        return {
            "data": str((folder / self.data).resolve()),
            "schema": str((folder / self.schema).resolve()),
            "missing": self.missing,
            "number": self.number,
            "min-k": self.min_k,
            "max-epsilon": self.max_epsilon,
            "max-delta": self.max_delta,
            "trust-server": self.trust_server,
            "ledger": str((folder / LEDGER_FILE).resolve()),
            "counts": self.counts,
            "store": str((folder / "store").resolve()),
            "identity-key": str((folder / self.identity_key).resolve()) if self.identity_key else "",
            "peer-keys": str((folder / self.peer_keys).resolve()) if self.peer_keys else "",
        }


def _read(folder: Path, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"The folder {folder.name} has no {name}; the command `init` makes one.") from None
    except (OSError, UnicodeError, tomllib.TOMLDecodeError):
        raise ConfigError(f"{name} cannot be read as TOML.") from None
