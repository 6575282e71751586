from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedanon.data.cells import Intervals, Nodes
from fedanon.metrics import risk
from fedanon.metrics import risk as sizes
from fedanon.privacy.models.k_anonymity import KAnonymity
from tests.metrics.metric_cases import WARD_GROUPS, released, wards


def test_classes_by_hand() -> None:
    table = wards()
    release = released(table, WARD_GROUPS, claim=KAnonymity(k=2))
    assert sizes.k_reached(release) == 2
    assert sizes.classes(release) == 2
    assert sizes.average_class_size(release) == 2.5
    assert sizes.normalized_average_class_size(release) == 1.25
    assert sizes.discernibility(release) == 9 + 4 + 6


def test_groups_that_look_the_same_are_one_class() -> None:
    table = wards()
    everything = {
        "age": Intervals(np.full(2, 20.0), np.full(2, 60.0)),
        "ward": Nodes(np.full(2, 6, dtype=np.int32), table.columns[1].hierarchy),
    }
    release = released(table, WARD_GROUPS, everything)
    assert sizes.classes(release) == 1
    assert sizes.k_reached(release) == 5


def test_risks_by_hand() -> None:
    table = wards()
    release = released(table, WARD_GROUPS)
    assert risk.prosecutor_risk(release) == 0.5
    assert risk.journalist_risk(release) == 0.5
    assert risk.prosecutor_risk_average(release) == pytest.approx(2 / 5)
    assert risk.marketer_risk(release) == pytest.approx(2 / 5)
    assert risk.records_at_risk(release) == 1.0


def test_five_people_are_not_at_risk() -> None:
    table = wards()
    assert risk.records_at_risk(released(table, [0, 0, 0, 0, 0, -1])) == 0.0
    assert risk.records_at_risk(released(table, [0, 0, 0, 0, 0, 1])) == pytest.approx(1 / 6)


def test_people_are_counted_not_rows() -> None:
    table = replace(wards(), persons=np.array([0, 0, 1, 2, 2, 3], dtype=np.int32))
    release = released(table, WARD_GROUPS)
    assert sizes.k_reached(release) == 1
    assert sizes.average_class_size(release) == 1.5
    assert risk.prosecutor_risk(release) == 1.0
    assert risk.marketer_risk(release) == pytest.approx((3 * 0.5 + 2 * 1) / 5)


def test_no_claim_no_normalized_size() -> None:
    table = wards()
    assert math.isnan(sizes.normalized_average_class_size(released(table, WARD_GROUPS)))
