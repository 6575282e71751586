"""Any Flower app behind the gate: somebody else's ClientApp is given the verified release, and its replies are checked.

A node's people allow an app by the hash of its bundle (`fedanon node allow`); it runs in a process of its own behind
walls (:mod:`.walls`). Authors who want the same checks in an app of their own take the mod :func:`fedanon_gate`.

Names are loaded when they are used: the process of an app reads this package before its walls stand.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedanon.federated.gate.limits import AppLimits, limits_of
    from fedanon.federated.gate.mod import fedanon_gate
    from fedanon.federated.gate.released import Released, load_release

__all__ = ["AppLimits", "Released", "fedanon_gate", "limits_of", "load_release"]

#: the folder of allowed apps in that of a node
APPS_FOLDER = "apps"
#: under which a node config has the hash of the bundle of a run
BUNDLE = "bundle"

_PLACES = {
    "AppLimits": "limits",
    "Released": "released",
    "fedanon_gate": "mod",
    "limits_of": "limits",
    "load_release": "released",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
