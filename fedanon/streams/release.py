"""StreamRelease: all that a stream has published, as a release that the gate, metrics and attacks take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from fedanon.data.groups import Groups
from fedanon.errors import PrivacyViolationError
from fedanon.privacy.base import View
from fedanon.privacy.sensitive import SensitiveModel
from fedanon.release.release import Release
from fedanon.streams.diversity import PublishedValues
from fedanon.types import AnyArray, IndexArray


@dataclass(frozen=True, eq=False)
class StreamRelease(Release):
    """What a stream has published, a row per reading that came.

    Parameters
    ----------
    moments : number of the publication of each row, in order; rows with the same number were published at once; -1 for
        those of which nothing is published.
    pseudonyms : of each row, where the readings of a person stay one series; else None.
    epochs : number of the epoch of each row; zeros where there are no pseudonyms.
    """

    moments: IndexArray = field(kw_only=True, repr=False)
    pseudonyms: AnyArray | None = field(kw_only=True, default=None, repr=False)
    epochs: IndexArray = field(kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if (self.moments < 0).tolist() != self.suppressed.tolist():
            raise PrivacyViolationError("A stream release must publish exactly the rows that have a moment.")

    def to_frame(self) -> pd.DataFrame:
        """The published table, pseudonyms and epochs included."""
        frame = super().to_frame()
        if self.pseudonyms is not None:
            shown = ~self.suppressed
            frame.insert(0, "pseudonym", pd.Series(self.pseudonyms, index=frame.index).where(shown))
            frame.insert(1, "epoch", pd.Series(self.epochs, index=frame.index, dtype="Int64").where(shown))
        return frame


def check_records(view: View, k: int, models: Sequence[SensitiveModel]) -> None:
    """Raise PrivacyViolationError unless every combination of cells is of k people when it is first published."""
    release = _stream_release(view)
    _refuse_short(release, release.classes, k)
    _check_models(release, release.classes, models)


def check_people(view: View, k: int, models: Sequence[SensitiveModel]) -> None:
    """Raise PrivacyViolationError unless every class and epoch begins with k people, and a pseudonym has one box."""
    release = _stream_release(view)
    names = release.pseudonyms
    if names is None or release.persons is None:
        raise PrivacyViolationError("The claim is about people, whom the release does not know.")
    shown = ~release.suppressed
    codes = np.where(shown, pd.factorize(np.where(shown, names.astype(object), ""))[0], -1)
    aliases = Groups.from_labels(codes)
    several = [int((aliases.distinct(of) > 1).sum()) for of in (release.groups.labels, release.persons, release.epochs)]
    if any(several):
        raise PrivacyViolationError(
            f"Of {aliases.count} pseudonyms {several[0]} have several boxes, {several[1]} several people and "
            f"{several[2]} several epochs."
        )
    together = np.column_stack([release.groups.labels, release.epochs])
    equal = Groups.equal_rows(together).labels
    parts = Groups.from_labels(np.where(shown, equal, -1))
    _refuse_short(release, parts, k)
    _check_models(release, parts, models)


def _stream_release(view: View) -> StreamRelease:
    if not isinstance(view, StreamRelease):
        raise PrivacyViolationError("The claim is about the moments of a stream, which the release does not know.")
    return view


def _refuse_short(release: StreamRelease, parts: Groups, k: int) -> None:
    """Raise unless the first publication of every part is of at least k people (or records)."""
    if not parts.count:
        return
    first = parts.minimum(release.moments)
    begun = np.append(first, -2)[parts.labels] == release.moments
    people = Groups(np.where(begun, parts.labels, -1).astype(np.int32), parts.count).count_people(release.persons)
    short = int((people < k).sum())
    if short:
        raise PrivacyViolationError(
            f"The stream claims {k}-anonymity at every moment, but {short} of {parts.count} classes were begun with "
            f"fewer than {k} {release.unit} (the smallest with {int(people.min())})."
        )


def _check_models(release: StreamRelease, parts: Groups, models: Sequence[SensitiveModel]) -> None:
    """Raise unless every class keeps every model at each of its publications."""
    if not models:
        return
    values = PublishedValues(models, {model.column: release.schema[model.column] for model in models})
    rows = np.flatnonzero(parts.labels >= 0)
    order = rows[np.lexsort((parts.labels[rows], release.moments[rows]))]
    columns = {model.column: release.passthrough[model.column].to_numpy() for model in models}
    for row in order.tolist():
        person = -1 if release.persons is None else int(release.persons[row])
        values.note(row, person, {name: column[row] for name, column in columns.items()})
    keys = np.column_stack([release.moments[order], parts.labels[order]])
    cuts = np.flatnonzero((np.diff(keys, axis=0) != 0).any(axis=1)) + 1
    broken, seen = 0, set[int]()
    for part in np.split(order, cuts):
        label = int(parts.labels[part[0]])
        broken += not values.keep_if_added(part.tolist(), label if label in seen else None)
        values.settle(part.tolist(), label)
        seen.add(label)
    if broken:
        names = ", ".join(str(model) for model in models)
        raise PrivacyViolationError(
            f"The stream claims {names}, but {broken} publications leave a class that does not keep it."
        )
