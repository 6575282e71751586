"""The sweeps: every method for numbers has one, they expand as told, and a grid can ask for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.infer import numeric_schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.harness.experiment import expand
from fedanon.sdc.masking import Masking
from fedanon.sdc.methods.numeric import NumericPerturbation
from fedanon.sdc.sweeps import SWEEPS, VARIANTS, combinations, maskings


@pytest.fixture(scope="module")
def table() -> Table:
    rng = np.random.default_rng(3)
    income = np.where(rng.random(120) < 0.2, 0.0, rng.lognormal(8, 1, 120))
    frame = pd.DataFrame({"income": income, "spending": 0.4 * income + rng.gamma(2, 300, 120)})
    return Table.from_frame(frame, numeric_schema(frame, "all"))


def test_every_method_for_numbers_has_a_sweep() -> None:
    methods = {name for name, method in ANONYMIZERS.items() if issubclass(method, NumericPerturbation)}
    assert methods <= set(SWEEPS)


def test_every_default_masking_runs_and_changes_something(table: Table) -> None:
    """In all variants; a variant that gave the plain result back would only double a point."""
    plan = maskings(table, {name: {} for name in SWEEPS}, VARIANTS)
    assert {masking.variant for masking in plan} == set(VARIANTS)
    small = [masking for masking in plan if masking.settings.get("k", 3) == 3]
    for masking in small:
        release = masking.release(table, 0)
        assert not release.to_frame().equals(table.frame), masking


def test_reverse_mapping_undoes_what_keeps_ranks(table: Table) -> None:
    """Which is why it is no variant of such a method."""
    mapped = Masking("distortion", {"significance": 0.0}, reverse_map=True).release(table, 0).to_frame()
    assert np.allclose(mapped.to_numpy(dtype=float), table.frame.to_numpy())
    assert "reverse mapped" not in SWEEPS["distortion"].variants("distortion")


def test_reverse_mapping_follows_any_method(table: Table) -> None:
    for masking in (Masking("mdav", {"k": 5}, True), Masking("additive_noise", {"c": 0.5}, True)):
        mapped = masking.release(table, 0).to_frame().to_numpy(dtype=float)
        assert np.allclose(np.sort(mapped, axis=0), np.sort(table.frame.to_numpy(), axis=0))


def test_rounding_is_swept_in_the_units_of_the_table(table: Table) -> None:
    bases = [masking.settings["base"] for masking in maskings(table, {"rounding": {}})]
    narrowest = float(table.frame.std(ddof=0).min())
    assert np.allclose(bases, np.array(SWEEPS["rounding"].values["base"]) * narrowest, rtol=0.5)


def test_given_values_replace_the_usual_ones(table: Table) -> None:
    plan = maskings(table, {"log_multiplicative_noise": {"sd": [0.3]}, "gadp": {}})
    assert [masking.settings for masking in plan] == [{"sd": 0.3, "keep_zeros": True}, {}]


def test_combinations() -> None:
    assert list(combinations({"a": [1, 2], "b": 3})) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]
    assert list(combinations({})) == [{}]


def test_a_grid_of_sweeps() -> None:
    grid = {
        "name": "g",
        "task": "masking",
        "dataset": "randhie",
        "methods": "sweeps",
        "variants": ["plain", "reverse mapped"],
        "adjust": [{"name": "rounding", "set": {"base": [5.0, 10.0]}}],
    }
    cells = expand(grid)
    places = [(c.label, c.task.method_settings, c.task.k, c.task.reverse_map) for c in cells]  # type: ignore[attr-defined]
    assert ("mdav, reverse mapped", {}, 25, True) in places
    assert ("rounding", {"base": 10.0}, None, False) in places
    assert len({cell.key for cell in cells}) == len(cells)
    without = expand({name: value for name, value in grid.items() if name != "adjust"})
    assert {cell.label for cell in cells} - {cell.label for cell in without} == {"rounding", "rounding, reverse mapped"}
    with pytest.raises(ConfigError, match="Unknown variants: backwards"):
        expand(grid | {"variants": ["backwards"]})


def test_a_list_among_settings_is_an_axis() -> None:
    method = {"name": "additive_noise", "set": {"c": [0.1, 0.5]}}
    cells = expand({"name": "g", "task": "release", "dataset": "randhie", "methods": [method], "seeds": 2})
    found = [(c.task.seed, c.task.method_settings["c"]) for c in cells]  # type: ignore[attr-defined]
    assert found == [(0, 0.1), (0, 0.5), (1, 0.1), (1, 0.5)]
