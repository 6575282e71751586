"""Privacy models: numbers from the papers and by hand, what merging may do, and agreement with a second checker."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from fedanon.anonymizers.mondrian.method import Mondrian
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, PrivacyViolationError, SchemaError
from fedanon.privacy.base import PrivacyModel, Rows
from fedanon.privacy.models.t_closeness import equal_distance, hierarchical_distance, ordered_distance
from fedanon.privacy.requirements import known_models, parse_requirements
from tests.privacy.generated import ILLNESS, generate, requirement
from tests.privacy.independent import Published


def rows_of(classes: list[str], *, attribute: str = "text", persons: list[int] | None = None) -> tuple[Rows, Groups]:
    """One row a letter (or a number), one class a text."""
    values = [value for members in classes for value in members]
    labels = np.repeat(np.arange(len(classes)), [len(members) for members in classes])
    column = {"text": FreeText("s", Role.SENSITIVE), "number": Numeric("s", Role.SENSITIVE, 0, 20)}[attribute]
    schema = Schema((column, Numeric("age", Role.QUASI_IDENTIFYING, 0, 9)))
    people = None if persons is None else np.array(persons)
    return Rows(pd.DataFrame({"s": values}), schema, people), Groups.from_labels(labels)


def kept(require: str, classes: list[str], **how: object) -> list[bool]:
    (model,) = parse_requirements(require)
    assert isinstance(model, PrivacyModel)
    rows, groups = rows_of(classes, **how)  # type: ignore[arg-type]
    return list(model.evaluator(rows, ~groups.suppressed).satisfied(groups, dict))


# ---- diversity ------------------------------------------------------------------------------------------------------


def test_distinct_diversity_counts_values() -> None:
    assert kept("l=2:s", ["aaab", "aaaa", "abcd"]) == [True, False, True]
    assert kept("l=4:s", ["aaab", "abcd"]) == [False, True]


def test_entropy_of_l_equally_common_values_is_exactly_l() -> None:
    for l_ in (2, 3, 5, 6, 7):  # sums of -p ln p round below ln l for some of them
        assert kept(f"entropy_l={l_}:s", ["abcdefg"[:l_] * 3, "abcdefg"[:l_] + "a"]) == [True, False]


def test_recursive_diversity() -> None:
    # counts 3, 2, 1: 3 < c (2 + 1) for l = 2, 3 < c 1 for l = 3; the inequality is strict
    assert kept("recursive_l=2:s:c=1", ["aaabbc"]) == [False]
    assert kept("recursive_l=2:s:c=1.1", ["aaabbc"]) == [True]
    assert kept("recursive_l=3:s:c=3", ["aaabbc"]) == [False]
    assert kept("recursive_l=3:s:c=3.5", ["aaabbc", "aaabbb"]) == [True, False]


def test_alpha_is_a_share_of_people() -> None:
    assert kept("alpha=0.5:s", ["aabb", "aaab"]) == [True, False]


# ---- against the whole release --------------------------------------------------------------------------------------


def test_closeness_of_salaries_as_in_the_paper() -> None:
    """Li, Li & Venkatasubramanian (2007): of 3k .. 11k, {3k, 4k, 5k} is 0.375 away and {6k, 8k, 11k} 0.167."""
    whole = np.full(9, 1 / 9)
    low, spread = np.zeros(9), np.zeros(9)
    low[[0, 1, 2]] = spread[[3, 5, 8]] = 1 / 3
    assert ordered_distance(np.array([low, spread]), whole) == pytest.approx([0.375, 1 / 6])
    salaries = [[3, 4, 5], [6, 8, 11], [7, 9, 10]]
    assert kept("t=0.37:s", salaries, attribute="number")[:2] == [False, True]  # type: ignore[arg-type]
    assert kept("t=0.375:s", salaries, attribute="number")[0]  # type: ignore[arg-type]


@given(
    arrays(np.int64, (2, 6), elements=st.integers(0, 9)).filter(lambda c: bool((c.sum(axis=1) > 0).all())),
    st.sampled_from(["equal", "ordered", "hierarchical"]),
)
def test_distances_are_the_least_cost_of_moving_mass(counts: np.ndarray, kind: str) -> None:
    """The earth mover's distance by its definition, a linear program."""
    tree = ILLNESS.with_missing()
    p, q = counts / counts.sum(axis=1, keepdims=True)
    leaves = np.arange(6)
    low, high = np.minimum.outer(leaves, leaves).ravel(), np.maximum.outer(leaves, leaves).ravel()
    height = tree.height[tree.common_ancestor(low, high)].reshape(6, 6)
    ground = {
        "equal": 1.0 - np.eye(6),
        "ordered": np.abs(leaves[:, None] - leaves) / 5,
        "hierarchical": height / tree.height[tree.root],
    }[kind]
    sums = np.vstack([np.kron(np.eye(6), np.ones(6)), np.kron(np.ones(6), np.eye(6))])
    least = linprog(ground.ravel(), A_eq=sums, b_eq=np.concatenate([p, q]), bounds=(0, None)).fun
    found = {
        "equal": lambda: equal_distance(p[None], q),
        "ordered": lambda: ordered_distance(p[None], q),
        "hierarchical": lambda: hierarchical_distance(p[None], q, tree, leaves),
    }[kind]()
    assert found[0] == pytest.approx(least, abs=1e-7)


