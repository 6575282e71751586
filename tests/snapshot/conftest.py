"""Snapshots: hashes of what fedanon publishes, learns and says, held in `hashes/`, one line a case.

A hash may change only in a commit that says which bug was mended. A plain run never writes.

    pytest tests/snapshot                      compare
    pytest tests/snapshot --record             write the hashes of all cases that ran (-k, or a file, chooses)
    pytest tests/snapshot --texts FOLDER       also write what was hashed, one file a case

Two commits are compared by `--texts before` on the one, `--texts after` on the other, and `diff -r before after`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.snapshot.house import run as run  # the command line as a fixture

HASHES = Path(__file__).parent / "hashes"
HELP = """\
What changed: run `pytest tests/snapshot --texts FOLDER` on this commit and on the last good one, and diff the folders.
Renamed, but otherwise the same: say so in RENAMED of tests/snapshot/house.py.
A mended bug, or something new: `pytest tests/snapshot --record`, and the commit says which.\
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write the hashes of the snapshots")
    parser.addoption("--texts", type=Path, metavar="FOLDER", help="also write what the snapshots hash")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record", default=False) and config.getoption("numprocesses", default=None):
        raise pytest.UsageError("--record writes one file from one process: leave out -n.")


@dataclass
class Snapshots:
    """The hashes of one file, `GROUP/CASE` by name.

    Parameters
    ----------
    path : of the file.
    scratch : where the texts of cases that differ are written.
    texts : where all texts are written, or None.
    record : whether to write the hashes in place of comparing them.
    """

    path: Path
    scratch: Path
    texts: Path | None = None
    record: bool = False
    _known: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._known = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def check(self, cases: Mapping[str, str], *, group: str | None = None) -> None:
        """Fail, and say how to look, unless every text has the hash it had; the cases are all of the group, or all."""
        if self.texts is not None:
            self._write(self.texts, cases)
        before = {name: held for name, held in self._known.items() if group in (None, group_of(name))}
        now = {name: short_hash(text) for name, text in cases.items()}
        if self.record:
            self._keep({name: held for name, held in self._known.items() if name not in before} | now)
        elif now != before:
            pytest.fail(self._difference(before, now, cases), pytrace=False)

    def check_groups(self, groups: set[str]) -> None:
        """Fail if a group is held that nobody computes any more."""
        gone = {group_of(name) for name in self._known} - groups
        if self.record:
            self._keep({name: held for name, held in self._known.items() if group_of(name) not in gone})
        elif gone:
            pytest.fail(f"{self.path.name} holds hashes of what is gone: {', '.join(sorted(gone))}.", pytrace=False)

    def _difference(self, before: Mapping[str, str], now: Mapping[str, str], texts: Mapping[str, str]) -> str:
        states = {name: _state(before.get(name), now.get(name)) for name in sorted({*before, *now})}
        changed = {name: state for name, state in states.items() if state}
        files = self._write(self.scratch, {name: texts[name] for name in changed if name in texts})
        lines = [f"  {name}: {state} {files.get(name, '')}".rstrip() for name, state in changed.items()]
        head = f"{len(changed)} of {len(states)} cases are not as {self.path.name} holds them; see the files:"
        return "\n".join([head, *lines, HELP])

    def _keep(self, hashes: Mapping[str, str]) -> None:
        self._known = dict(sorted(hashes.items()))
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(self._known, indent=2) + "\n", encoding="utf-8")

    def _write(self, folder: Path, texts: Mapping[str, str]) -> dict[str, Path]:
        """One file a text, in a folder a group."""
        files = {name: folder / self.path.stem / _file_name(name) for name in texts}
        for name, file in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(texts[name], encoding="utf-8")
        return files


def group_of(case: str) -> str:
    """The part of a case's name before the first slash."""
    return case.split("/")[0]


def short_hash(text: str) -> str:
    """64 bits are enough to see a change, and short enough to read."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _state(before: str | None, now: str | None) -> str:
    if before == now:
        return ""
    if before is None:
        return "has no hash yet"
    return "is gone" if now is None else "changed"


def _file_name(case: str) -> str:
    group, _, rest = case.partition("/")
    return "/".join(re.sub(r"[^\w=.,-]+", "_", part) for part in (group, rest)) + ".txt"


@pytest.fixture
def snapshots(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshots:
    """The hashes that belong to the test's file: those of `test_models.py` are in `hashes/models.json`."""
    option = request.config.getoption
    name = request.path.stem.removeprefix("test_")
    # the options are unknown where pytest was started above this folder
    return Snapshots(
        HASHES / f"{name}.json", tmp_path, option("--texts", default=None), option("--record", default=False)
    )
