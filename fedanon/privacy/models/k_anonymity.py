"""k-anonymity: every published record shares its quasi-identifiers with those of k - 1 other people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.errors import ConfigError, PrivacyViolationError
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.federation_count import WARNING, FederationCount
from fedanon.release.release import Release

Scope = Literal["node", "federation"]


@PRIVACY_MODELS.register("k-anonymity")
@dataclass(frozen=True, kw_only=True)
class KAnonymity:
    """At least ``k`` people in every equivalence class (Samarati & Sweeney 1998).

    People are counted, not rows, where the table names persons. Suppressed rows publish nothing and do not count.

    Parameters
    ----------
    k : least number of people.
    scope : whose people: those of the release's own table, or those of all hospitals of a federation. The second is
        another claim: it can be checked only with the ``evidence`` of a count over all of them, and is refused without.
    k_local : least number of people of the own table, beside the k of the federation.
    evidence : the count of the federation.
    """

    k: int
    scope: Scope = "node"
    k_local: int = 1
    evidence: FederationCount | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, value in (("k", self.k), ("k_local", self.k_local)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"The '{name}' parameter of KAnonymity must be an int >= 1. Got {value!r} instead.")
        if self.scope not in ("node", "federation"):
            raise ConfigError(
                f"The 'scope' parameter of KAnonymity must be 'node' or 'federation'. Got {self.scope!r} instead."
            )
        if self.scope == "node" and (self.k_local > 1 or self.evidence is not None):
            raise ConfigError("k_local and the count of a federation belong to KAnonymity with scope='federation'.")

    def holds(self, table: Table, groups: Groups) -> NDArray[np.bool_]:
        """Which groups have at least k people."""
        if self.scope == "federation":
            raise ConfigError("One table cannot tell whether k-anonymity holds over a federation.")
        return people(table, groups) >= self.k

    def check(self, release: Release, table: Table) -> None:
        """Raise unless every equivalence class of the release has at least k people."""
        counts = people(table, release.classes)
        if self.scope == "node":
            self._refuse_short(counts, self.k, "")
            return
        if self.evidence is None:
            raise PrivacyViolationError(
                f"The release claims {self.k}-anonymity over a federation without the count of the federation."
            )
        self._refuse_short(np.array(self.evidence.of_release(release), dtype=np.int64), self.k, " of the federation")
        self._refuse_short(counts, self.k_local, " of this hospital")

    @staticmethod
    def _refuse_short(counts: NDArray[np.int64], k: int, whose: str) -> None:
        short = int((counts < k).sum())
        if short:
            raise PrivacyViolationError(
                f"The release claims {k}-anonymity, but {short} of {len(counts)} equivalence classes hold fewer "
                f"than {k} people{whose} (the smallest holds {int(counts.min())})."
            )

    def describe(self) -> str:
        """One sentence for people; more where the claim needs it."""
        if self.scope == "node":
            return f"every published record is shared by at least {self.k} people ({self.k}-anonymity)"
        evidence = self.evidence
        counted = f", counted over {evidence.clients} hospitals" if evidence else ""
        sure = f" with probability {evidence.confidence:g}" if evidence and evidence.confidence < 1 else ""
        local = f" and by at least {self.k_local} people of its own hospital" if self.k_local > 1 else ""
        return (
            f"every published record is shared by at least {self.k} people of the federation{counted}{sure}{local}. "
            f"{WARNING}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        if self.scope == "node":
            return {"model": "k-anonymity", "k": self.k}
        count = self.evidence.to_dict() if self.evidence else None
        return {"model": "k-anonymity", "k": self.k, "scope": self.scope, "k_local": self.k_local, "count": count}


def people(table: Table, groups: Groups) -> NDArray[np.int64]:
    """Number of people in every group."""
    return groups.sizes if table.persons is None else groups.distinct(table.persons)
