"""Taxonomies: sound ones keep their promises, broken ones are refused without naming a label."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.data.hierarchy import MISSING, Hierarchy, read_arx_hierarchy, write_arx_hierarchy
from fedanon.data.schema import Schema
from fedanon.errors import DataError, FedanonError, SchemaError

CANARY = "CANARY-93417"


def refused(match, build, *arguments, **options):
    with pytest.raises(FedanonError, match=match) as caught:
        build(*arguments, **options)
    assert CANARY not in str(caught.value)


def test_leaves_below_a_node_are_consecutive():
    tree = Hierarchy.from_nested({"A": ["a", {"AB": ["b", "c"]}], "D": ["d"], "e": []})
    assert tree.labels[: tree.n_leaves] == ("a", "b", "c", "d", "e")
    node = tree.nodes["A"]
    assert (tree.first[node], tree.last[node], tree.height[node]) == (0, 2, 2)
    assert tree.labels[tree.root] == "*"


def test_common_ancestor_is_the_lowest_node_over_both():
    tree = Hierarchy.from_nested({"A": ["a", {"AB": ["b", "c"]}], "D": ["d"]})
    low, high = np.array([1, 0, 0, 2]), np.array([2, 2, 3, 2])
    assert [tree.labels[v] for v in tree.common_ancestor(low, high)] == ["AB", "A", "*", "c"]


nested = st.recursive(st.just(None), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=12)


def labeled(shape, counter):
    """Give every node of a shape a label of its own."""
    counter[0] += 1
    name = f"n{counter[0]}"
    return name if shape is None else {name: [labeled(child, counter) for child in shape]}


@given(st.lists(nested, min_size=1, max_size=4))
def test_every_form_reads_back(shapes):
    counter = [0]
    tree = Hierarchy.from_nested([labeled(shape, counter) for shape in shapes])
    assert Hierarchy.from_nested(tree.to_nested()) == tree
    assert Hierarchy.from_paths(tree.paths()) == tree
    assert (tree.leaf_counts[tree.parent] >= tree.leaf_counts).all()
    assert tree.leaf_counts[tree.root] == tree.n_leaves


def test_missing_is_the_last_leaf():
    tree = Hierarchy.flat(["b", "a"]).with_missing()
    assert tree.labels[tree.n_leaves - 1] == MISSING
    assert tree.with_missing() is tree


def test_broken_trees():
    refused("cycle", Hierarchy.from_paths, [(CANARY, "x", CANARY, "*")])
    refused("more than one parent", Hierarchy.from_paths, [("a", CANARY, "x", "*"), ("b", CANARY, "y", "*")])
    refused("2 roots", Hierarchy.from_paths, [(CANARY, "x"), ("b", "y")])
    refused("lists 1 leaves more than once", Hierarchy.from_paths, [(CANARY, "*"), (CANARY, "*")])
    refused("both as a leaf and as an inner node", Hierarchy.from_paths, [(CANARY, "*"), ("a", CANARY, "*")])
    refused("without a leaf", Hierarchy.from_paths, [("", CANARY, "*")])
    refused("is empty", Hierarchy.from_nested, [])
    refused("the root itself", Hierarchy.from_paths, [("*", "*")])
    refused("text labels only", Hierarchy.from_nested, [1, 2])
    refused("tables and lists", Hierarchy.from_nested, {"a": CANARY})


def test_ten_thousand_levels_are_refused():
    deep = [f"{CANARY}{i}" for i in range(10_000)]
    refused("deeper than 64", Hierarchy.from_paths, [deep])
    tree: list = ["leaf"]
    for label in deep:
        tree = [{label: tree}]
    refused("deeper than 64", Hierarchy.from_nested, tree)


@pytest.mark.parametrize(
    "taxonomy",
    [
        "taxonomy = " + "[{a=" * 10_000 + "[]" + "}]" * 10_000,
        "[attributes.x.taxonomy." + ".".join(f"n{i}" for i in range(10_000)) + "]\nleaf = []",
        "taxonomy." + ".".join(f"n{i}" for i in range(10_000)) + " = ['leaf']",
    ],
)
def test_ten_thousand_levels_in_toml(tmp_path, taxonomy):
    path = tmp_path / "deep.toml"
    path.write_text(f'[attributes.x]\ntype = "categorical"\n{taxonomy}\n')
    refused("deep", Schema.read, path)


def test_a_hundred_thousand_leaves():
    tree = Hierarchy.flat(map(str, range(100_000)))
    assert tree.n_leaves == 100_000
    assert tree.codes["99999"] == 99_999


@pytest.mark.parametrize("delimiter", [";", ","])
def test_arx_files(tmp_path, delimiter):
    path = tmp_path / "ward.csv"
    path.write_text("a;A;*\nb;A;*\nc;c;*\n".replace(";", delimiter), encoding="utf-8-sig")
    tree = read_arx_hierarchy(path)
    assert tree == Hierarchy.from_nested([{"A": ["a", "b"]}, "c"])
    path.write_text(write_arx_hierarchy(tree))
    assert read_arx_hierarchy(path) == tree


def test_broken_arx_files(tmp_path):
    path = tmp_path / "ward.csv"

    def written(text):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    refused("does not exist", read_arx_hierarchy, tmp_path / "no.csv")
    refused("cannot be read", read_arx_hierarchy, tmp_path)
    refused("is empty", read_arx_hierarchy, written(""))
    refused("different lengths", read_arx_hierarchy, written(f"{CANARY};*\nb;B;*\n"))
    refused("one column", read_arx_hierarchy, written(f"{CANARY}\nb\n"))
    refused("UTF-8", read_arx_hierarchy, written(b"Jos\xe9;*\n"))
    refused("more than once", read_arx_hierarchy, written(f"{CANARY};*\n{CANARY};*\n"))
    refused("2 roots", read_arx_hierarchy, written(f"{CANARY};*\nb;all\n"))
    refused("cycle", read_arx_hierarchy, written(f"{CANARY};b;{CANARY};*\n"))
    refused("deeper than 64", read_arx_hierarchy, written(";".join(f"{CANARY}{i}" for i in range(10_000))))
    refused("without a leaf", read_arx_hierarchy, written(f";{CANARY};*\n"))


def test_arx_file_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr("fedanon.data.hierarchy.MAX_BYTES", 4)
    path = tmp_path / "ward.csv"
    path.write_text("abcdef;*\n")
    with pytest.raises(DataError, match="larger than"):
        read_arx_hierarchy(path)


def test_equality_is_that_of_the_paths():
    assert Hierarchy.flat("ab") != Hierarchy.flat("ba")
    assert hash(Hierarchy.flat("ab")) == hash(Hierarchy.flat("ab"))
    with pytest.raises(SchemaError):
        Hierarchy.flat([])
