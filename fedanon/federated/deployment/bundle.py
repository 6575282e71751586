"""The Flower app of a run: three lines that point to the installed package, and the settings."""

from __future__ import annotations

from pathlib import Path

from fedanon._version import __version__
from fedanon.federated.deployment.folders import private_folder, toml_text, write_private
from fedanon.federated.settings import RunSettings

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
    private_folder(folder)
    write_private(folder / "federation.py", APP)
    write_private(folder / "pyproject.toml", PROJECT + toml_text(settings.to_config()))
    return folder
