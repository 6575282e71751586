"""The gate as a Flower mod, for authors who want it in an app of their own.

It gives the app the verified release and checks its replies as the node does with allowed apps. It raises no walls: the
app's code runs in the same process, as its author wrote it. Against an app that is not trusted, allow its bundle
instead (`fedanon node allow`).
"""

from __future__ import annotations

import copy
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp.typing import ClientAppCallable, Mod

from fedanon.errors import RefusedError
from fedanon.federated.client import LoadTable, NodePool, guarded
from fedanon.federated.door import Door
from fedanon.federated.gate.app import pass_through, without_files
from fedanon.federated.gate.limits import AppLimits
from fedanon.federated.gate.released import Released, handed_over
from fedanon.federated.sources import load_node_table


def fedanon_gate(limits: AppLimits, *, load: LoadTable = load_node_table) -> Mod:
    """A mod: `ClientApp(mods=[fedanon_gate(limits)])`.

    Parameters
    ----------
    limits : how the release is made, and what replies may hold; `AppLimits.from_toml` reads a file.
    load : the table of a node; by default that of its config (`data` and `schema`, as `fedanon node init` writes
        them), or a part of a data set in a simulation.

    The app finds the release with :func:`load_release`. What it raises does not leave: the server is told that the node
    refuses to answer.
    """
    nodes = NodePool(load, limits.settings, ())

    def gate(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        def ask(release: Released) -> tuple[RecordDict, RecordDict, dict[str, Any]]:
            inner = without_files(context)
            inner.state = copy.deepcopy(context.state)  # what a failed reply wanted to remember is forgotten
            with handed_over(release):
                try:
                    reply = call_next(message, inner)
                except Exception as error:
                    raise RefusedError("app", f"The app failed with a {type(error).__name__}.") from None
            if not reply.has_content():
                raise RefusedError("app", "The app answered with an error.")
            return reply.content, inner.state, {"walls": "none: a mod of the app's own"}

        @guarded("app")
        def answer(message: Message, context: Context, door: Door) -> Message:
            return pass_through(message, context, door, limits, nodes, ask, load)

        return answer(message, context)

    return gate
