"""sdcMicro 5.8.1 on Tarragona and Census after MDAV."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.anonymizers.microaggregation.mdav import Mdav
from fedanon.datasets import load
from fedanon.metrics import evaluate
from fedanon.sdc.metrics.moments import eigenvalue_difference
from fedanon.sdc.metrics.numeric_pair import Pair, correlation, numeric_pair
from fedanon.sdc.metrics.numeric_risk import records_in_interval
from tests.sdc.metrics.conftest import Case

pytestmark = pytest.mark.needs_data


def aggregated(name: str, k: int) -> Case:
    table = load(name)
    return table, Mdav(k=k).anonymize(table, rng=0)


def matrices(case: Case) -> Pair:
    pair = numeric_pair(*case)
    assert pair is not None
    return pair


def test_tarragona() -> None:
    case = aggregated("tarragona", 3)
    found = evaluate(*case, ["il2", "eigenvalues_correlation", "interval_risk_records"])
    assert found["il2"] == pytest.approx(0.1007283, rel=1e-6)
    assert found["eigenvalues_correlation"] == pytest.approx(4.232294, rel=1e-6)
    assert found["interval_risk_records"] == pytest.approx(0.04556355, rel=1e-6)
    pair = matrices(case)
    for alpha, share in ((0.01, 0), (0.05, 0.04556355), (0.1, 0.2589928)):
        inside = records_in_interval(pair.original, pair.published, alpha)
        assert inside.mean() == pytest.approx(share, rel=1e-6)


@pytest.mark.parametrize(("k", "il1s"), [(3, 0.1145256), (10, 0.1833286)])
def test_il1s_of_census(k: int, il1s: float) -> None:
    assert evaluate(*aggregated("census", k), ["il2"])["il2"] == pytest.approx(il1s, rel=1e-6)


@pytest.mark.parametrize(("k", "difference"), [(3, 2.388289), (10, 4.360401)])
def test_eigenvalues_of_census_leave_the_noise_out(k: int, difference: float) -> None:
    """One column of Census is the sum of others, so that its least eigenvalue is 0 but for rounding.

    sdcMicro divides by it and prints 0.2632893 and 4.176807: our numbers and a ratio of rounding errors, which turned
    out negative. Without that term the number does not depend on the order of the columns.
    """
    pair = matrices(aggregated("census", k))
    before, after = correlation(pair.original), correlation(pair.published)
    assert np.linalg.matrix_rank(before) == 12
    assert eigenvalue_difference(before, after) == pytest.approx(difference, rel=1e-6)
    backwards = np.ix_(np.arange(13)[::-1], np.arange(13)[::-1])
    assert eigenvalue_difference(before[backwards], after[backwards]) == pytest.approx(difference, rel=1e-6)


def test_outlier_risk_of_dependent_columns() -> None:
    """Where sdcMicro stops with an error: every record has two others like it, so that none stands alone."""
    case = aggregated("census", 3)
    found = evaluate(*case, ["outlier_risk_sdcmicro", "outlier_risk_alone_sdcmicro", "outlier_risk"])
    assert 0 < found["outlier_risk_sdcmicro"] < found["outlier_risk"] < 1
    assert found["outlier_risk_alone_sdcmicro"] == 0
