"""Ledger: how often the nodes of a run were asked for counts. A run that is resumed or restarted asks them again."""

from __future__ import annotations

from fedanon.data.atomic import atomic_write
from fedanon.errors import DataError
from fedanon.federated.checkpoints import Checkpoints
from fedanon.federated.settings import RunSettings


def note_asking(checkpoints: Checkpoints | None, settings: RunSettings) -> int:
    """Note one more protocol of the run, before it begins, and return how many there were.

    The note outlives checkpoints that are discarded: what was told stays told.
    """
    if checkpoints is None:
        return 1
    path = checkpoints.folder / f"{checkpoints.name(settings)}.asked"
    try:
        asked = 1 + (int(path.read_text(encoding="ascii")) if path.exists() else 0)
    except (OSError, ValueError):
        raise DataError(f"The note {path.name} of earlier questions is damaged.") from None
    checkpoints.folder.mkdir(parents=True, exist_ok=True)
    atomic_write(path, f"{asked}\n")
    return asked
