"""A released file, looked at again: what it holds, whether its promises hold, and whether its manifest tells the truth.

:func:`check_release` measures a file (with its original at hand also loss and truth) and raises where a promise is
broken; :class:`Verification` holds a manifest against the file it describes, its schema and its origin, and says of
every point whether it holds. Whether a promise holds is decided for both by :func:`evaluate_promises`. Both see the
file as a :class:`fedanon.release.view.FileView` and compute nothing of their own: numbers are those of
:mod:`fedanon.metrics`, verdicts those of :mod:`fedanon.release.verdicts`.
"""

from fedanon.verification.checked_release import (
    ORIGINAL_METRICS,
    VIEW_METRICS,
    CheckedRelease,
    check_release,
    inspect_release,
)
from fedanon.verification.known_release import UNMATCHED, KnownRelease, carried_columns, with_known_facts
from fedanon.verification.known_series import KnownSeries
from fedanon.verification.manifest_checks import Verification
from fedanon.verification.promises import Check, evaluate_promises

__all__ = [
    "ORIGINAL_METRICS",
    "UNMATCHED",
    "VIEW_METRICS",
    "Check",
    "CheckedRelease",
    "KnownRelease",
    "KnownSeries",
    "Verification",
    "carried_columns",
    "check_release",
    "evaluate_promises",
    "inspect_release",
    "with_known_facts",
]
