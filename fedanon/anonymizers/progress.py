"""Progress of a long search: whoever started it may watch it and stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: gets the share of the budget that is used and the loss so far; returns False to stop with what has been found
Watcher = Callable[[float, float], bool]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Have ``watcher`` called from time to time by every search inside the block."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def watch(watcher: Watcher) -> None:
    """Have ``watcher`` called by every search from now on; for a process that does nothing else."""
    _watcher.set(watcher)


def report(share: float, loss: float) -> bool:
    """Tell the watcher, if there is one; whether to go on."""
    watcher = _watcher.get()
    return watcher is None or watcher(share, loss)


def stop(_share: float, _loss: float) -> bool:
    """The watcher that lets no search go on."""
    return False


@contextmanager
def part(begin: float, end: float) -> Iterator[None]:
    """Reports inside the block are about the part ``begin`` to ``end`` of the whole work."""
    outer = _watcher.get()
    with watching(lambda share, loss: outer is None or outer(begin + min(share, 1.0) * (end - begin), loss)):
        yield
