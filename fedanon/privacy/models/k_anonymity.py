"""k-anonymity: every published record shares its quasi-identifiers with those of k - 1 others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.schema import Unit
from fedanon.errors import ConfigError, PrivacyViolationError
from fedanon.fields import parameter
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.base import CellsOf, Evaluator, PrivacyModel, Rows, View
from fedanon.privacy.federation_count import WARNING, FederationCount
from fedanon.types import BoolArray

if TYPE_CHECKING:
    from fedanon.data.table import Table

Scope = Literal["node", "federation"]


@PRIVACY_MODELS.register("k")
@dataclass(frozen=True, kw_only=True)
class KAnonymity(PrivacyModel):
    """At least ``k`` people in every equivalence class (Samarati & Sweeney 1998).

    People are counted where the schema says who is who, else records. Suppressed rows publish nothing and do not count.

    Parameters
    ----------
    k : least number of people.
    scope : whose people: those of the release's own table, or those of all nodes of a federation. The second is
        another claim: it can be checked only with the ``evidence`` of a count over all of them, and is refused without.
    k_local : least number of people of the own table, beside the k of the federation.
    evidence : the count of the federation.
    """

    title = "k-anonymity"
    refuted_by_rows = True

    k: int = parameter(help="least number of people in a class", at_least=1)
    scope: Scope = "node"
    k_local: int = field(default=1, metadata={"at_least": 1})
    evidence: FederationCount | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scope == "node" and (self.k_local > 1 or self.evidence is not None):
            raise ConfigError("k_local and the count of a federation belong to KAnonymity with scope='federation'.")

    @property
    def min_people(self) -> int:
        """The k, unless the people of all nodes are counted."""
        return 0 if self.of_federation else self.k

    @property
    def of_federation(self) -> bool:
        """Whether the people of all nodes are counted."""
        return self.scope == "federation"

    def evaluator(self, rows: Rows, published: BoolArray) -> Evaluator:
        """Count people; see :class:`PrivacyModel`."""
        if self.of_federation:
            raise ConfigError("One table cannot tell whether k-anonymity holds over a federation.")

        def satisfied(groups: Groups, _: CellsOf) -> BoolArray:
            return np.asarray(rows.people(groups) >= self.k)

        return Evaluator(satisfied)

    def check(self, view: View, table: Table) -> None:
        """Raise unless every equivalence class has at least k people."""
        if not self.of_federation:
            super().check(view, table)
            return
        if self.evidence is None:
            raise PrivacyViolationError(
                f"The release claims {self.k}-anonymity over a federation without the count of the federation."
            )
        unit = view.schema.unit
        counts = np.array(self.evidence.count_people(view), dtype=np.int64)
        self._refuse_short(counts, self.k, f"{unit} of the federation")
        self._refuse_short(view.classes.count_people(view.persons), self.k_local, f"{unit} of this node")

    def explain_failure(self, view: View) -> str:
        """How many classes are too small; see :class:`PrivacyModel`."""
        return _shortage(view.classes.count_people(view.persons), self.k, view.schema.unit)

    @staticmethod
    def _refuse_short(counts: NDArray[np.int64], k: int, what: str) -> None:
        if (counts < k).any():
            raise PrivacyViolationError(f"The release claims {k}-anonymity, but {_shortage(counts, k, what)}.")

    def describe(self, unit: Unit) -> str:
        """One sentence; more where the claim needs it."""
        if not self.of_federation:
            return f"every published record is shared by at least {self.k} {unit} ({self.k}-anonymity)"
        evidence = self.evidence
        counted = f", counted over {evidence.nodes} nodes" if evidence else ""
        sure = f" with probability {evidence.confidence:g}" if evidence and evidence.confidence < 1 else ""
        local = f" and by at least {self.k_local} {unit} of its own node" if self.k_local > 1 else ""
        return (
            f"every published record is shared by at least {self.k} {unit} of the federation{counted}{sure}{local}. "
            f"{WARNING}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        if not self.of_federation:
            return {"model": self.title, "k": self.k}
        count = self.evidence.to_dict() if self.evidence else None
        return {"model": self.title, "k": self.k, "scope": self.scope, "k_local": self.k_local, "count": count}

    def __str__(self) -> str:
        return f"{self.k}-anonymity" + (" over the federation" if self.of_federation else "")


def _shortage(counts: NDArray[np.int64], k: int, what: str) -> str:
    return (
        f"{int((counts < k).sum())} of {len(counts)} equivalence classes hold fewer than {k} {what} "
        f"(the smallest holds {int(counts.min())})"
    )
