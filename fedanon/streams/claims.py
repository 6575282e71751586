"""What the two kinds of stream claim, in words and for manifests.

The claims are about every moment. Counts in a class only grow, so k holds at every moment if it holds at the first
publication of every class; models that compare a class with all that is published are asked at each of its
publications. How that is counted in a release: :mod:`fedanon.streams.release`; in windows:
:mod:`fedanon.streams.windows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fedanon.data.schema import Unit
from fedanon.privacy.base import View
from fedanon.privacy.models.k_anonymity import KAnonymity

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.privacy.sensitive import SensitiveModel


@dataclass(frozen=True)
class StreamClaim:
    """What the claims of both kinds of stream state.

    Parameters
    ----------
    k : least number of people.
    models : what else is required, of a sensitive column each.
    """

    kind: ClassVar[str]

    k: int
    models: tuple[SensitiveModel, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        plain = KAnonymity(k=self.k).to_dict()
        if not self.models:
            return {"stream": self.kind, **plain}
        every = [plain, *(model.to_dict() for model in self.models)]
        return {"stream": self.kind, **plain, "model": "combined", "all_of": every}

    def clauses(self, unit: Unit) -> str:
        """What is said of a class."""
        more = "; ".join(model.describe(unit) for model in self.models)
        return KAnonymity(k=self.k).describe(unit) + (f", and every class has {more}" if more else "")


class RecordsClaim(StreamClaim):
    """At every moment, every published combination of cells is of at least k people, and keeps the models."""

    kind = "records"

    def check(self, view: View, table: Table) -> None:
        """Raise PrivacyViolationError unless it holds for the release of a stream."""
        from fedanon.streams.release import check_records

        check_records(view, self.k, self.models)

    def describe(self, unit: Unit) -> str:
        """One sentence."""
        return f"at every moment, {self.clauses(unit)}"


class PeopleClaim(StreamClaim):
    """At every moment, in every class and epoch, at least k people have published, each under one pseudonym and box."""

    kind = "people"

    def check(self, view: View, table: Table) -> None:
        """Raise PrivacyViolationError unless it holds for the release of a stream."""
        from fedanon.streams.release import check_people

        check_people(view, self.k, self.models)

    def describe(self, unit: Unit) -> str:
        """One sentence."""
        return (
            f"at every moment, in every epoch, {self.clauses(unit)}, and every pseudonym has one combination of cells"
        )
