"""Private folders: only their owner may look inside, and nothing in them is overwritten by accident."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedanon._version import __version__
from fedanon.errors import ConfigError, DataError
from fedanon.io.atomic import atomic_write

if TYPE_CHECKING:
    from fedanon.learning.settings import RunSettings

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def private_folder(folder: Path) -> Path:
    """Make the folder, closed to others; one that exists is closed as well."""
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise DataError(f"The folder {folder.name} cannot be made: {error.strerror or 'unknown reason'}.") from None
    return folder


def new_private_folder(folder: Path) -> Path:
    """Make a folder that must not hold anything yet."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder.name} exists and is not an empty folder; nothing was changed.")
    return private_folder(folder)


def write_private(path: Path, data: bytes | str) -> None:
    """Write a file whole or not at all, closed to others from its first byte on."""
    atomic_write(path, data, mode=FILE_MODE)


def toml_text(values: Mapping[str, Any]) -> str:
    """Scalars as TOML; the strings of JSON are strings of TOML."""
    return "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items())


# ---- The Flower app of a run ---------------------------------------------------------------------

APP = '''"""The app of this federation: the installed fedanon."""

from fedanon.federated.client import client_app
from fedanon.federated.deployment.serving import deployed_server_app

client = client_app()
server = deployed_server_app()
'''

PROJECT = f"""[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "federation"
version = "{__version__}"
description = "A run of fedanon"
license = "Apache-2.0"
dependencies = ["fedanon"]
[tool.flwr.app]
publisher = "fedanon"
[tool.flwr.app.components]
serverapp = "federation:server"
clientapp = "federation:client"
[tool.flwr.app.config]
"""


def write_bundle(folder: Path, settings: RunSettings) -> Path:
    """Write the app into ``folder``; `flwr run` takes it from there."""
    from fedanon.federated import wire  # not for processes that only keep folders: it imports pandas

    private_folder(folder)
    write_private(folder / "federation.py", APP)
    write_private(folder / "pyproject.toml", PROJECT + toml_text(wire.encode_settings(settings)))
    return folder
