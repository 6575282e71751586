"""FADS: the oldest record with its k - 1 nearest, or under a published box that holds it at a lower loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedanon.data.coded_column import CodedColumn
from fedanon.streams import RECORD_METHODS
from fedanon.streams.base import RecordEngine, RecordMethod
from fedanon.streams.buffered import BufferedEngine


@RECORD_METHODS.register("fads")
@dataclass(frozen=True, kw_only=True)
class Fads(RecordMethod):
    """Guo & Zhang 2013, "Fast clustering-based anonymization approaches with time constraints for data streams".

    When the time of the oldest record is up, its k - 1 nearest waiting records of other people make a class with it,
    unless a box that was published before holds the record and loses no more; then it is published alone under that
    box. In place of the paper's reuse time, a bounded number of boxes is kept, those used last.
    """

    name = "fads"

    def start(self, columns: Sequence[CodedColumn], *, seed: int = 0) -> RecordEngine:
        """An engine without records; nothing is drawn at random."""
        return BufferedEngine(self, columns, nearest=True)