def test_likeness_bounds_the_gain_and_more_so_for_common_values() -> None:
    # whole: a 6/8, b 2/8; in the second class a has 1/2 (no gain), b 1/2: a gain of 1
    assert kept("beta=1:s", ["aaaa", "aabb"]) == [True, True]
    assert kept("beta=0.9:s", ["aaaa", "aabb"]) == [True, False]
    # a gains 1/3 in the first; -ln(6/8) = 0.288 bounds it in the enhanced form
    assert kept("beta=1:s:enhanced", ["aaaa", "aabb"]) == [False, True]


def test_disclosure_is_two_sided_and_breaks_where_a_value_is_absent() -> None:
    # whole: a 6/10, b 4/10; shares of the classes: a 4/5, b 1/5 and a 2/5, b 3/5; ln(0.5) is the largest
    classes = ["aaaab", "aabbb"]
    assert kept("delta=0.7:s", classes) == [True, True]
    assert kept("delta=0.68:s", classes) == [False, True]
    assert kept("delta=9:s", ["aaaa", "aabb"]) == [False, True]


def test_a_person_counts_once_for_a_value() -> None:
    # 0 has a in three rows and b in one; 1 has b
    who = [0, 0, 0, 0, 1]
    assert kept("alpha=0.5:s", ["aaabb"], persons=who) == [False]  # both have b
    assert kept("entropy_l=1.88:s", ["aaabb"], persons=who) == [True]  # a once, b twice: entropy 1.8899
    assert kept("entropy_l=1.9:s", ["aaabb"], persons=who) == [False]


def test_a_missing_value_is_a_value_of_its_own() -> None:
    rows, groups = rows_of(["aaa", "aab"])
    rows = rows._replace(frame=pd.DataFrame({"s": ["a", "a", None, "a", "a", "b"]}))
    (model,) = parse_requirements("l=2:s")
    assert isinstance(model, PrivacyModel)
    assert model.evaluator(rows, ~groups.suppressed).satisfied(groups, dict).tolist() == [True, True]


def test_suppressed_rows_are_not_what_classes_are_compared_with() -> None:
    (model,) = parse_requirements("t=0:s")
    assert isinstance(model, PrivacyModel)
    rows, _ = rows_of(["ab", "ab", "bbbb"])
    groups = Groups.from_labels(np.array([0, 0, 1, 1, -1, -1, -1, -1]))
    assert model.evaluator(rows, ~groups.suppressed).satisfied(groups, dict).all()
    assert not model.evaluator(rows, np.ones(8, dtype=bool)).satisfied(groups, dict).any()


# ---- population -----------------------------------------------------------------------------------------------------


def aged(ages: list[int]) -> Table:
    return Table.from_frame(pd.DataFrame({"age": ages}), Schema((Numeric("age", Role.QUASI_IDENTIFYING, 0, 100),)))


