"""What every privacy model keeps, by :func:`fedanon.testing.check_privacy_model`."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedanon.privacy.requirements import known_models, parse_requirements
from fedanon.testing import check_privacy_model, example_table

REQUIREMENTS = [
    "l=2:illness",
    "entropy_l=1.5:illness",
    "recursive_l=2:illness:c=3",
    "t=0.3:illness",
    "t=0.3:cost",
    "alpha=0.6:illness",
    "beta=1:illness",
    "beta=2:illness:enhanced",
    "delta=1.5:illness",
]
ABOUT_A_POPULATION = ["k_map=3:{}", "presence=0.9:{}"]


def test_every_model_is_checked() -> None:
    checked = {text.partition("=")[0] for text in (*REQUIREMENTS, *ABOUT_A_POPULATION)}
    assert checked | {"k"} >= set(known_models())


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_contract(requirement: str) -> None:
    (model,) = parse_requirements(requirement)
    check_privacy_model(model)


@pytest.mark.parametrize("requirement", ABOUT_A_POPULATION)
def test_contract_with_a_population(requirement: str, tmp_path: Path) -> None:
    table = example_table()
    population = tmp_path / "population.csv"
    table.frame.to_csv(population, index=False)
    (model,) = parse_requirements(requirement.format(population))
    check_privacy_model(model, table)
