"""The chain of an audit log breaks where it was tampered with, and several processes write it without breaking it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedanon.errors import DataError
from fedanon.io.audit import START, VARIABLE, AuditLog, audit, read_chain

Lines = list[bytes]
WRITER = """
import sys
from pathlib import Path
from fedanon.io.audit import AuditLog
for i in range(25):
    AuditLog(Path(sys.argv[1])).append("write", {"who": sys.argv[2], "i": i})
"""


def written(path: Path, count: int = 6) -> Lines:
    path.unlink(missing_ok=True)
    log = AuditLog(path)
    for i in range(count):
        log.append("event", {"i": i, "share": np.float64(0.5), "where": Path("a"), "keys": {9: 1, 10: 2}})
    return path.read_bytes().splitlines(keepends=True)


def test_lines_name_the_line_before(tmp_path: Path) -> None:
    path = tmp_path / "log"
    records = [json.loads(line) for line in written(path, 3)]
    assert [record["number"] for record in records] == [1, 2, 3]
    assert [record["previous"] for record in records] == [START, *(record["sha256"] for record in records[:2])]
    assert records[0]["facts"] == {"i": 0, "share": 0.5, "where": "a", "keys": {"9": 1, "10": 2}}
    chain, hashes = read_chain(path)
    assert (chain.lines, chain.broken, chain.head) == (3, None, records[-1]["sha256"])
    assert hashes == [record["sha256"] for record in records]
    assert path.stat().st_mode & 0o077 == 0, "others do not read it"


def test_an_empty_log_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "log"
    AuditLog(path).check_ready()
    assert read_chain(path)[0].head == START


def first_difference(before: Lines, after: Lines) -> int:
    """The first line, from 1, at which two logs differ."""
    same = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    return same + 1


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Lines]:
    path = tmp_path_factory.mktemp("audit") / "log"
    return path, written(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_byte_is_found_where_it_is(log: tuple[Path, Lines], data: st.DataObject) -> None:
    path, lines = log
    whole = b"".join(lines)
    at = data.draw(st.integers(0, len(whole) - 1))
    new = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))
    tampered = path.with_name("changed")
    tampered.write_bytes(whole[:at] + bytes([new]) + whole[at + 1 :])
    changed = whole[:at].count(b"\n") + 1
    broken = read_chain(tampered)[0].broken
    assert broken == changed


@settings(max_examples=60, deadline=None)
@given(order=st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_removed_repeated_and_moved_lines_are_found(log: tuple[Path, Lines], order: list[int]) -> None:
    path, lines = log
    shuffled = [lines[i] for i in order]
    tampered = path.with_name("moved")
    tampered.write_bytes(b"".join(shuffled))
    chain, hashes = read_chain(tampered)
    if order == list(range(len(order))):
        # only the end is cut off: the chain is sound, and the head it once had is gone
        assert chain.broken is None
        whole_head = json.loads(lines[-1])["sha256"]
        assert (whole_head in hashes) == (len(order) == len(lines))
    else:
        assert chain.broken == first_difference(lines, shuffled)


@settings(max_examples=30, deadline=None)
@given(line=st.integers(0, 5), value=st.text(max_size=8) | st.integers() | st.floats(allow_nan=False) | st.none())
def test_a_line_resealed_by_hand_breaks_the_next(log: tuple[Path, Lines], line: int, value: object) -> None:
    from fedanon.io.audit import _sealed

    path, lines = log
    record = json.loads(lines[line])
    del record["sha256"]
    forged, _ = _sealed({**record, "facts": {"forged": value}})
    tampered = path.with_name("resealed")
    tampered.write_bytes(b"".join([*lines[:line], forged, *lines[line + 1 :]]))
    chain, _ = read_chain(tampered)
    # the last line has none after it: that is what a head kept elsewhere is for
    assert chain.broken == (line + 2 if line < 5 else None)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-5],
        lambda text: text + b"{}\n",
        lambda text: text + b"\n",
        lambda text: text.replace(b'"number":6', b'"number":true'),
        lambda text: text.rstrip(b"\n") + b" \n",
    ],
)
def test_nothing_is_added_to_a_damaged_log(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "log"
    text = damage(b"".join(written(path)))
    path.write_bytes(text)
    for act in (lambda: AuditLog(path).check_ready(), lambda: AuditLog(path).append("event", {})):
        with pytest.raises(DataError, match="damaged"):
            act()
    assert path.read_bytes() == text


def test_a_line_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    before = written(path)
    with pytest.raises(DataError, match="bytes"):
        AuditLog(path).append("event", {"text": "x" * 2**20})
    assert path.read_bytes() == b"".join(before)


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    before = written(path)
    half = os.write

    def short(descriptor: int, data: bytes) -> int:
        return half(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(DataError, match="full"):
        AuditLog(path).append("event", {})
    monkeypatch.undo()
    assert path.read_bytes() == b"".join(before)
    AuditLog(path).append("event", {})
    assert read_chain(path)[0].lines == 7


def test_processes_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "log"
    started = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(i)]) for i in range(4)]
    assert [process.wait(60) for process in started] == [0] * 4
    chain, _ = read_chain(path)
    assert (chain.lines, chain.broken) == (100, None)
    facts = [json.loads(line)["facts"] for line in path.read_text().splitlines()]
    for who in "0123":
        assert [fact["i"] for fact in facts if fact["who"] == who] == list(range(25))


def test_the_environment_names_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert AuditLog.wanted() is None
    audit("event", n=1)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "log"))
    audit("event", n=1)
    assert AuditLog.wanted(tmp_path / "other") == AuditLog(tmp_path / "other")
    assert read_chain(tmp_path / "log")[0].lines == 1


def test_no_log_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be opened"):
        AuditLog(tmp_path / "none" / "log").append("event", {})
    with pytest.raises(DataError, match="not there"):
        read_chain(tmp_path / "none")
