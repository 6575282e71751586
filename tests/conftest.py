"""Shared by all tests: the profile of the property tests, and the skip of tests whose data are not at hand."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import settings

# workers, and the processes tests start, share compiled modules beside the kernels, instead of compiling all anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# no deadline: the first call of a kernel compiles it
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("FEDANON_DATA"):
        return
    skip = pytest.mark.skip(reason="needs the folder named by FEDANON_DATA")
    for item in items:
        if "needs_data" in item.keywords:
            item.add_marker(skip)
