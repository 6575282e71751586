"""What a release costs and risks: functions ``(table, release) -> float``, registered by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fedanon.errors import ConfigError
from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.metrics.base import Metric
    from fedanon.release.release import Release

METRICS: Registry[Metric] = Registry("metric", __name__, "fedanon.sdc.metrics", group=__name__)


def evaluate(table: Table, release: Release, names: Iterable[str] | None = None) -> dict[str, float]:
    """Metrics of a release of ``table``, in the order of ``names`` (all, sorted by name, if None).

    A metric that does not apply, such as IL on a release without numeric columns, is NaN.
    """
    if len(release) != len(table):
        raise ConfigError(f"The release has {len(release)} rows, the table {len(table)}: they do not belong together.")
    chosen = METRICS.names() if names is None else list(names)
    return {name: METRICS[name].function(table, release) for name in chosen}
