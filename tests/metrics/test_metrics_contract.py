from __future__ import annotations

import math

import pytest
from hypothesis import given

from fedanon.data.table import Table
from fedanon.errors import ConfigError, UnknownComponentError
from fedanon.metrics import METRICS, evaluate
from fedanon.release.release import Release
from fedanon.testing import check_metric
from tests.metrics.metric_cases import WARD_GROUPS, released, releases, wards


@given(releases())
def test_every_metric_gives_a_plain_float(case: tuple[Table, Release]) -> None:
    for value in evaluate(*case).values():
        assert type(value) is float
        assert not math.isinf(value)


@pytest.mark.parametrize("name", METRICS.names())
def test_contract(name: str) -> None:
    check_metric(METRICS[name])


def test_evaluate_keeps_the_order() -> None:
    table = wards()
    release = released(table, WARD_GROUPS)
    assert list(evaluate(table, release, ["ncp", "classes", "il"])) == ["ncp", "classes", "il"]
    assert list(evaluate(table, release)) == METRICS.names()


def test_evaluate_refuses_what_does_not_belong_together() -> None:
    table = wards()
    release = released(table, WARD_GROUPS)
    with pytest.raises(ConfigError, match="6 rows"):
        evaluate(table.select_rows([0, 1]), release)
    with pytest.raises(UnknownComponentError, match="Did you mean 'ncp'"):
        evaluate(table, release, ["npc"])


def test_metrics_of_a_recoded_release() -> None:
    table = wards()
    release = released(table, WARD_GROUPS)
    few = table.select_rows([3, 4])  # one of the two groups stays empty
    values = evaluate(few, release.recode(few))
    assert values["ncp"] == 0.0
    assert values["truthfulness"] == 1.0
    assert values["classes"] == 1
