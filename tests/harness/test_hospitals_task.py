"""Hospitals that share patients: what is counted by hand, and what a cell of an experiment says of them."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.errors import ConfigError
from fedanon.harness.tasks.hospitals import HospitalsTask, Seen, _composition, _homogeneity


def seen(rows: list[int], values: list[int], cells: list[str], classes: list[int]) -> Seen:
    return Seen(np.array(rows), np.array(values), np.array(cells), np.array(classes))


#: row 2 is at both; its class has the values 0, 1 in the first hospital and 1, 2 in the second
FIRST = seen([0, 1, 2, 3], [0, 0, 1, 0], ["a", "a", "b", "b"], [0, 0, 1, 1])
SECOND = seen([2, 4, 5], [1, 2, 0], ["b", "b", ""], [0, 0, -1])


def test_homogeneity_by_hand() -> None:
    """Published: five rows and row 2 twice; 'a' has one value everywhere, 'b' nowhere."""
    assert _homogeneity([FIRST, SECOND]) == {"homogeneity": 2 / 6, "homogeneity_hospital": 2 / 6}
    alone = seen([7], [2], ["b"], [0])
    found = _homogeneity([FIRST, SECOND, alone])
    assert found == {"homogeneity": 2 / 7, "homogeneity_hospital": 3 / 7}


def test_composition_by_hand() -> None:
    at = np.array([0]), np.array([1]), np.array([2])
    assert _composition([FIRST, SECOND], *at) == {"composition": 1.0, "composition_alone": 0.0}


@pytest.mark.parametrize("method", ["mondrian", "federated_mondrian", "federated_reference"])
def test_the_same_cell_gives_the_same_numbers(method: str) -> None:
    task = HospitalsTask(dataset="randhie", method=method, k=10, nodes=4)
    first = task.run().metrics
    assert first == task.run().metrics
    assert 0 <= first["composition_alone"] <= first["composition"] <= 1
    assert first["homogeneity"] <= first["homogeneity_hospital"]


def test_settings_of_a_method_of_a_federation_are_checked() -> None:
    with pytest.raises(ConfigError, match="k_local=9 is larger than k=5"):
        HospitalsTask(method="federated_mondrian", k=5, method_settings={"k_local": 9})
