"""The models of three nodes after five rounds on the local engine: parameters and scores."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.snapshot.conftest import Snapshots
from tests.snapshot.federations import RUNS

ROOT = Path(__file__).parents[2]
# The models compute in single precision, and libraries choose their kernels by the processor. Sums in another order
# move coefficients by up to 5e-4 of their size after five rounds (columns are collinear) and break ties of scores
# differently, so that no rounding would help. Instead everything takes the kernels every x86-64 has. The names of the
# features are those of the numpy in constraints.txt.
PLAINEST = {
    "OPENBLAS_CORETYPE": "Prescott",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "DNNL_MAX_CPU_ISA": "SSE41",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4",
}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the hashes are of x86-64 instructions")
def test_models_are_as_they_were(snapshots: Snapshots) -> None:
    command = [sys.executable, "-m", "tests.snapshot.federations"]
    # no processor has all that is switched off, and numpy says so
    environment = os.environ | PLAINEST | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    learned = json.loads(done.stdout)
    snapshots.check({f"{name}/{part}": text for name in RUNS for part, text in learned[name].items()})
