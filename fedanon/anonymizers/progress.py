"""Progress of a long search: whoever started it can watch it and stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: receives the used share of the budget and the loss so far; returns False to stop the search with what it has found
Watcher = Callable[[float, float], bool]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Let every search inside the block call ``watcher`` from time to time."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def watch(watcher: Watcher) -> None:
    """Let every search call ``watcher`` from now on; for a process that does nothing else."""
    _watcher.set(watcher)


def report(share: float, loss: float) -> bool:
    """Report to the watcher, if there is one; returns whether to go on."""
    watcher = _watcher.get()
    return watcher is None or watcher(share, loss)


def stop(_share: float, _loss: float) -> bool:
    """The watcher that stops every search."""
    return False


@contextmanager
def part(begin: float, end: float) -> Iterator[None]:
    """Reports inside the block count as the part from ``begin`` to ``end`` of the whole work."""
    outer = _watcher.get()
    with watching(lambda share, loss: outer is None or outer(begin + min(share, 1.0) * (end - begin), loss)):
        yield
