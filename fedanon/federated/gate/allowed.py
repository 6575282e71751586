"""The apps of other people that a node's operator has allowed, by the hash of their bundle, with limits."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

from fedanon.errors import ConfigError
from fedanon.federated.gate.cell import client_component
from fedanon.federated.gate.limits import AppLimits
from fedanon.io.atomic import atomic_write

MAX_BUNDLE = 64 * 2**20
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class AllowedApp:
    """One app.

    Parameters
    ----------
    sha256 : of its bundle.
    name : as its bundle says; for people.
    bundle : its code, as the operator had it. What a server sends is not run, only recognized by its hash.
    limits : what the operator allows it.
    """

    sha256: str
    name: str
    bundle: bytes
    limits: AppLimits


class AllowedApps:
    """The folder.

    Parameters
    ----------
    folder : closed to others; need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """The hashes of all allowed bundles."""
        return sorted(path.stem for path in self.folder.glob("*.toml") if _HASH.fullmatch(path.stem))

    def allow(self, bundle: bytes, limits: AppLimits) -> AllowedApp:
        """Allow a bundle; limits of before are replaced."""
        if len(bundle) > MAX_BUNDLE:
            raise ConfigError(f"The bundle of an app may have {MAX_BUNDLE >> 20} MB.")
        name, sha256 = _name_of(bundle), hashlib.sha256(bundle).hexdigest()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        atomic_write(self.folder / f"{sha256}.fab", bundle, mode=0o600)
        atomic_write(self.folder / f"{sha256}.toml", limits_text(limits, f"{name}, {sha256}"), mode=0o600)
        return AllowedApp(sha256, name, bundle, limits)

    def remove(self, sha256: str) -> None:
        """Allow a bundle no more."""
        if sha256 not in self.names():
            raise ConfigError("No app of this hash is allowed; `fedanon node status` lists those that are.")
        for kind in ("toml", "fab"):
            (self.folder / f"{sha256}.{kind}").unlink(missing_ok=True)

    def find(self, sha256: str) -> AllowedApp | None:
        """An allowed app; None where it is not allowed.

        Raises
        ------
        ConfigError
            If its entry is damaged: then it is not run, and nothing is in its place.
        """
        if not _HASH.fullmatch(sha256) or not (self.folder / f"{sha256}.toml").exists():
            return None
        try:
            bundle = (self.folder / f"{sha256}.fab").read_bytes()
            text = (self.folder / f"{sha256}.toml").read_text(encoding="utf-8")
        except (OSError, UnicodeError):
            raise ConfigError(f"The entry of the app {sha256[:12]} cannot be read: allow it again.") from None
        if hashlib.sha256(bundle).hexdigest() != sha256:
            raise ConfigError(f"The stored bundle of the app {sha256[:12]} was changed: allow it again.")
        return AllowedApp(sha256, _name_of(bundle), bundle, AppLimits.from_toml(text))


def _name_of(bundle: bytes) -> str:
    """Publisher, name and version; ConfigError if it is no bundle of a Flower app."""
    try:
        with zipfile.ZipFile(BytesIO(bundle)) as packed:
            project = tomllib.loads(packed.read("pyproject.toml").decode())
        client_component(bundle)
        parts = project["tool"]["flwr"]["app"]["publisher"], project["project"]["name"], project["project"]["version"]
    except (zipfile.BadZipFile, KeyError, TypeError, UnicodeError, tomllib.TOMLDecodeError, NotImplementedError):
        raise ConfigError("The file is no bundle of a Flower app; `flwr build` makes one (.fab).") from None
    return re.sub(r"[^\w./ -]", "?", "{}/{} {}".format(*parts))[:100]


def limits_text(limits: AppLimits, title: str = "") -> str:
    """Limits as TOML, with what every line means."""
    lines = [f"# {title}"] * bool(title)
    for entry in fields(limits):
        value = getattr(limits, entry.name)
        if entry.name != "replies":
            lines += [f"# {entry.metadata['help']}", f"{entry.name} = {_value(value)}"]
    for kind, reply in limits.replies.items():
        for part, entries in reply.items():
            lines.append(f"\n[replies.{json.dumps(kind)}.{part}]")
            lines += [f"{json.dumps(name)} = {json.dumps(text)}" for name, text in entries.items()]
        if not reply:
            lines.append(f"\n[replies.{json.dumps(kind)}]")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {_value(entry)}" for name, entry in value.items()) + "}"
    return json.dumps(value)
