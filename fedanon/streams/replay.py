"""Replaying a table as a stream, in the order of its rows: the release is verified like any other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fedanon._version import __version__
from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric
from fedanon.data.spans import points
from fedanon.data.table import Table
from fedanon.errors import ConfigError, SchemaError
from fedanon.privacy.base import Claim
from fedanon.release.gate import verify
from fedanon.release.recoding import NearestGroup
from fedanon.release.release import Provenance
from fedanon.streams.base import NOBODY, Arrivals, Departures, RecordMethod
from fedanon.streams.claims import PeopleClaim, RecordsClaim
from fedanon.streams.people import StickyClasses
from fedanon.streams.publication import Box, Publication, Reading
from fedanon.streams.release import StreamRelease
from fedanon.streams.space import box_cells
from fedanon.streams.sticky import StickyEngine
from fedanon.types import FloatArray

#: readings that are handed to an engine at once
BATCH = 50_000


def replay_records(
    method: RecordMethod, table: Table, *, seed: int = 0, moments: FloatArray | None = None
) -> StreamRelease:
    """Publish the rows of a table one after the other; the release has passed verification.

    Parameters
    ----------
    method : how records are generalized.
    table : its rows come in their order.
    seed : of all that is drawn at random.
    moments : when each row comes, in seconds, never decreasing; needed where the delay counts seconds.
    """
    _refuse_unfit(table)
    if moments is None and method.clock == "seconds":
        raise ConfigError("A delay in seconds needs the moments of the rows.")
    persons = np.full(len(table), NOBODY) if table.persons is None else table.persons
    values = {model.column: table.frame[model.column].to_numpy() for model in method.required}
    when = np.zeros(len(table)) if moments is None else moments
    arrivals = Arrivals(points(table), persons.astype(np.int64), when, values)
    engine = method.start(table.columns, seed=seed)
    outcomes = [engine.feed(arrivals.part(i, i + BATCH)) for i in range(0, len(table), BATCH)]
    claim = RecordsClaim(method.k, method.required)
    provenance = _provenance(table, method.name, asdict(method), seed)
    return _release(table, _as_publications([*outcomes, engine.finish()]), claim, provenance)


def _as_publications(outcomes: Sequence[Departures]) -> Iterable[Publication]:
    boxes: dict[int, Box] = {}
    for outcome in outcomes:
        for name, (low, high) in outcome.boxes.items():
            boxes[name] = Box(name, tuple(low), tuple(high))
        changes = np.diff(outcome.name) != 0
        changes |= np.diff(outcome.cause) != 0
        cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(outcome.number)]
        for begin, end in pairwise(cuts):
            if begin < end:
                yield Publication(boxes.get(int(outcome.name[begin])), tuple(outcome.number[begin:end].tolist()))


def replay_people(
    method: StickyClasses,
    table: Table,
    moments: FloatArray,
    *,
    key: bytes = b"replay",
    time: str | None = None,
    step: float = 60.0,
) -> StreamRelease:
    """Publish the readings of a table's people one after the other; the release has passed verification.

    Parameters
    ----------
    method : of sticky classes.
    table : must know its people; its rows come in their order.
    moments : when each row comes, in seconds, never decreasing.
    key : makes pseudonyms.
    time : the numeric column that holds the published time; None if no column does.
    step : seconds to multiples of which published times are rounded down.
    """
    _refuse_unfit(table)
    if table.persons is None:
        raise SchemaError("Sticky classes need to know people: name a person_id in the schema.")
    where, who = points(table).tolist(), table.persons.tolist()
    columns = {model.column: table.frame[model.column].to_numpy() for model in method.required}
    readings = [
        Reading(i, str(who[i]), tuple(where[i]), float(moments[i]), {name: c[i] for name, c in columns.items()})
        for i in range(len(table))
    ]
    engine = StickyEngine(method, table.columns, key=key)
    publications = [*engine.push(readings), *engine.finish()]
    claim = PeopleClaim(method.k, method.required)
    provenance = _provenance(table, "sticky", asdict(method), None)
    return _release(table, publications, claim, provenance, pseudonymous=True, time=time, step=step)


def _refuse_unfit(table: Table) -> None:
    table.schema.refuse_undecided()
    missing = [column.name for column in table.columns if column.has_missing]
    if missing:
        raise SchemaError(f"A stream takes no missing quasi-identifiers. Columns: {', '.join(missing)}.")


def _provenance(table: Table, method: str, parameters: dict[str, Any], seed: int | None) -> Provenance:
    return Provenance(method, parameters, seed, __version__, table.sha256, table.schema.sha256)


def _release(
    table: Table,
    publications: Iterable[Publication],
    claim: Claim,
    provenance: Provenance,
    *,
    pseudonymous: bool = False,
    time: str | None = None,
    step: float = 0.0,
) -> StreamRelease:
    labels, moments, epochs = np.full((3, len(table)), -1, dtype=np.int64)
    names = np.full(len(table), "", dtype=object)
    boxes: dict[int, Box] = {}
    for moment, publication in enumerate(publications):
        rows = list(publication.numbers)
        if publication.box is None:
            continue
        boxes[publication.box.label] = publication.box
        labels[rows], moments[rows], epochs[rows] = publication.box.label, moment, publication.epoch
        if pseudonymous:
            names[rows] = publication.pseudonyms
    groups = Groups.from_labels(labels)
    used = [boxes[label] for label in np.unique(labels[labels >= 0]).tolist()]
    width = len(table.columns)
    low, high = (np.array(part, dtype=np.float64).reshape(-1, width) for part in _bounds(used))
    quasi = {a.name for a in table.schema.quasi_identifiers}
    carried = table.frame[[name for name in table.frame.columns if name not in quasi]]
    release = StreamRelease(
        schema=table.schema,
        passthrough=carried if time is None else _rounded_times(carried, table, time, step),
        groups=groups,
        cells=box_cells(table.columns, low, high),
        persons=table.persons,
        claim=claim,
        provenance=provenance,
        recoding=NearestGroup(),
        moments=moments,
        pseudonyms=names if pseudonymous else None,
        epochs=np.maximum(epochs, 0),
    )
    verified = verify(release, table)
    assert isinstance(verified, StreamRelease)
    return verified


def _bounds(boxes: Sequence[Box]) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    return [box.low for box in boxes], [box.high for box in boxes]


def _rounded_times(carried: pd.DataFrame, table: Table, time: str, step: float) -> pd.DataFrame:
    """The columns carried along, with the times in one of them rounded down to multiples of ``step``."""
    if time not in carried or not isinstance(table.schema[time], Numeric):
        raise ConfigError(f"The time column {time!r} must be a numeric column that is published.")
    values = pd.to_numeric(carried[time]).to_numpy(dtype=np.float64)
    return carried.assign(**{time: np.floor(values / step) * step if step else values})
