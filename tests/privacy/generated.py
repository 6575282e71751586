"""Small random tables with sensitive columns, a population round them, and requirements to try on them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.infer import interval_hierarchy
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.types import Rng

QUASI, SENSITIVE = Role.QUASI_IDENTIFYING, Role.SENSITIVE
ILLNESS = Hierarchy.from_nested({"lung": {"infection": ["flu", "cold"], "vessels": ["clot"]}, "gut": ["ulcer", "cyst"]})
WARDS = Hierarchy.from_nested({"north": ["n1", "n2", "n3"], "south": {"old": ["o1", "o2"], "new": ["w1"]}})
AGES = interval_hierarchy(0, 60)


@dataclass(frozen=True)
class Case:
    """A table, and the file of its population."""

    table: Table
    population: Path


def generate(rng: Rng, folder: Path, *, numeric_only: bool = False, plain: bool = False) -> Case:
    """A table of 8 to 60 rows; ``plain`` leaves out missing values and persons with several rows."""
    n = int(rng.integers(8, 60))
    people = n + int(rng.integers(0, 40))
    everyone, attributes, missing = _quasi(rng, people, numeric_only, plain)
    frame = everyone.iloc[:n].reset_index(drop=True)
    frame["illness"] = rng.choice(ILLNESS.labels[: ILLNESS.n_leaves], n, p=rng.dirichlet(np.full(5, 2.0)))
    frame["cost"] = rng.integers(0, int(rng.integers(2, 12)), n)
    attributes += [Categorical("illness", SENSITIVE, ILLNESS), Numeric("cost", SENSITIVE, 0, 20)]
    person_id = None
    if not plain and rng.random() < 0.2:
        person_id = "who"
        frame["who"] = rng.integers(0, max(2 * n // 3, 1), n)
        attributes.append(FreeText("who", Role.IDENTIFYING))
    if not plain and rng.random() < 0.2:
        frame.loc[rng.random(n) < 0.1, "illness"] = None
    schema = Schema(tuple(attributes), person_id=person_id, target="illness")
    population = folder / "population.csv"
    everyone.to_csv(population, index=False)
    policy: Any = str(rng.choice(["category", "wildcard"])) if missing else "error"
    return Case(Table.from_frame(frame, schema, missing=policy), population)


def _quasi(rng: Rng, people: int, numeric_only: bool, plain: bool) -> tuple[pd.DataFrame, list[Attribute], bool]:
    everyone = pd.DataFrame({"age": rng.integers(0, int(rng.choice([3, 20, 60])), people)})
    attributes: list[Attribute] = [Numeric("age", QUASI, 0, 60, True, AGES)]
    if numeric_only:
        everyone["weight"] = rng.integers(0, 8, people) / 4
        return everyone, [*attributes, Numeric("weight", QUASI, 0, 2)], False
    everyone["ward"] = rng.choice(WARDS.labels[: WARDS.n_leaves], people)
    attributes.append(Categorical("ward", QUASI, WARDS))
    missing = not plain and rng.random() < 0.2
    if missing:
        everyone.loc[rng.random(people) < 0.15, "ward"] = None
    return everyone, attributes, missing


def requirement(rng: Rng, population: Path, *, truthful: bool, most: int = 3) -> str:
    """One to three models with numbers that small tables can often keep."""
    texts = [
        f"l={rng.integers(2, 4)}:illness",
        f"l={rng.integers(2, 4)}:cost",
        f"entropy_l={rng.uniform(1.2, 2.4):.3f}:illness",
        f"recursive_l={rng.integers(2, 4)}:illness:c={rng.uniform(1, 4):.2f}",
        f"t={rng.uniform(0.15, 0.6):.3f}:illness:{rng.choice(['equal', 'ordered', 'hierarchical'])}",
        f"t={rng.uniform(0.1, 0.5):.3f}:cost",
        f"alpha={rng.uniform(0.4, 0.9):.3f}:illness",
        f"beta={rng.uniform(0.3, 3):.3f}:illness",
        f"beta={rng.uniform(0.3, 3):.3f}:cost:enhanced",
        f"delta={rng.uniform(0.8, 3):.3f}:illness",
    ]
    if truthful:
        texts += [f"k_map={rng.integers(2, 12)}:{population}", f"presence={rng.uniform(0.5, 1):.3f}:{population}"]
        texts.append(f"presence={rng.uniform(0.7, 1):.3f}:{population}:low={rng.uniform(0, 0.2):.3f}")
    return ",".join(rng.choice(texts, int(rng.integers(1, most + 1)), replace=False))
