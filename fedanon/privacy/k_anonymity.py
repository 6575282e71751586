"""k-anonymity: every published record shares its quasi-identifiers with those of k - 1 other people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.errors import ConfigError, PrivacyViolationError
from fedanon.privacy import MODELS


@MODELS.register("k-anonymity")
@dataclass(frozen=True, kw_only=True)
class KAnonymity:
    """At least ``k`` people in every equivalence class (Samarati & Sweeney 1998).

    People are counted, not rows, where the table names persons. Suppressed rows publish nothing and do not count.
    """

    k: int

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or isinstance(self.k, bool) or self.k < 1:
            raise ConfigError(f"The 'k' parameter of KAnonymity must be an int >= 1. Got {self.k!r} instead.")

    def holds(self, table: Table, groups: Groups) -> NDArray[np.bool_]:
        """Which groups have at least k people."""
        return people(table, groups) >= self.k

    def check(self, release: Release, table: Table) -> None:
        """Raise unless every equivalence class of the release has at least k people."""
        counts = people(table, release.classes)
        short = int((counts < self.k).sum())
        if short:
            raise PrivacyViolationError(
                f"The release claims {self.k}-anonymity, but {short} of {len(counts)} equivalence classes hold fewer "
                f"than {self.k} people (the smallest holds {int(counts.min())})."
            )

    def describe(self) -> str:
        """One sentence for people."""
        return f"every published record is shared by at least {self.k} people ({self.k}-anonymity)"

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"model": "k-anonymity", "k": self.k}


def people(table: Table, groups: Groups) -> NDArray[np.int64]:
    """Number of people in every group."""
    return groups.sizes if table.persons is None else groups.distinct(table.persons)
