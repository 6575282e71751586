"""From a TOML file to cells: what is accepted, what it becomes, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedanon.errors import ConfigError, DataError, FedanonError
from fedanon.harness.experiment import Experiment, parse_experiment, read_experiment

EXPERIMENTS = Path(__file__).parents[2] / "experiments"

GRID = """
[[grid]]
name = "g"
task = "release"
dataset = "randhie"
"""


def parse(text: str, folder: Path = EXPERIMENTS) -> Experiment:
    return parse_experiment(text, name="test", folder=folder)


def test_every_list_is_an_axis() -> None:
    cells = parse(GRID + 'k = [3, 5]\nseeds = 3\nmethods = ["mondrian", "identity"]').cells
    places = [(c.label, c.coordinates["k"], c.task.seed) for c in cells]
    assert places == [
        *(("mondrian", k, s) for k in (3, 5) for s in range(3)),
        *(("identity", None, s) for s in range(3)),
    ]


def test_a_method_may_override_its_grid() -> None:
    text = (
        GRID
        + 'k = [3, 5]\nmethods = [{ name = "mondrian", label = "M", k = 7, seeds = [4], set = { relaxed = true } }]'
    )
    (cell,) = parse(text).cells
    assert (cell.label, cell.coordinates["k"], cell.task.seed) == ("M", 7, 4)
    assert cell.coordinates["settings"] == '{"relaxed": true}'


def test_all_methods_and_some_adjusted() -> None:
    text = GRID + 'k = 5\nmethods = "mixed"\nadjust = [{ name = "anneal", set = { iterations = 10 } }]'
    cells = {cell.label: cell for cell in parse(text).cells}
    assert {"mondrian", "gfkmc", "identity"} <= set(cells)
    assert "mdav" not in cells
    assert cells["anneal"].coordinates["settings"] == '{"iterations": 10}'
    everything = {cell.label for cell in parse(GRID + 'k = 5\nmethods = "all"').cells}
    assert "mdav" in everything
    assert "additive_noise" not in everything | set(cells)


def test_methods_that_change_values_are_a_group_of_their_own() -> None:
    text = GRID + 'k = [3, 5]\nmethods = "perturbative"\nadjust = [{ name = "rounding", set = { base = 2 } }]'
    cells = {cell.label: cell for cell in parse(text).cells}
    assert {"additive_noise", "egadp", "rank_swapping"} <= set(cells)
    assert not {"mdav", "identity", "mondrian"} & set(cells)
    assert "longitudinal_reverse_mapping" not in cells, "it needs to be told the periods"
    assert cells["rounding"].coordinates["settings"] == '{"base": 2}'
    assert cells["egadp"].coordinates["k"] is None
    adjusted = 'adjust = [{ name = "longitudinal_reverse_mapping", set = { periods = "a,b" } }]'
    labels = {cell.label for cell in parse(GRID + f'k = 3\nmethods = "perturbative"\n{adjusted}').cells}
    assert "longitudinal_reverse_mapping" in labels


def test_the_key_follows_what_decides_the_numbers() -> None:
    one, other = parse(GRID + 'k = [3, 5]\nmethods = ["mondrian"]').cells
    assert one.key != other.key
    (renamed,) = parse(GRID.replace('"g"', '"h"') + 'k = 3\nmethods = [{ name = "mondrian", label = "x" }]').cells
    assert renamed.key == one.key
    (elsewhere,) = parse(GRID.replace("randhie", "nhanes") + 'k = 3\nmethods = ["mondrian"]').cells
    assert elsewhere.key != one.key


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = 'x'", r"no \[\[grid\]\]"),
        ("color = 1\n" + GRID, "unknown key color"),
        ("[[grid]]\nname = 'g'", "names no task"),
        (GRID.replace("release", "relese") + "methods = ['mondrian']", "Did you mean 'release'"),
        (GRID, "list of methods"),
        (GRID + "methods = [1]", "a method is a name"),
        (GRID + "methods = ['mondrain']\nk = 5", "Did you mean 'mondrian'"),
        (GRID + "methods = ['mondrian']\nk = 1", "must be an int >= 2"),
        (GRID + "methods = ['mondrian']\nk = 'many'", "'k' parameter"),
        (GRID + "methods = ['mondrian']\nk = []", "list k is empty"),
        (GRID + "methods = ['mondrian']", "needs a value for: k"),
        (GRID + "methods = ['mondrian']\nk = 5\nmethod = 'cb'", "unknown key method"),
        (GRID + "methods = [{ name = 'mondrian', color = 1 }]\nk = 5", "unknown key color"),
        (GRID + "methods = [{ name = 'mondrian', set = { color = 1 } }]\nk = 5", "no parameter color"),
        (GRID + "methods = ['mondrian']\nk = 5\nseeds = 0", "seeds must be"),
        (GRID + "methods = ['mondrian']\nk = 5\nmetrics = ['nothing']", "Unknown metric"),
        (GRID + "methods = ['mondrian']\nk = 5" + GRID + "methods = ['mondrian']\nk = 5", "same name"),
        ("[[grid]]\nname='g'\ntask = 'elbow'\nmethods = ['das']", "its task has none"),
        (GRID + "methods = ['mondrian']\nk = 5\n[[published]]\nfile = 'none.csv'", "needs: grid, source"),
        (
            GRID + "methods = ['mondrian']\nk = 5\n[[published]]\nfile = 'none.csv'\ngrid = 'g'\nsource = 's'",
            "none.csv cannot be read",
        ),
    ],
)
def test_bad_experiments(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text)


def test_not_toml() -> None:
    with pytest.raises(DataError, match="not TOML"):
        parse("title = ")
    with pytest.raises(DataError, match="cannot be read"):
        read_experiment(Path("nowhere.toml"))


@pytest.mark.needs_data
@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_experiments_of_the_repository_can_be_read(path: Path) -> None:
    experiment = read_experiment(path)
    assert experiment.cells
    assert experiment.about
    labels = {cell.label for cell in experiment.cells}
    assert not experiment.baseline or experiment.baseline in labels
    for published in experiment.published:
        of_grid = {cell.label for cell in experiment.cells if cell.grid == published.grid}
        assert "label" not in published.table or set(published.table["label"]) <= of_grid


def test_errors_are_typed() -> None:
    with pytest.raises(FedanonError):
        parse("grid = 3")


OLD = """
[[grid]]
task = "hostile"
methods = ["identity"]
clients = 4
hostile = [1, 2]
tampering = "nan"
tampering_settings = {}
clients_per_round = 3
"""


def test_former_keys_give_the_same_cells_with_a_warning() -> None:
    new = OLD
    for old, name in (
        ('"hostile"', '"malicious"'),
        ("clients_per_round", "nodes_per_round"),
        ("clients", "nodes"),
        ("hostile =", "malicious ="),
        ("tampering_settings", "malicious_settings"),
        ("tampering", "malicious_attack"),
    ):
        new = new.replace(old, name)
    with pytest.warns(FutureWarning, match="is now called"):
        former = parse(OLD).cells
    current = parse(new).cells
    assert [cell.key for cell in former] == [cell.key for cell in current]
    assert {cell.coordinates["hostile"] for cell in current} == {1, 2}


def test_every_setting_of_a_run_is_an_axis_of_a_federation() -> None:
    text = GRID.replace('"release"', '"federation"') + "methods = ['identity']\ntest_share = [0.2, 0.3]\nmalicious = 0"
    usual, other = parse(text).cells
    # settings that came after results were stored are no part of a cell's name unless they are chosen
    assert not {"test_share", "min_replies", "hostile", "max_move"} & set(usual.coordinates)
    assert other.coordinates["test_share"] == 0.3
