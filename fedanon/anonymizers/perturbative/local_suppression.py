"""Local suppression: single cells of the key columns become '*' until no record stands out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng, refuse_few_people
from fedanon.anonymizers.perturbative.base import Columns
from fedanon.anonymizers.perturbative.key_method import KeyMethod
from fedanon.anonymizers.perturbative.keys import STAR, Keys, keys_of
from fedanon.anonymizers.perturbative.stars import suppress
from fedanon.anonymizers.perturbative.suppressions import (
    consistent_people,
    equal_suppressions,
    fitting_suppressions,
    wildcard_people,
)
from fedanon.data.cells import is_suppressed
from fedanon.data.groups import Groups
from fedanon.data.release import Claim
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.parameters import listed, parameter
from fedanon.privacy.k_anonymity import KAnonymity


@ANONYMIZERS.register("local_suppression")
@dataclass(frozen=True, kw_only=True)
class LocalSuppression(KeyMethod):
    """Suppresses few cells of the keys, the unimportant columns first, until every record is like k others.

    With ``matching = "wildcard"`` every published row covers the values of k people, by the least number of cells;
    then it also agrees with k rows as sdcMicro counts them, '*' agreeing with anything. That is weaker than
    k-anonymity, so nothing is claimed, and the release notes how many rows an attacker who knows the true values
    finds. With ``"equal"`` k people share every published row, which is claimed and verified if all quasi-identifiers
    are keys. See :mod:`~fedanon.anonymizers.perturbative.suppressions`.
    """

    name = "local_suppression"
    truthful = True
    row_order_matters = False

    k: int = parameter(3, help="people every record must be like, itself included", at_least=2)
    matching: Literal["wildcard", "equal"] = parameter(
        "wildcard", help="whether '*' is like any value, or only like '*'"
    )
    importance: str = parameter("", help="keys from the most important on, by commas; fewest values first if empty")

    def claim(self) -> Claim | None:
        """k-anonymity, where it was reached over all quasi-identifiers."""
        return KAnonymity(k=self.k) if self.matching == "equal" and not self.columns.strip() else None

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """The keys with some cells suppressed."""
        refuse_few_people(table, self.k)
        names = self._by_importance(table, current)
        keys = keys_of(table, current, names)
        search = fitting_suppressions if self.matching == "wildcard" else equal_suppressions
        stars = search(keys.codes, keys.people, self.k)[keys.groups.labels]
        attributes = {column.name: column.attribute for column in table.columns}
        return {n: suppress(current[n], attributes[n], stars[:, i]) for i, n in enumerate(names) if stars[:, i].any()}

    def remarks(self, table: Table, before: Columns, after: Columns) -> tuple[str, ...]:
        """How many cells went, and which count of similar records was reached."""
        names = self._by_importance(table, before)
        was, now = keys_of(table, before, names), keys_of(table, after, names)
        cells = {c.name: int(is_suppressed(after[c.name], c.attribute).sum()) for c in table.columns if c.name in names}
        total = f"{sum(cells.values())} suppressed cells ({', '.join(f'{n} {c}' for n, c in cells.items())})."
        return (total, *self._reached(was, now))

    def _reached(self, was: Keys, now: Keys) -> tuple[str, ...]:
        if self.matching == "equal":
            return (f"Every combination of the keys is shared by at least {self.k} people.",)
        agreeing = wildcard_people(now.codes, now.people).min()
        stars = (now.codes == STAR)[now.groups.labels[was.groups.first_rows]]
        known = consistent_people(was.codes, was.people, stars).min()
        return (
            f"Every record agrees with at least {int(agreeing)} people, '*' agreeing with any value. This is not "
            f"{self.k}-anonymity: an attacker who knows a person's true keys finds as few as {int(known)}.",
        )

    def _by_importance(self, table: Table, current: Columns) -> list[str]:
        """The keys, the most important first."""
        names = self.chosen(table, [column.name for column in table.columns], "quasi-identifiers")
        first = listed(self.importance)
        unknown = [name for name in first if name not in names]
        if unknown:
            raise ConfigError(f"The 'importance' parameter names columns that are no keys: {', '.join(unknown)}.")
        values = {name: Groups.equal_rows(current[name].keys()).count for name in names}
        return sorted(names, key=lambda n: (first.index(n) if n in first else len(first), values[n]))
