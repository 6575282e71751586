"""Registry: a name for every component, found by importing the modules of a package.

A component is added by one file: put it into the package, decorate it, and the command line,
the grids and the contract tests see it.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from fedanon.errors import UnknownComponentError

T = TypeVar("T")
C = TypeVar("C")


class Registry(Generic[T]):
    """Components of one kind by name, discovered on first use.

    Parameters
    ----------
    kind : what a component is called in messages, such as "anonymizer".
    package : dotted name of the package whose modules register components.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._components: dict[str, T] = {}
        self._discovered = False

    def register(self, name: str) -> Callable[[C], C]:
        """Decorator that registers a component under ``name``."""

        def add(component: C) -> C:
            if name in self._components:
                raise ValueError(f"The {self.kind} {name!r} is registered twice.")
            self._components[name] = component  # type: ignore[assignment]
            return component

        return add

    def names(self) -> list[str]:
        """All registered names, sorted."""
        self._discover()
        return sorted(self._components)

    def __getitem__(self, name: str) -> T:
        self._discover()
        try:
            return self._components[name]
        except KeyError:
            raise UnknownComponentError(self._unknown(name)) from None

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._components

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def items(self) -> list[tuple[str, T]]:
        """Pairs of name and component, sorted by name."""
        return [(name, self[name]) for name in self.names()]

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, self.names(), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return f"Unknown {self.kind} {name!r}.{hint} Known: {', '.join(self.names())}."

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(self._package)
        for module in pkgutil.walk_packages(package.__path__, prefix=f"{self._package}."):
            importlib.import_module(module.name)
