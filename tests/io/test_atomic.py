"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fedanon.errors import DataError
from fedanon.io.atomic import atomic_write


def test_writes_text_and_bytes_and_replaces(tmp_path):
    path = tmp_path / "out.csv"
    atomic_write(path, b"old")
    atomic_write(path, "né\n")
    assert path.read_bytes() == "né\n".encode()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("broken", ["fsync", "write"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, broken):
    path = tmp_path / "out.csv"
    atomic_write(path, "old")

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if broken == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(DataError, match="No space left"):
        atomic_write(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "out.csv", "new")
    assert list(tmp_path.iterdir()) == []


def test_absent_folder_and_folder_in_the_way(tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        atomic_write(tmp_path / "no" / "out.csv", "x")
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        atomic_write(tmp_path / "out.csv", "x")
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
