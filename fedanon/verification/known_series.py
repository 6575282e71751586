"""A release beside all before it: what its series promises, counted again from the files and the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedanon.anonymizers.series import add_counterfeits, name_rows
from fedanon.attacks.context import SeenRelease
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.datasets.source import DataSource
from fedanon.errors import DataError
from fedanon.io.ledger import LedgerEntry, SeriesLedger
from fedanon.io.manifest import Manifest, file_sha256
from fedanon.io.release_file import ALL, read_release
from fedanon.privacy.series import Carried, History, carried_rows
from fedanon.release.verdicts import Verdict
from fedanon.release.view import FileView


@dataclass(frozen=True, eq=False)
class KnownSeries:
    """The releases of a series up to one of them.

    Parameters
    ----------
    ledger : of the whole series.
    history : up to the release.
    views : the files in their order, read.
    least_people : how many people every class must have.
    """

    ledger: SeriesLedger
    history: History
    views: tuple[FileView, ...]
    least_people: int

    @classmethod
    def read(cls, schema: Path, manifest: Manifest, previous: Sequence[Path]) -> KnownSeries:
        """The series of the release that ``manifest`` describes; ``previous`` are the manifests of all before it.

        The ledger lies beside the ``schema``. Files that are not those that were written are refused.
        """
        declared = Schema.read(schema)
        ledger = SeriesLedger.read(schema, declared.sha256)
        assert ledger.history is not None
        at = {entry.manifest_sha256: number for number, entry in enumerate(ledger.entries)}
        number = at.get(file_sha256(manifest.path))
        if number is None:
            raise DataError(f"The ledger {ledger.path.name} does not know the release of {manifest.path.name}.")
        before = replace(ledger, entries=ledger.entries[:number])
        earlier = {file_sha256(path): Manifest.read(path) for path in previous}
        before.check_previous(list(earlier.values()))
        manifests = [*(earlier[entry.manifest_sha256] for entry in before.entries), manifest]
        changed = [each.release.name for each in manifests if not each.is_of_file]
        if changed:
            raise DataError(f"Not the files that were written: {', '.join(changed)}.")
        views = tuple(
            read_release(each.release, each.schema or declared, also=ALL, manifest=each) for each in manifests
        )
        return cls(ledger, ledger.history.until(number + 1), views, int(manifest.claim.get("k", 1)))

    def judge(self, promise: Verdict) -> Verdict:
        """The verdict on the promise of the series, which one file alone leaves open."""
        wrong = [self._wrong_classes(release) for release in range(len(self.views))]
        exposed, split = self.history.exposed_people(), self.history.split_people()
        reasons = [
            f"release {release + 1} has {count} classes that are not as the ledger says"
            for release, count in enumerate(wrong)
            if count
        ]
        reasons += [f"too few values stay possible for {exposed} people"] if exposed else []
        reasons += [f"{split} people were shown twice in one release or with several values"] if split else []
        broken = max(wrong[-1], 1) if reasons else 0
        return replace(promise, holds=not reasons, broken=broken, doubt="", reason=" and ".join(reasons))

    def _wrong_classes(self, release: int) -> int:
        """Number of classes of a file that do not show what the ledger says, or hold too few people."""
        view, entry = self.views[release], self.ledger.entries[release]
        labels, carried = view.classes.labels, carried_rows(view.passthrough, view.schema, self.history.columns)
        stated = dict(entry.classes)
        people = Counter(self.history.cohort_of_person(release).values())
        wrong = abs(len(entry.classes) - view.classes.count)
        shown_by = [Counter[Carried]() for _ in range(view.classes.count)]
        for row in np.flatnonzero(~view.suppressed).tolist():
            shown_by[labels[row]][carried[row]] += 1
        for shown, cells in zip(shown_by, _class_cells(view), strict=True):
            cohorts = stated.get(cells, ())
            expected = sum((self.history.shown(cohort, release) for cohort in cohorts), Counter())
            wrong += shown != expected or sum(people[cohort] for cohort in cohorts) < self.least_people
        return wrong

    def seen(self) -> tuple[SeenRelease, ...]:
        """What an attacker sees of every release who knows who is in which class, also after they left."""
        return tuple(self._seen(release, entry) for release, entry in enumerate(self.ledger.entries[: len(self.views)]))

    def _seen(self, release: int, entry: LedgerEntry) -> SeenRelease:
        view = self.views[release]
        label_of_cells = {cells: label for label, cells in enumerate(_class_cells(view))}
        label = {cohort: label_of_cells[cells] for cells, cohorts in entry.classes for cohort in cohorts}
        people = self.history.cohort_of_shown(release)
        shown = np.flatnonzero(~view.suppressed)
        return SeenRelease(
            list(people),
            np.array([label[cohort] for cohort in people.values()], dtype=np.int64),
            view.classes.labels[shown].astype(np.int64),
            view.passthrough.iloc[shown],
        )

    def with_counterfeits(self, table: Table, original: DataSource) -> Table:
        """The table of this release with the counterfeit rows that were published with it."""
        people = self.ledger.pseudonyms(original.person_ids(table.schema), table)
        return add_counterfeits(table, name_rows(table, people), self.history)[0]


def _class_cells(view: FileView) -> list[tuple[str, ...]]:
    """The published cells of every class."""
    names = [attribute.name for attribute in view.schema.quasi_identifiers]
    shown = view.frame[names].iloc[view.classes.first_rows]
    return [tuple(map(str, row)) for row in shown.itertuples(index=False)]
