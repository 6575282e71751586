"""Names of a package that are imported on first use, so that importing the package costs nothing.

A package states its names twice, for type checkers and for the interpreter; a test compares the two::

    if TYPE_CHECKING:
        from fedanon.anonymizers.mondrian.method import Mondrian
    else:
        __getattr__, __dir__ = lazy_exports(__name__, {"Mondrian": "fedanon.anonymizers.mondrian.method"})

    __all__ = ["Mondrian"]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : the ``__name__`` of the package.
    modules : exported name -> dotted name of its module; ``:name`` follows where it has another name there.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = modules[name].partition(":")
        value = getattr(import_module(module), attribute or name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, list_names
