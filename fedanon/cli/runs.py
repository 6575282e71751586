"""One run of one method: what `anonymize` and `compare` share."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedanon.anonymizers.base import Anonymizer
    from fedanon.data.table import Table
    from fedanon.release.release import Release

#: the metrics every run reports
REPORTED = (
    "k_reached",
    "classes",
    "average_class_size",
    "discernibility",
    "ncp",
    "ncp_published",
    "il",
    "il2",
    "minimal_distortion_share",
    "linkage_expected",
    "linkage_expected_share",
    "linkage_first",
    "prosecutor_risk",
    "marketer_risk",
    "truthfulness",
)
COUNTS = ("k_reached", "classes", "linkage_first")


def component_of(method: str) -> type[Anonymizer]:
    """The method by name; a joint one is rejected with a hint where it belongs."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.errors import ConfigError
    from fedanon.joint import JOINT_METHODS

    if method.replace("-", "_") in JOINT_METHODS:
        raise ConfigError(
            f"The method {method!r} is one of a federation, not of one table: it goes with `fedanon simulate`, or with "
            "the server of a federation."
        )
    return ANONYMIZERS[method]


def make_anonymizer(method: str, k: int | None, settings: Mapping[str, Any]) -> Anonymizer:
    """The method by name; ``k`` is left out for methods that have none."""
    from fedanon.anonymizers.base import takes_k
    from fedanon.errors import ConfigError
    from fedanon.fields import build

    component = component_of(method)
    has_k = takes_k(component)
    if has_k and k is None and "k" not in settings:
        raise ConfigError(f"The method {method!r} needs --k.")
    if k is not None and not has_k:
        raise ConfigError(f"The method {method!r} takes no k: it does not promise k-anonymity.")
    return build(component, {**settings, **({} if k is None else {"k": k})})


def run(anonymizer: Anonymizer, table: Table, seed: int) -> tuple[Release, dict[str, Any]]:
    """Anonymize and measure; ``seconds`` is the time of the anonymization alone, verification included."""
    start = time.perf_counter()
    release = anonymizer.anonymize(table, rng=seed)
    return release, describe_run(anonymizer, table, release, seed, time.perf_counter() - start)


def describe_run(anonymizer: Anonymizer, table: Table, release: Release, seed: int, seconds: float) -> dict[str, Any]:
    """What is reported of a release of ``table``."""
    return {
        "method": anonymizer.name,
        "k": getattr(anonymizer, "k", None),
        **measure(table, release),
        "claim": release.promise or None,
        "counted": table.schema.unit,
        "notes": list(release.provenance.notes),
        "parameters": dict(release.provenance.parameters),
        "seed": seed,
        "version": release.provenance.version,
        "seconds": round(seconds, 4),
    }


def measure(table: Table, release: Release) -> dict[str, Any]:
    """Sizes and metrics of a release of ``table``."""
    from fedanon.metrics import evaluate

    measured: dict[str, Any] = evaluate(table, release, REPORTED)
    for name in COUNTS:
        # NaN where a metric does not apply
        measured[name] = int(measured[name]) if measured[name] == measured[name] else measured[name]
    suppressed = int(release.suppressed.sum())
    return {"n": len(table), "people": table.n_people, "suppressed": suppressed, **measured}
