"""sdcMicro 5.8.1 on Adult: 30,162 complete rows, keys sex, race, marital-status, education, workclass."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedanon.metrics import evaluate
from fedanon.sdc.metrics.diversity import diversity
from fedanon.sdc.metrics.suda import minimal_sample_uniques, released_keys
from tests.sdc.metrics.conftest import Case


def test_violations_and_unweighted_risk(adult: Case) -> None:
    names = ["violations_2", "violations_3", "violations_5", "expected_reidentifications"]
    assert list(evaluate(*adult, names).values()) == [542, 1040, 1646, pytest.approx(1483, rel=1e-12)]
    assert evaluate(*adult, ["classes"])["classes"] == 1483
    assert math.isnan(evaluate(*adult, ["violations_2_population"])["violations_2_population"])


def test_weighted_risk(adult_sample: Case) -> None:
    found = evaluate(*adult_sample, ["global_risk", "expected_reidentifications", "individual_risk_max"])
    assert found["global_risk"] == pytest.approx(0.0009961479, rel=1e-7)
    assert found["expected_reidentifications"] == pytest.approx(30.04581, rel=1e-6)
    assert found["individual_risk_max"] == pytest.approx(0.1573, abs=5e-5)


def test_population_violations_are_fewer(adult_sample: Case) -> None:
    # every weight is above 13, so that no combination is rarer than that in the population
    found = evaluate(*adult_sample, ["violations_5", "violations_5_population"])
    assert found == {"violations_5": 1646, "violations_5_population": 0}


def test_diversity_of_occupation(adult: Case) -> None:
    table, release = adult
    occupation = np.unique(table.frame["occupation"], return_inverse=True)[1]
    found = diversity(release.classes.labels, occupation)
    assert np.quantile(found.distinct, [0, 0.25, 0.5, 0.75, 1]).tolist() == [1, 8, 12, 12, 13]
    assert found.distinct.mean() == pytest.approx(9.762, abs=5e-4)
    assert np.median(found.entropy) == pytest.approx(6.476, abs=5e-4)
    assert found.entropy.mean() == pytest.approx(6.214, abs=5e-4)
    assert found.entropy.max() == pytest.approx(10.036, abs=5e-4)
    assert np.median(found.recursive) == 5
    assert found.recursive.mean() == pytest.approx(5.096, abs=5e-4)
    assert evaluate(*adult, ["l_distinct_min", "l_entropy_mean"]) == {
        "l_distinct_min": 1.0,
        "l_entropy_mean": found.entropy.mean(),
    }


def test_suda(adult: Case) -> None:
    uniques = minimal_sample_uniques(released_keys(adult[1]))
    scores, risks = uniques.scores(), uniques.dis_scores()
    assert (scores.sum(), np.count_nonzero(scores), scores.max()) == (970, 542, 12)
    assert risks.max() == pytest.approx(0.1206289, abs=5e-8)
    assert risks.sum() == pytest.approx(8.390188, rel=1e-6)  # sdcMicro divides in single precision
    assert uniques.scores("ihsn").sum() == pytest.approx(147.1, rel=1e-12)
    assert uniques.scores("ihsn").max() == pytest.approx(1.4, rel=1e-12)
    assert uniques.dis_scores("ihsn").sum() == pytest.approx(5.334628, rel=1e-6)


def test_suda_metrics(adult: Case) -> None:
    found = evaluate(*adult, ["suda_records", "suda_max", "suda_mean", "dis_suda_max", "dis_suda_mean_ihsn"])
    assert list(found.values()) == [
        542,
        12,
        pytest.approx(970 / 30162),
        pytest.approx(0.1206289, abs=5e-8),
        pytest.approx(5.334628 / 30162, rel=1e-6),
    ]
