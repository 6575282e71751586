"""Progress of a long search: whoever started it can watch it and stop it, and repeat one that went by the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


# ---- What a search by the clock really did, so that it can be done again -------------------------

#: the trials of one run: how many at a time, and the share of the budget that was used before them
Chunks = Sequence[tuple[int, float]]

_repeated: ContextVar[Iterator[Chunks] | None] = ContextVar("repeated", default=None)


@contextmanager
def repeating(runs: Sequence[Chunks]) -> Iterator[None]:
    """Let the searches inside the block make the trials of ``runs``, run by run, whatever the clock says."""
    token = _repeated.set(iter(runs))
    try:
        yield
    finally:
        _repeated.reset(token)


def next_repeated() -> Chunks | None:
    """The trials the next run is to make; None where none are given."""
    runs = _repeated.get()
    return None if runs is None else next(runs, None)
