"""What every strategy keeps, by :func:`fedanon.testing.check_strategy`."""

from __future__ import annotations

import pytest

from fedanon.learning.strategies import STRATEGIES
from fedanon.testing import check_strategy


@pytest.mark.parametrize("name", STRATEGIES.names())
def test_contract(name: str) -> None:
    check_strategy(STRATEGIES[name]())
