"""Attacks from inside a federation: the robust rule holds, the plain mean does not, and seeds decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedanon.attacks.base import Finding
from fedanon.attacks.malicious_nodes import (
    BYZANTINE_ATTACKS,
    Byzantine,
    FederationAttack,
    PlantedBackdoor,
    auc_interval,
)
from fedanon.errors import NotApplicableError
from fedanon.models.scores import auc
from tests.attacks.contexts import context_of, made, small_table

pytest.importorskip("flwr", reason="federations need Flower")


def found(attack: FederationAttack, rows: int = 6_000, **method: Any) -> Finding:
    context = context_of("adult", rows=rows, **(method or {"k": 5}))
    return attack.run(context, context.rng("here"))


@pytest.mark.parametrize(("model", "method"), [("lr", {"k": 5}), ("xgb", {"method": "identity"})])
def test_the_robust_rule_loses_little(model: Any, method: dict[str, Any]) -> None:
    finding = found(Byzantine(model=model), **method)
    assert 0.1 < finding.baseline < 0.25  # the model knows something
    assert finding.rate < finding.baseline + 0.03
    assert finding.interval[0] < finding.rate < finding.interval[1]
    assert set(finding.details) >= {f"auc_{name}" for name in BYZANTINE_ATTACKS}
    assert finding.details["malicious_named_share"] >= 0.6
    assert finding.n == 1_200


def test_the_plain_mean_lets_a_backdoor_in() -> None:
    mean, robust = found(PlantedBackdoor(strategy="fedavg")), found(PlantedBackdoor())
    assert mean.rate > mean.baseline + 0.05
    assert robust.rate < mean.rate
    assert mean.baseline < 0.1


def test_the_same_seed_finds_the_same() -> None:
    assert found(PlantedBackdoor(), rows=1_000) == found(PlantedBackdoor(), rows=1_000)


def test_where_there_can_be_no_federation() -> None:
    context = context_of("adult", rows=1_000, k=5)
    with pytest.raises(NotApplicableError, match="needs the method"):
        Byzantine().run(replace(context, anonymizer=None), context.rng("here"))
    with pytest.raises(NotApplicableError, match="at least 30 people for each of 40 nodes"):
        PlantedBackdoor(nodes=40).run(context, context.rng("here"))
    nothing = made(small_table([31, 47], ["cardiac", "cancer"], ["gout", "cold"]), k=2)
    with pytest.raises(NotApplicableError, match="target"):
        Byzantine().run(nothing, nothing.rng("here"))


def test_the_interval_is_that_of_hanley_and_mcneil() -> None:
    # their variance is exact where scores are exponential, of means 1 and r: A = r / (1 + r)
    rng, truth = np.random.default_rng(0), np.repeat([0, 1], [58, 51])
    drawn = [auc(truth, rng.exponential(np.where(truth, 8.0, 1.0))) for _ in range(4_000)]
    low, high = auc_interval(8 / 9, 51, 58)
    assert (low + high) / 2 == pytest.approx(np.mean(drawn), abs=0.002)
    assert (high - low) / 2 == pytest.approx(1.96 * np.std(drawn), rel=0.05)
