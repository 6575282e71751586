"""What stands in `server.toml` and `node.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fedanon.datasets.source import locate
from fedanon.errors import ConfigError
from fedanon.federated.deployment.folders import toml_text
from fedanon.federated.gate import APPS_FOLDER
from fedanon.federated.policy import NodePolicy
from fedanon.fields import build, check_fields, parameter
from fedanon.learning.settings import RunSettings
from fedanon.streams.windowed import STREAM

SERVER_FILE = "server.toml"
NODE_FILE = "node.toml"
#: what a node's rows have cost over all runs; another name would forget it
LEDGER_FILE = "told.json"
#: from which a node derives who is tested, and the randomness of its releases; another key makes other releases
SPLIT_KEY = "split.key"
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
    schema: str = parameter("schema.toml", help="schema of the nodes' tables, kept with models if the file is there")
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
class NodeConfig(NodePolicy):
    """A node's own table, its server, its keys, and its policy."""

    server: str = parameter("127.0.0.1:9443", help="HOST:PORT of the server")
    data: str = parameter(
        "data.csv",
        help="the table, a file or the address of a database (sqlite:///, postgresql://, duckdb:///) without a "
        "password; it never leaves this machine",
    )
    query: str = parameter("", help="for a database: the SELECT that gives the table")
    stream: str = parameter("", help="folder of a gateway's windows, which are learned from instead of a table")
    schema: str = parameter("schema.toml", help="its schema, the same at every node")
    number: int = parameter(0, help="number of this node, different at every node; seeds its randomness", at_least=0)
    missing: str = parameter("error", help="missing quasi-identifiers: error, category or wildcard")
    ca: str = parameter("ca.crt", help="certificate of the server's authority")
    identity_key: str = parameter("", help="private key that signs the keys of this node's masks; empty signs nothing")
    peer_keys: str = parameter(
        "",
        help="folder or file of the public keys of the nodes with which alone counts are summed; empty asks for none",
        aliases=("hospital_keys",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        host, colon, port = self.server.rpartition(":")
        if not (host and colon and port.isdigit()):
            raise ConfigError("The server of a node must be HOST:PORT.")
        self.check_methods()

    @classmethod
    def read(cls, folder: Path) -> NodeConfig:
        """From the folder of a node."""
        return build(cls, _read(folder, NODE_FILE))

    def to_toml(self) -> str:
        """The file, with what every line means: the node's own settings first, then its policy."""
        groups: dict[str, list[str]] = {"": []}
        for entry in fields(self):
            lines = groups.setdefault(entry.metadata.get("group", ""), [])
            lines.append(f"# {entry.metadata['help']}\n" + toml_text({entry.name: getattr(self, entry.name)}))
        own = groups.pop("")
        policy = [f"\n# ---- {name}\n" + "".join(lines) for name, lines in groups.items()]
        return "".join(["# Relative paths count from the folder this file lies in.\n", *own, *policy])

    def for_flower(self, folder: Path) -> dict[str, Any]:
        """The node config its app reads; paths count from the node's folder."""
        own = {"data": locate(self.data, folder.resolve()), "query": self.query}
        if self.stream:
            own = {STREAM: str((folder / self.stream).resolve())}
        return self.to_config() | {
            **own,
            "schema": str((folder / self.schema).resolve()),
            "missing": self.missing,
            "number": self.number,
            "ledger": str((folder / LEDGER_FILE).resolve()),
            "egress": str(folder.resolve()),
            "split-key": str((folder / SPLIT_KEY).resolve()),
            "store": str((folder / "store").resolve()),
            "apps": str((folder / APPS_FOLDER).resolve()),
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
