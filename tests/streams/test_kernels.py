"""Kernels: compiled by a child where they are not in the cache, and of one type whatever a gateway.toml says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedanon.streams import gateway, kernels
from fedanon.streams.buffered import BufferedEngine
from fedanon.streams.config import GatewayConfig
from fedanon.streams.methods.prospect import Prospect
from fedanon.streams.space import coded_columns
from tests.streams.test_gateway import gateway_file, write_readings
from tests.streams.wards import schema

#: the command line, and then its peak memory
PEAK = """
import atexit, sys
from pathlib import Path
atexit.register(lambda: sys.stderr.write(Path("/proc/self/status").read_text()))
from fedanon.cli.__main__ import main
main()
"""


def test_kernels_are_looked_for_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not kernels._are_compiled()
    found = tmp_path / "streams_1" / "_deadlines.run-90.py311.nbi"
    found.parent.mkdir()
    found.touch()
    assert kernels._are_compiled()
    os.utime(found, (1.0, 1.0))
    assert not kernels._are_compiled(), "older than the sources"


@pytest.mark.parametrize(("claim", "asked"), [("records", 1), ("people", 0)])
def test_a_gateway_of_records_has_them_compiled(
    claim: str, asked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[None] = []
    monkeypatch.setattr(gateway, "compile_apart", lambda: calls.append(None))
    gateway.Gateway(GatewayConfig.read(gateway_file(tmp_path, claim))).close()
    assert len(calls) == asked


def test_whole_numbers_make_no_kernels_of_another_type() -> None:
    engine = Prospect(k=2, delay=4, caution=2, regret=1).start(coded_columns(schema()))
    assert isinstance(engine, BufferedEngine)
    assert (type(engine._rule.caution), type(engine._rule.regret)) == (float, float)


@pytest.mark.slow
def test_a_gateway_that_starts_without_kernels_does_not_take_the_memory_of_the_compiler(tmp_path: Path) -> None:
    path = gateway_file(tmp_path, "records", sink='format = "csv"')
    write_readings(tmp_path / "in.jsonl", 600)
    cold = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", PEAK, "stream", "replay", "--json", str(path), str(tmp_path / "in.jsonl")]
    done = subprocess.run(command, env=cold, check=True, capture_output=True, text=True)
    assert int(done.stderr.split("VmHWM:")[1].split()[0]) / 1024 < 200
