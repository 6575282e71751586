from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from fedanon.data.cells import Numbers
from fedanon.data.schema import Categorical
from fedanon.data.table import Table
from fedanon.metrics.information_loss import il, il2
from fedanon.release.release import Release
from tests.metrics.metric_cases import QUASI, WARDS, numeric, released, releases, table_of


def test_il_and_il2_by_hand() -> None:
    table = table_of(x=([0, 2, 10, 12], numeric("x", 0, 12)))
    means = {"x": Numbers(np.array([1.0, 11.0]))}
    release = released(table, [0, 0, 1, 1], means)
    assert il(table, release) == pytest.approx(100 * 4 / 104)
    assert il2(table, release) == pytest.approx(1 / (math.sqrt(2) * math.sqrt(104 / 3)))
    assert il(table, released(table, [0, 0, 1, 1])) == pytest.approx(il(table, release))  # midpoints are the means


def test_il_standardizes_every_column() -> None:
    x = [0, 2, 10, 12]
    table = table_of(x=(x, numeric("x", 0, 12)), y=([1000 * v for v in x], numeric("y", 0, 12000)))
    release = released(table, [0, 0, 1, 1])
    assert il(table, release) == pytest.approx(100 * 4 / 104)


def test_one_group_loses_everything() -> None:
    table = table_of(x=([0, 3, 4, 9], numeric("x", 0, 9)))
    release = released(table, [0, 0, 0, 0], {"x": Numbers(np.array([4.0]))})
    assert il(table, release) == pytest.approx(100)


def test_numeric_losses_do_not_apply_without_numbers_that_vary() -> None:
    labels = [0, 0]
    words = table_of(ward=(["onco", "ortho"], Categorical("ward", QUASI, WARDS)))
    constant = table_of(x=([5, 5], numeric("x", 0, 9)))
    for table in (words, constant):
        assert math.isnan(il(table, released(table, labels)))
        assert math.isnan(il2(table, released(table, labels)))


@given(releases())
def test_losses_are_never_negative(case: tuple[Table, Release]) -> None:
    for loss in (il(*case), il2(*case)):
        assert math.isnan(loss) or loss >= 0
