"""WindowedStream: the windows of a gateway, verified together; a node learns from the last ones as a release."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.cells import parse_cells
from fedanon.data.schema import Numeric, Schema, Unit
from fedanon.errors import DataError, InfeasibleError
from fedanon.fields import check_fields, parameter
from fedanon.io.atomic import atomic_write
from fedanon.privacy.requirements import models_of_claim
from fedanon.privacy.sensitive import SensitiveModel
from fedanon.release.recoding import NearestGroup
from fedanon.release.release import Provenance, Release
from fedanon.release.view import FileView
from fedanon.streams.claims import PeopleClaim, RecordsClaim
from fedanon.streams.window_check import WindowAudit
from fedanon.streams.windows import Row, Window, count_windows, read_windows

log = logging.getLogger("fedanon.streams")

#: the method of a run whose nodes bring windows
STREAM = "stream"
#: keeps in a node's store which windows were verified
AUDIT_FILE = "stream-audit.json"


@dataclass(frozen=True, kw_only=True)
class LearnFromWindows:
    """What a run asks of nodes that bring windows of a gateway instead of a table."""

    k: int = parameter(2, help="refuse a stream that claims a smaller k", at_least=2)
    windows: int = parameter(24, help="number of windows a round trains on, before the newest", at_least=1)
    tested: int = parameter(1, help="number of newest windows a model is scored on before it learns them", at_least=1)

    def __post_init__(self) -> None:
        check_fields(self)


class WindowedStream:
    """The windows of one gateway.

    Parameters
    ----------
    folder : of the windows.
    schema : of the readings.
    store : private folder that keeps what was verified, so that only new windows are read; None keeps it in memory.
    """

    def __init__(self, folder: Path, schema: Schema, store: Path | None = None) -> None:
        schema.refuse_undecided()
        self.folder, self.schema = folder, schema
        self._file = store / AUDIT_FILE if store else None
        self._audit = WindowAudit([a.name for a in schema.quasi_identifiers])
        self._restore()

    @property
    def available(self) -> int:
        """Number of windows that are there."""
        return count_windows(self.folder)

    @property
    def verified(self) -> int:
        """Number of windows that were verified together."""
        return self._audit.windows

    @property
    def head(self) -> str:
        """SHA-256 of the manifest of the last verified window."""
        return self._audit.head

    @property
    def claim(self) -> PeopleClaim | RecordsClaim:
        """What all windows claim, and was verified of them."""
        document = self._audit.claim
        models = tuple(model for model in models_of_claim(document) if isinstance(model, SensitiveModel))
        return (PeopleClaim if document["stream"] == "people" else RecordsClaim)(int(document["k"]), models)

    @property
    def unit(self) -> Unit:
        """What k counts here: pseudonyms are people; records of a stream without them cannot be told apart."""
        return "people" if self._audit.claim["stream"] == "people" else "records"

    def verify(self, end: int | None = None) -> int:
        """Recount the claim with the windows that are new, up to ``end``; the number of all.

        Raises
        ------
        PrivacyViolationError
            If it does not hold for what all windows together show, or a window is missing or changed.
        """
        before = self.verified
        for window in read_windows(self.folder, before, end):
            self._audit.add(window)
            self._audit.result.require()
        if self._file and self.verified > before:
            state = {"folder": str(self.folder.resolve()), "schema": self.schema.sha256, **self._audit.to_state()}
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write(self._file, json.dumps(state), mode=0o600)
        return self.verified

    def _restore(self) -> None:
        """Go on from what was verified before, if it was these windows; else all are read again."""
        if self._file is None or not self._file.exists():
            return
        try:
            state = json.loads(self._file.read_text(encoding="utf-8"))
            same = (state["folder"], state["schema"]) == (str(self.folder.resolve()), self.schema.sha256)
            if same and not state["faults"] and not state["counts"][2]:
                self._audit.restore(state)
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            log.warning("What was verified of the stream cannot be read; all windows are verified again.")

    def rows(self, begin: int, end: int) -> list[Row]:
        """The rows of some verified windows, whose files must still be those that were verified."""
        if end > self.verified:
            raise InfeasibleError(f"{end} windows are asked for; {self.verified} have been verified.")
        windows = list(read_windows(self.folder, begin, end))
        for window in windows:
            _refuse_changed(window)
        return [row for window in windows for row in window.rows]

    def release(self, begin: int, end: int) -> Release:
        """Some verified windows as a release: its claim holds for what all windows together show."""
        return release_of_rows(self.rows(begin, end), self.schema, self.claim)


def _refuse_changed(window: Window) -> None:
    from fedanon.io.manifest import file_sha256

    if file_sha256(window.path) != window.manifest.get(f"{window.path.suffix[1:]}_sha256"):
        raise DataError(f"{window.path.name} was changed after it had been verified.")


def release_of_rows(rows: Sequence[Row], schema: Schema, claim: PeopleClaim | RecordsClaim) -> Release:
    """Published rows as a release."""
    if not rows:
        raise InfeasibleError("The windows of the stream have no rows.")
    frame = pd.DataFrame([[row[name] for name in schema.published] for row in rows], columns=schema.published)
    quasi = {a.name: a for a in schema.quasi_identifiers}
    frame[list(quasi)] = frame[list(quasi)].astype(str)
    view = FileView.from_texts(schema, frame, np.zeros(len(frame), dtype=bool))
    shown = frame.iloc[view.groups.first_rows]
    return Release(
        schema=schema,
        passthrough=_typed(frame.drop(columns=list(quasi)), schema),
        groups=view.groups,
        cells={name: parse_cells(shown[name], attribute) for name, attribute in quasi.items()},
        claim=claim,
        provenance=Provenance(STREAM, {"k": claim.k}, None, "", "", schema.sha256),
        recoding=NearestGroup(),
    )


def _typed(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Columns carried along with their types, which a CSV window does not keep."""
    numeric: dict[str, Any] = {
        name: pd.to_numeric(frame[name].replace("", None))
        for name in frame.columns
        if isinstance(schema[name], Numeric)
    }
    return frame.assign(**numeric)
