"""WindowAudit: the claim of a stream recounted on all its windows together, window by window, from the files alone.

An audit can be kept and gone on with, so that whoever looks again reads only the windows that are new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedanon.errors import PrivacyViolationError, SchemaError
from fedanon.io.manifest import file_sha256
from fedanon.io.outputs import manifest_path
from fedanon.streams.ledger import Ledger, Shown
from fedanon.streams.windows import Window, read_windows

UNSEEN_PEOPLE = "The gateway counted people, whom nothing in the windows tells apart; here records were counted."


@dataclass(frozen=True)
class WindowCheck:
    """What was found in the windows of a stream.

    Parameters
    ----------
    claim : what the manifests say is claimed.
    windows, rows : how many there are.
    broken : in how many combinations, window by window, the claim does not hold in what was published until then.
    faults : what else is wrong, in words.
    left_open : what is claimed and cannot be counted in windows, in words.
    """

    claim: Mapping[str, Any]
    windows: int
    rows: int
    broken: int
    faults: tuple[str, ...]
    left_open: tuple[str, ...]

    def require(self) -> None:
        """Raise PrivacyViolationError unless nothing is wrong."""
        if self.broken:
            raise PrivacyViolationError(f"The windows break the claim of k={self.claim['k']} in {self.broken} classes.")
        if self.faults:
            raise PrivacyViolationError(self.faults[0])


class WindowAudit:
    """What has been found so far.

    Parameters
    ----------
    quasi : names of the quasi-identifiers.
    """

    def __init__(self, quasi: Sequence[str]) -> None:
        self._quasi = list(quasi)
        self.claim: Mapping[str, Any] = {}
        self.windows = self.rows = self.broken = 0
        self.faults: list[str] = []
        self._left_open: tuple[str, ...] = ()
        self._previous: str | None = None
        self._ledger: Ledger | None = None

    def add(self, window: Window) -> None:
        """Take in the next window."""
        if self._ledger is None:
            self.claim = dict(window.manifest["claim"])
            self._ledger = self._make_ledger()
        absent = [name for name in self._quasi if any(name not in row for row in window.rows)]
        if absent:
            raise SchemaError(f"{window.path.name} lacks quasi-identifiers of the schema: {', '.join(absent)}.")
        self.faults += self._faults(window)
        self.broken += self._ledger.add(Shown(row) for row in window.rows)
        self.rows, self.windows = self.rows + len(window.rows), self.windows + 1
        self._previous = file_sha256(manifest_path(window.path))

    def _make_ledger(self) -> Ledger:
        is_people = self.claim.get("stream") == "people"
        lasting, passing = _sensitive_models(self.claim)
        if not is_people and self.claim.get("counted") == "people":
            self._left_open += (UNSEEN_PEOPLE,)
        self._left_open += tuple(
            f"{model} holds at each publication, which the gateway has checked; a window does not show their order."
            for model in passing
        )
        return Ledger("people" if is_people else "records", int(self.claim["k"]), self._quasi, models=lasting)

    def _faults(self, window: Window) -> list[str]:
        name, manifest = window.path.name, window.manifest
        found: list[str] = []
        if window.number != self.windows:
            found.append(f"Window {self.windows} is missing before {name}.")
        if manifest["claim"] != self.claim:
            found.append(f"The manifest of {name} claims something else than the first.")
        if manifest.get("previous_manifest_sha256") != self._previous:
            found.append(f"The manifest of {name} does not follow the one before it.")
        if file_sha256(window.path) != manifest.get(f"{window.path.suffix[1:]}_sha256"):
            found.append(f"{name} is not the file its manifest describes.")
        if len(window.rows) != manifest["rows"]:
            found.append(f"{name} has {len(window.rows)} rows, its manifest says {manifest['rows']}.")
        return found

    @property
    def result(self) -> WindowCheck:
        """What was found."""
        return WindowCheck(self.claim, self.windows, self.rows, self.broken, tuple(self.faults), self._left_open)

    @property
    def head(self) -> str:
        """SHA-256 of the last manifest, which names those before it; '' if there is none."""
        return self._previous or ""

    def to_state(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "claim": self.claim,
            "counts": [self.windows, self.rows, self.broken],
            "faults": self.faults,
            "previous": self._previous,
            "ledger": self._ledger.to_state() if self._ledger else None,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.claim, self.faults, self._previous = state["claim"], list(state["faults"]), state["previous"]
        self.windows, self.rows, self.broken = state["counts"]
        if state["ledger"] is not None:
            self._ledger = self._make_ledger()
            self._ledger.restore(state["ledger"])


def check_windows(folder: Path, quasi: Sequence[str]) -> WindowCheck:
    """Recount the claim on all windows together, after each of them, and compare the files with their manifests."""
    audit = WindowAudit(quasi)
    for window in read_windows(folder):
        audit.add(window)
    return audit.result


def _sensitive_models(claim: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """The models a claim states beyond k: those that last once they hold, and those that may pass.

    The values of a class only become more, so a number of different values lasts; shares do not.
    """
    if "all_of" not in claim:
        return [], []
    from fedanon.privacy.models.l_diversity import DistinctLDiversity
    from fedanon.privacy.requirements import models_of_claim
    from fedanon.privacy.sensitive import SensitiveModel

    models = [model for model in models_of_claim(claim) if isinstance(model, SensitiveModel)]
    return (
        [model for model in models if isinstance(model, DistinctLDiversity)],
        [model for model in models if not isinstance(model, DistinctLDiversity)],
    )
