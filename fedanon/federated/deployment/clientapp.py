"""The node's side of a message: the app installed here, whatever code the server's bundle holds.

Flower starts a process `flwr-clientapp` for every message and lets it run the code that came with the run. A node of
ours puts this program under that name: it takes the message, and ignores the code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

COMMAND = "flwr-clientapp"


def load() -> None:
    """Import what a message needs; every message asks the node's policy about the method of its run."""
    import fedanon.federated.client  # noqa: F401
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.joint import JOINT_METHODS

    ANONYMIZERS.names()
    JOINT_METHODS.names()
    flower_command()


def main() -> None:
    """`flwr-clientapp` with the installed app; the arguments are Flower's."""
    from flwr.supernode.runtime import run_clientapp as runtime

    _replace(runtime, "install_from_fab", lambda *_args, **_more: None)
    _replace(runtime, "get_load_client_app_fn", lambda *_args, **_more: _installed_app)
    flower_command()()


@cache
def flower_command() -> Callable[[], None]:
    """Flower's `flwr_clientapp`, read from its own file.

    The package it lies in also imports the SuperNode with its database and web server, a fifth of a node's memory.
    """
    package = find_spec("flwr.supernode.cli")
    places = list(package.submodule_search_locations or ()) if package else []
    path = Path(places[0]) / "flwr_clientapp.py" if places else Path()
    if not path.is_file():
        raise SystemExit("This version of Flower has no flwr_clientapp; fedanon cannot answer messages.")
    loader = SourceFileLoader("flwr_clientapp", str(path))
    module = module_from_spec(spec_from_loader("flwr_clientapp", loader))  # type: ignore[arg-type]
    loader.exec_module(module)
    command: Callable[[], None] = module.flwr_clientapp
    return command


def _installed_app(*_bundle: Any) -> Any:
    from fedanon.federated.client import client_app

    return client_app()


def _replace(module: Any, name: str, value: Any) -> None:
    if not hasattr(module, name):  # a Flower that has changed must not run foreign code instead
        raise SystemExit(f"This version of Flower has no {name}; fedanon cannot keep foreign code out.")
    setattr(module, name, value)


if __name__ == "__main__":
    main()
