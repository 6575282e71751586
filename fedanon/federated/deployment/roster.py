"""The nodes a server knows: a public key a file, under the node's name. A key that was removed is never taken again."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from fedanon.errors import ConfigError, DataError
from fedanon.federated.deployment.folders import private_folder, write_private
from fedanon.io.keys import check_public_key

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


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
            public = check_public_key(key.read_bytes())
        except OSError:
            raise DataError(f"The key {key.name} cannot be read.") from None
        path = self._path(name)
        if path.exists() and path.read_bytes() != public:
            raise ConfigError(f"A node named {name} is registered with another key.")
        if any(removed.read_bytes() == public for removed in self._removed.glob("*.pub")):
            raise ConfigError("This key was removed; the node needs a new one, which `fedanon node init` makes.")
        private_folder(self._registered)
        write_private(path, public)

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
