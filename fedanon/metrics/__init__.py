"""What a release costs and risks: functions ``(table, release) -> float``, registered by name.

Every metric is importable from here: ``from fedanon.metrics import ncp``. Those of statistical disclosure control are
in :mod:`fedanon.sdc.metrics`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fedanon._lazy import lazy_exports
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.registry import Registry
from fedanon.release.release import Release
from fedanon.release.view import PublishedView

if TYPE_CHECKING:
    from fedanon.metrics.base import Metric, metric, view_metric
    from fedanon.metrics.information_loss import (
        il,
        il2,
        minimal_distortion,
        minimal_distortion_share,
        ncp,
        ncp_all_columns,
        ncp_published,
        suppressed_share,
        truthfulness,
    )
    from fedanon.metrics.linkage import (
        dld,
        linkage_expected,
        linkage_expected_share,
        linkage_first,
        linkage_raw_euclidean,
        linkage_raw_manhattan,
        linkage_thesis,
    )
    from fedanon.metrics.risk import (
        average_class_size,
        classes,
        discernibility,
        journalist_risk,
        k_reached,
        marketer_risk,
        normalized_average_class_size,
        prosecutor_risk,
        prosecutor_risk_average,
        records_at_risk,
    )
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "Metric": "fedanon.metrics.base",
            "average_class_size": "fedanon.metrics.risk",
            "classes": "fedanon.metrics.risk",
            "discernibility": "fedanon.metrics.risk",
            "dld": "fedanon.metrics.linkage",
            "il": "fedanon.metrics.information_loss",
            "il2": "fedanon.metrics.information_loss",
            "journalist_risk": "fedanon.metrics.risk",
            "k_reached": "fedanon.metrics.risk",
            "linkage_expected": "fedanon.metrics.linkage",
            "linkage_expected_share": "fedanon.metrics.linkage",
            "linkage_first": "fedanon.metrics.linkage",
            "linkage_raw_euclidean": "fedanon.metrics.linkage",
            "linkage_raw_manhattan": "fedanon.metrics.linkage",
            "linkage_thesis": "fedanon.metrics.linkage",
            "marketer_risk": "fedanon.metrics.risk",
            "metric": "fedanon.metrics.base",
            "minimal_distortion": "fedanon.metrics.information_loss",
            "minimal_distortion_share": "fedanon.metrics.information_loss",
            "ncp": "fedanon.metrics.information_loss",
            "ncp_all_columns": "fedanon.metrics.information_loss",
            "ncp_published": "fedanon.metrics.information_loss",
            "normalized_average_class_size": "fedanon.metrics.risk",
            "prosecutor_risk": "fedanon.metrics.risk",
            "prosecutor_risk_average": "fedanon.metrics.risk",
            "records_at_risk": "fedanon.metrics.risk",
            "suppressed_share": "fedanon.metrics.information_loss",
            "truthfulness": "fedanon.metrics.information_loss",
            "view_metric": "fedanon.metrics.base",
        },
    )

__all__ = [
    "METRICS",
    "Metric",
    "average_class_size",
    "classes",
    "discernibility",
    "dld",
    "evaluate",
    "evaluate_view",
    "il",
    "il2",
    "journalist_risk",
    "k_reached",
    "linkage_expected",
    "linkage_expected_share",
    "linkage_first",
    "linkage_raw_euclidean",
    "linkage_raw_manhattan",
    "linkage_thesis",
    "marketer_risk",
    "metric",
    "minimal_distortion",
    "minimal_distortion_share",
    "ncp",
    "ncp_all_columns",
    "ncp_published",
    "normalized_average_class_size",
    "prosecutor_risk",
    "prosecutor_risk_average",
    "records_at_risk",
    "suppressed_share",
    "truthfulness",
    "view_metric",
]

METRICS: Registry[Metric] = Registry("metric", __name__, "fedanon.sdc.metrics", group=__name__)


def evaluate(table: Table, release: Release, names: Iterable[str] | None = None) -> dict[str, float]:
    """Metrics of a release of ``table``, in the order of ``names`` (all, sorted by name, if None).

    A metric that does not apply, such as IL on a release without numeric columns, is NaN.
    """
    if len(release) != len(table):
        raise ConfigError(f"The release has {len(release)} rows, the table {len(table)}: they do not belong together.")
    chosen = METRICS.names() if names is None else list(names)
    return {name: METRICS[name].function(table, release) for name in chosen}


def evaluate_view(view: PublishedView, names: Iterable[str]) -> dict[str, float]:
    """Metrics that need no originals, of anything published, in the order of ``names``."""
    found = {name: METRICS[name].of_view for name in names}
    needy = [name for name, function in found.items() if function is None]
    if needy:
        raise ConfigError(f"These metrics compare a release with its original table: {', '.join(needy)}.")
    return {name: function(view) for name, function in found.items() if function is not None}
