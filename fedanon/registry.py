"""Registry: a name for every component, filled by importing modules and by the entry points of other packages.

A component is added by one file: put it into the package, decorate it, and the command line, the grids and the contract
tests see it. Another distribution adds one by an entry point in the registry's group that names the component, or a
module which registers it::

    [project.entry-points."fedanon.anonymizers"]
    coin_toss = "my_package.coin_toss:CoinToss"

The groups are ``fedanon.anonymizers``, ``fedanon.attacks``, ``fedanon.datasets``, ``fedanon.joint_methods``,
``fedanon.metrics``, ``fedanon.models``, ``fedanon.privacy_models``, ``fedanon.strategies``, ``fedanon.readers`` and
``fedanon.tasks``. What a component must keep is checked by :mod:`fedanon.testing`.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Generic, TypeVar

from fedanon.errors import ConfigError, UnknownComponentError

T = TypeVar("T")
C = TypeVar("C")


class Registry(Generic[T]):
    """Components of one kind by name, discovered on first use.

    >>> fruits = Registry("fruit")
    >>> @fruits.register("apple")
    ... class Apple: ...
    >>> fruits.names()
    ['apple']
    >>> fruits["aple"]
    Traceback (most recent call last):
    fedanon.errors.UnknownComponentError: Unknown fruit 'aple'. Did you mean 'apple'? Known: apple.

    Parameters
    ----------
    kind : what a component is called in messages, such as "anonymizer".
    packages : dotted names of the packages whose modules register components; modules whose name starts with an
        underscore are not imported (compiled kernels, helpers).
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

    def stored_name(self, name: str) -> str:
        """The former name of a component that was renamed: hashes of stored results were made with it."""
        return next((old for old, new in self._aliases.items() if new == name), name)

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

    @contextmanager
    def restored(self) -> Iterator[None]:
        """On leaving the block, forget what was registered inside: for tests and notebooks."""
        self._discover()
        before = dict(self._components)
        try:
            yield
        finally:
            self._components = before

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True  # from here on, so that a component may look up others while it is imported
        try:
            for name in self._packages:
                self._import_package(name)
            for entry in entry_points(group=self.group) if self.group else ():
                self._load(entry)
        except BaseException:
            self._discovered = False
            raise

    def _import_package(self, name: str) -> None:
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, prefix=f"{name}."):
            if not module.name.rpartition(".")[2].startswith("_"):
                importlib.import_module(module.name)

    def _load(self, entry: EntryPoint) -> None:
        """Import what another distribution adds; one that fails to import is named instead of hidden."""
        source = entry.dist.name if entry.dist else "an unknown distribution"
        known = self._components.get(entry.name)
        try:
            found = entry.load()
        except Exception as error:
            raise ConfigError(
                f"The {self.kind} {entry.name!r} of {source} cannot be imported ({type(error).__name__}). "
                f"Repair or uninstall {source}."
            ) from error
        if isinstance(found, ModuleType) or any(found is component for component in self._components.values()):
            return
        if entry.name not in self._components:
            self.register(entry.name)(found)
        elif known is not None:
            raise ConfigError(
                f"The {self.kind} {entry.name!r} of {source} has a name that is taken. Uninstall {source}."
            )
