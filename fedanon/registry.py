"""Registry: a name for every component, filled by importing modules and by the entry points of other packages.

A component is added by one file: put it into the package, decorate it, and the command line, the grids and the contract
tests see it. Another distribution adds one by an entry point in the registry's group, such as ``fedanon.anonymizers``,
that names a module which registers the component, or the component itself::

    [project.entry-points."fedanon.anonymizers"]
    coin_toss = "my_package.coin_toss:CoinToss"
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Generic, TypeVar

from fedanon.errors import ConfigError, UnknownComponentError

T = TypeVar("T")
C = TypeVar("C")


class Registry(Generic[T]):
    """Components of one kind by name, discovered on first use.

    Parameters
    ----------
    kind : what a component is called in messages, such as "anonymizer".
    packages : dotted names of the packages whose modules register components; modules whose name starts with an
        underscore hold compiled kernels and are not imported.
    group : the entry-point group through which other distributions add components; none if empty.
    """

    def __init__(self, kind: str, *packages: str, group: str = "") -> None:
        self.kind = kind
        self.group = group
        self._packages = packages
        self._components: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._discovered = False

    def register(self, name: str) -> Callable[[C], C]:
        """Decorator that registers a component under ``name``."""

        def add(component: C) -> C:
            if self._components.get(name, component) is not component:
                raise ValueError(f"The {self.kind} {name!r} is registered twice.")
            self._components[name] = component  # type: ignore[assignment]
            return component

        return add

    def alias(self, old: str, new: str) -> None:
        """Accept ``old`` for the component ``new``, with a warning; the old name is not listed."""
        self._aliases[old] = new

    def names(self) -> list[str]:
        """All registered names, sorted."""
        self._discover()
        return sorted(self._components)

    def __getitem__(self, name: str) -> T:
        self._discover()
        if name in self._aliases:
            new = self._aliases[name]
            warnings.warn(f"The {self.kind} {name!r} is now called {new!r}.", FutureWarning, stacklevel=2)
            name = new
        try:
            return self._components[name]
        except KeyError:
            raise UnknownComponentError(self._unknown(name)) from None

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._components or name in self._aliases

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
        for name in self._packages:
            package = importlib.import_module(name)
            for module in pkgutil.walk_packages(package.__path__, prefix=f"{name}."):
                if not module.name.rpartition(".")[2].startswith("_"):
                    importlib.import_module(module.name)
        for entry in entry_points(group=self.group) if self.group else ():
            self._load(entry)

    def _load(self, entry: EntryPoint) -> None:
        """Import what another distribution adds; one that fails to import names itself instead of hiding."""
        try:
            found = entry.load()
        except Exception as error:
            self._discovered = False
            source = entry.dist.name if entry.dist else "an unknown distribution"
            raise ConfigError(
                f"The {self.kind} {entry.name!r} of {source} cannot be imported ({type(error).__name__}). "
                f"Repair or uninstall {source}."
            ) from error
        if not isinstance(found, ModuleType) and found not in self._components.values():
            self.register(entry.name)(found)
