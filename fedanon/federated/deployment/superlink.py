"""Flower's SuperLink behind a fence: from other machines, only the API of the nodes can be reached.

Flower serves three APIs on one port. The nodes' (fleet) API checks their keys; the control API checks nobody, and
whoever reaches it can register a key or start a run with code of their own. Here it answers this machine only: peers
on the loopback, and those whose address is the one they called, which no other machine can have.
"""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = ("/v1/fleet/", "/health")
#: the option that names the file of what Flower keeps
DATABASE = "--database"
#: how long it may take to end by itself
STOP_SECONDS = 5.0
#: what nodes and runs ask for, and the middlewares that have nothing to do with it
MESSAGES = ("/v1/fleet/", "/v1/runtime/")
CONTROL = (
    "ControlSensitiveResponseMiddleware",
    "ControlAuthenticationMiddleware",
    "ControlLicenseMiddleware",
    "ControlEventLogMiddleware",
)


class Fence:
    """ASGI middleware: everything but the nodes' API is refused to other machines."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 403."""
        if scope["type"] == "lifespan" or may_pass(
            str(scope.get("path", "")), scope.get("client"), scope.get("server")
        ):
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 403, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def may_pass(path: str, client: Any, called: Any = None) -> bool:
    """Whether a peer may ask for a path; ``client`` and ``called`` are both ends of its connection."""
    return path.startswith(OPEN) or (client is not None and _is_this_machine(str(client[0]), called))


def _is_this_machine(host: str, called: Any) -> bool:
    try:
        address = ipaddress.ip_address(host)
        return address.is_loopback or (called is not None and address == ipaddress.ip_address(str(called[0])))
    except ValueError:
        return False


def end_with_superexec(lifespan: Any) -> None:
    """End this process when the one that starts its runs ends: a SuperLink does not miss it.

    Others that Flower starts, such as `uname` for its telemetry, may end.
    """
    while (process := lifespan.superexec_process) is None:
        time.sleep(0.5)
    with contextlib.suppress(ChildProcessError):  # it has ended, and Flower knows
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os._exit(1)  # it waits for clients that follow a run which nobody will go on with


def spare(kind: type[Any]) -> None:
    """Lead messages past a middleware of the control API, which only hands them on, at a tenth of a request's cost."""
    whole = kind.__call__

    async def call(self: Any, scope: Scope, receive: Receive, send: Send) -> None:
        is_message = scope["type"] == "http" and str(scope["path"]).startswith(MESSAGES)
        await (self.app(scope, receive, send) if is_message else whole(self, scope, receive, send))

    kind.__call__ = call


def make_database(path: Path) -> None:
    """Make the database of a SuperLink whole or not at all, unless there is one.

    Flower makes it table by table where it lies: killed meanwhile, it would never start again.
    """
    if path.exists():
        return
    from flwr.supercore.state.alembic.utils import run_migrations
    from sqlalchemy import create_engine

    new = path.with_name(f"{path.name}.new")
    for left in path.parent.glob(f"{new.name}*"):  # by one that was killed
        left.unlink()
    engine = create_engine(f"sqlite:///{new}")
    run_migrations(engine)
    engine.dispose()
    new.replace(path)


def main() -> None:
    """`flower-superlink` with the fence; the arguments are Flower's."""
    from flwr.superlink import extensions
    from flwr.superlink.cli.flower_superlink import flower_superlink
    from flwr.superlink.routers.control import middlewares
    from starlette.middleware import Middleware

    from fedanon.federated.deployment import parcel_routes

    theirs = extensions.get_middleware  # absent in a Flower that has changed: then nothing starts
    extensions.get_middleware = lambda: (Middleware(Fence), *theirs())
    configure = extensions.configure_app

    def configure_app(app: Any) -> None:
        configure(app)
        parcel_routes.add_routes(app)
        threading.Thread(target=end_with_superexec, args=[app.state.superlink_lifespan], daemon=True).start()

    extensions.configure_app = configure_app
    parcel_routes.let_nobody_wait_at_the_end()
    for name in CONTROL:
        spare(getattr(middlewares, name))
    gc.set_threshold(100_000, 50, 50)  # a request makes many short-lived objects; looking for cycles took a fifth
    if DATABASE in sys.argv:
        make_database(Path(sys.argv[sys.argv.index(DATABASE) + 1]))
    flower_superlink()


if __name__ == "__main__":
    main()
