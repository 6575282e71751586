"""Enforce what is required: merge classes that break a privacy model, each where it helps and costs least.

:func:`merge_short_groups` repairs what a method's own counting of rows has missed; :func:`keep_requirements` enforces
models beyond k on the classes as they are published.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.spans import points, span_table
from fedanon.data.table import Table
from fedanon.errors import InfeasibleError
from fedanon.privacy.base import Forecast, PrivacyModel, Rows
from fedanon.privacy.combined import Combined
from fedanon.types import FloatArray, IndexArray

Published = Mapping[str, Cells]
#: number of partners that are judged at once, the cheapest first; it is quadrupled each time
BLOCK = 64


def merge_short_groups(table: Table, groups: Groups, model: PrivacyModel) -> Groups:
    """Merge every group for which ``model`` does not hold into the group whose joint cell loses least.

    Methods count rows; where persons own several rows, or for a stronger model, a group may fall short. Each pass
    joins every short group with its nearest, and passes repeat until all hold or one group is left. A pass costs
    O(short x groups) and at least halves the short groups.
    """
    evaluator = model.evaluator(Rows.from_table(table), ~groups.suppressed)
    while groups.count > 1:
        short = np.flatnonzero(~evaluator.satisfied(groups, dict))
        if short.size == 0:
            break
        groups = _join_nearest(table, groups, short)
    return groups


def _join_nearest(table: Table, groups: Groups, short: IndexArray) -> Groups:
    from fedanon.kernels.spans import joint_loss

    rows, spans = points(table), span_table(table.columns)
    low, high = groups.minimum(rows), groups.maximum(rows)
    target = np.arange(groups.count)
    touched = np.zeros(groups.count, dtype=bool)
    for source in short:
        if touched[source]:
            continue  # another short group joined it in this pass; it is judged again in the next
        loss = joint_loss(spans, low, high, source)
        loss[source] = np.inf
        nearest = target[int(np.argmin(loss))]
        target[source] = nearest
        touched[[source, nearest]] = True
    labels = np.append(target, -1)[groups.labels]
    return Groups.from_labels(labels)


# ---- Models beyond k -----------------------------------------------------------------------------


def keep_requirements(
    table: Table, groups: Groups, cells: Published, claim: Combined, publish: Callable[[Groups], Published]
) -> tuple[Groups, Published]:
    """Merge groups until every equivalence class satisfies ``claim``; returns the groups and cells to publish.

    Classes are judged as they are published, so that models which merging can break hold too. Each pass merges every
    failing class with another one and publishes again; if a single class is left and fails, nothing can be published.
    """
    evaluator = claim.evaluator(Rows.from_table(table), ~groups.suppressed)
    while True:
        classes, shown = _classes(groups, cells)
        satisfied = evaluator.satisfied(classes, lambda shown=shown: shown)  # type: ignore[misc]
        if satisfied.all():
            return groups, cells
        if classes.count == 1:
            refuse_broken(table, classes, shown, claim)
            return groups, cells  # k itself fails, as rows are suppressed: verification rejects it
        groups = _merged(table, classes, np.flatnonzero(~satisfied), evaluator.forecast(classes))
        cells = publish(groups)


def refuse_broken(table: Table, whole: Groups, cells: Published, claim: Combined) -> None:
    """Raise InfeasibleError, naming the models, if ``claim`` does not hold for the table as one class."""
    rows = Rows.from_table(table)
    evaluators = {str(model): model.evaluator(rows, ~whole.suppressed) for model in claim.models}
    broken = [name for name, evaluator in evaluators.items() if not evaluator.satisfied(whole, lambda: cells).all()]
    if broken:
        raise InfeasibleError(f"Not even the whole table as one class satisfies {' and '.join(broken)}: require less.")


def _classes(groups: Groups, cells: Published) -> tuple[Groups, Published]:
    """Groups that publish the same cells joined to classes, with these cells."""
    equal = Groups.equal_rows(np.column_stack([cell.keys() for cell in cells.values()]))
    labels = np.append(equal.labels, np.int32(-1))[groups.labels]
    return Groups(labels, equal.count), {name: cell.select(equal.first_rows) for name, cell in cells.items()}


def _merged(table: Table, classes: Groups, failing: IndexArray, forecast: Forecast) -> Groups:
    """Merge every failing class with the one that adds least loss, if possible one that repairs it.

    Classes are merged one by one, so that each choice sees the result of the earlier ones. A class that no other
    repairs is merged with its cheapest neighbor and waits for its next turn.
    """
    growth = _Growth(table, classes)
    target = np.arange(classes.count)
    queue = deque(int(source) for source in failing)
    broken = set(queue)
    while queue:
        source = queue.popleft()
        if source not in broken or growth.alive.size < 2:
            continue  # it was repaired by a class that joined it, or is all that is left
        into, repaired = _partner(source, growth.cheapest_first(source), forecast)
        growth.merge(source, into)
        forecast.merge(source, into)
        target[source] = into
        broken.discard(source)
        if repaired:
            broken.discard(into)
        else:
            broken.add(into)
            queue.append(into)
    while (target != target[target]).any():
        target = target[target]
    return Groups.from_labels(np.append(target, -1)[classes.labels])


def _partner(source: int, others: IndexArray, forecast: Forecast) -> tuple[int, bool]:
    """The first of ``others`` that repairs a class, else simply the first; and whether it repairs it."""
    at, size = 0, BLOCK
    while at < len(others):
        repairs = np.flatnonzero(forecast.satisfied(source, others[at : at + size]))
        if repairs.size:
            return int(others[at + repairs[0]]), True
        at, size = at + size, 4 * size
    return int(others[0]), False


class _Growth:
    """The loss that merging two classes adds, summed over their rows, while classes are being merged."""

    def __init__(self, table: Table, classes: Groups) -> None:
        rows = points(table)
        self._spans, self._sizes = span_table(table.columns), classes.sizes.copy()
        self._low, self._high = classes.minimum(rows), classes.maximum(rows)
        low, high = classes.minimum(table.codes), classes.maximum(table.codes)
        columns = enumerate(table.columns)
        self._own = classes.sizes * np.sum([c.loss(low[:, i], high[:, i]) for i, c in columns], axis=0)

    @property
    def alive(self) -> IndexArray:
        """The classes that have not been merged into another."""
        return np.flatnonzero(self._sizes)

    def cheapest_first(self, source: int) -> IndexArray:
        """All other classes, those first whose union with ``source`` adds least."""
        alive = self.alive
        others = alive[alive != source]
        added = (self._sizes[others] + self._sizes[source]) * self._joint(source, others) - self._own[others]
        return np.asarray(others[np.argsort(added, kind="stable")])

    def merge(self, source: int, into: int) -> None:
        """Put a class into another."""
        joint = float(self._joint(source, np.array([into]))[0])
        self._low[into] = np.minimum(self._low[into], self._low[source])
        self._high[into] = np.maximum(self._high[into], self._high[source])
        self._sizes[into] += self._sizes[source]
        self._own[into] = self._sizes[into] * joint
        self._sizes[source] = 0

    def _joint(self, source: int, others: IndexArray) -> FloatArray:
        from fedanon.kernels.spans import union_loss

        return np.asarray(union_loss(self._spans, self._low, self._high, source, others))
