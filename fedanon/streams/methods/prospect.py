"""Prospect: the oldest record with those that lose little beside it and would lose much elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedanon.data.coded_column import CodedColumn
from fedanon.fields import parameter
from fedanon.streams import RECORD_METHODS
from fedanon.streams.base import RecordEngine, RecordMethod
from fedanon.streams.buffered import BufferedEngine


@RECORD_METHODS.register("prospect")
@dataclass(frozen=True, kw_only=True)
class Prospect(RecordMethod):
    r"""Our method. The *prospect* of a waiting record is what it would lose if it is not used now:

    .. math:: e_j = \min(C_j,\; c \cdot s \cdot H_j)

    with :math:`C_j` the loss of the best kept box that holds it, :math:`H_j` that of the pair it makes with its k-th
    nearest waiting record, s the running ratio of the loss of new classes to the H of the records that started them,
    and c the ``caution``. When the time of the oldest record is up, its class grows by the record for which k times the
    growth of the box's loss, less its prospect, is least, and every member is then swapped for a better one, twice. So
    records that are hard to place are used first and easy ones are kept. The class is published if that loses less
    than publishing the record under its best kept box, where what the others gain or lose against their prospects
    counts by the factor ``regret``.
    """

    name = "prospect"

    caution: float = parameter(1.5, help="factor on what a record is expected to lose in a later class", at_least=0.1)
    regret: float = parameter(0.8, help="what the others of a class count beside the record it is for", at_least=0)
    reach: int = parameter(128, help="records that are looked at for a class, at least six times k", at_least=1)

    def start(self, columns: Sequence[CodedColumn], *, seed: int = 0) -> RecordEngine:
        """An engine without records; nothing is drawn at random."""
        reach = max(self.reach, 6 * self.k)
        return BufferedEngine(self, columns, caution=self.caution, regret=self.regret, reach=reach)