def test_people_of_the_population_are_counted_in_published_cells(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("age,name\n" + "".join(f"{age},x\n" for age in [1, 2, 2, 3, 50, 60, 70]))
    table = aged([1, 3, 50, 60])
    release = Mondrian(k=2).anonymize(table, rng=0)  # [1, 3] and [50, 60]: 4 and 2 of the population
    verdicts = {
        require: parse_requirements(f"{require.format(file)}")[0].satisfied_classes(release).tolist()  # type: ignore[arg-type]
        for require in ("k_map=3:{}", "presence=0.6:{}", "presence=1:{}", "presence=1:{}:low=0.1")
    }
    assert list(verdicts.values()) == [[True, False], [True, False], [True, True], [False, False]]
    merged = Mondrian(k=2, require=f"k_map=3:{file}").anonymize(table, rng=0)
    assert set(merged.to_frame()["age"]) == {"[1, 60]"}


def test_a_population_without_the_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name\nx\n")
    with pytest.raises(SchemaError, match="population lacks 1 quasi-identifiers: age"):
        Mondrian(k=2, require=f"k_map=3:{tmp_path / 'people.csv'}").anonymize(aged([1, 2]), rng=0)


# ---- what all models share ------------------------------------------------------------------------------------------

NUMBERS = {
    "l": "2", "entropy_l": "1.7", "recursive_l": "2", "t": "0.25", "alpha": "0.6", "beta": "0.8", "delta": "0.9"
}  # fmt: skip


def test_the_sample_of_numbers_covers_every_model_about_a_column() -> None:
    assert set(NUMBERS) == {name for name, model in known_models().items() if model.subject == "column"}


@given(
    st.sampled_from([*(f"{name}={value}:s" for name, value in NUMBERS.items()), "beta=2:s:enhanced"]),
    arrays(np.int64, (3, 4), elements=st.integers(0, 6)).filter(lambda c: bool((c.sum(axis=1) > 0).all())),
)
def test_merging_never_breaks_a_monotone_model(require: str, counts: np.ndarray) -> None:
    classes = ["".join(letter * n for letter, n in zip("abcd", row, strict=True)) for row in counts.tolist()]
    apart = kept(require, classes)
    together = kept(require, [classes[0] + classes[1], classes[2]])
    assert together[0] or not (apart[0] and apart[1])
    assert together[1] == apart[2]


def test_two_checkers_agree_whether_a_model_holds(tmp_path: Path) -> None:
    """On releases that were only made k-anonymous, so that models hold and fail."""
    rng = np.random.default_rng(0)
    seen: Counter[tuple[str, bool]] = Counter()
    for _ in range(250):
        case = generate(rng, tmp_path)
        if case.table.n_units < 2:
            continue
        release = Mondrian(k=int(rng.integers(2, 6))).anonymize(case.table, rng=0)
        require = requirement(rng, case.population, truthful=True, most=1)
        (model,) = parse_requirements(require)
        assert isinstance(model, PrivacyModel)
        persons = None if case.table.persons is None else case.table.persons.tolist()
        ours = bool(model.satisfied_classes(release).all())
        assert ours == Published(release.to_frame(), case.table.schema, persons).holds(require), require
        seen[require.split("=")[0], ours] += 1
    about_something = {name for name, model in known_models().items() if model.subject}
    assert {name for name, _ in seen} == about_something
    assert len(seen) >= 2 * len(about_something) - 1  # nearly all were seen both to hold and to fail


def test_a_broken_model_is_refused_with_counts() -> None:
    table = Table.from_frame(
        pd.DataFrame({"age": [1, 1, 9, 9], "s": list("aaab")}),
        Schema((Numeric("age", Role.QUASI_IDENTIFYING, 0, 9), FreeText("s", Role.SENSITIVE))),
    )
    release = Mondrian(k=2).anonymize(table, rng=0)
    (model,) = parse_requirements("l=2:s")
    with pytest.raises(PrivacyViolationError, match=r"claims distinct 2-diversity of 's', but 1 of 2 equivalence"):
        model.check(release, table)


def test_distances_need_an_order_or_a_taxonomy() -> None:
    with pytest.raises(ConfigError, match="'s' has no order"):
        kept("t=0.3:s:ordered", ["ab"])
    with pytest.raises(ConfigError, match="'s' has no taxonomy"):
        kept("t=0.3:s:hierarchical", ["ab"])
    rows, groups = rows_of(["ab"])
    tree = Categorical("s", Role.SENSITIVE, Hierarchy.flat(["a"]))
    rows = rows._replace(schema=replace(rows.schema, attributes=(tree, *rows.schema.attributes[1:])))
    (model,) = parse_requirements("t=0.3:s:hierarchical")
    with pytest.raises(SchemaError, match="'s' has 1 values its taxonomy does not list"):
        model.evaluator(rows, ~groups.suppressed).satisfied(groups, dict)  # type: ignore[union-attr]
