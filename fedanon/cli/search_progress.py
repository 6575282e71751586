"""A bar for methods that search: how much of the budget is used, and the loss so far."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from fedanon.cli.output import console


@contextmanager
def search_progress() -> Iterator[None]:
    """Show the progress of a search inside the block, if there is one; Ctrl-C ends it with the best found so far."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from fedanon.anonymizers.progress import watching

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console(stderr=True), transient=True)
    task = bar.add_task("searching", total=1.0)

    def show(share: float, loss: float) -> bool:
        bar.start()  # only now: a method that does not search leaves no trace on the screen
        bar.update(task, completed=share, description="searching" if math.isnan(loss) else f"loss {loss:.4f}")
        return True

    try:
        with watching(show):
            yield
    finally:
        if bar.live.is_started:
            bar.stop()
