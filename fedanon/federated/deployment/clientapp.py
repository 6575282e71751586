"""The node's side of a message: the app installed here, whatever code the server's bundle holds.

Flower starts a process `flwr-clientapp` for every message and lets it run the code that came with the run. A node of
ours puts this program under that name: it takes the message, and ignores the code.
"""

from __future__ import annotations

from typing import Any

COMMAND = "flwr-clientapp"


def load() -> None:
    """Import what a message needs."""
    import flwr.supernode.cli  # noqa: F401

    import fedanon.federated.client  # noqa: F401


def main() -> None:
    """`flwr-clientapp` with the installed app; the arguments are Flower's."""
    from flwr.supernode.cli import flwr_clientapp
    from flwr.supernode.runtime import run_clientapp as runtime

    _replace(runtime, "install_from_fab", lambda *_args, **_more: None)
    _replace(runtime, "get_load_client_app_fn", lambda *_args, **_more: _installed_app)
    flwr_clientapp()


def _installed_app(*_bundle: Any) -> Any:
    from fedanon.federated.client import client_app

    return client_app()


def _replace(module: Any, name: str, value: Any) -> None:
    if not hasattr(module, name):  # a Flower that has changed must not run foreign code instead
        raise SystemExit(f"This version of Flower has no {name}; fedanon cannot keep foreign code out.")
    setattr(module, name, value)


if __name__ == "__main__":
    main()
