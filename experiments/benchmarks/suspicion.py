"""How often a federation of honest nodes names one of them a suspect, and how often malicious ones are named.

    .venv/bin/python experiments/benchmarks/suspicion.py [--runs 100] [--first 1000] [--models lr xgb] [--only heart]

Prints a table in Markdown, a line as it is finished. Every run has a seed of its own: it deals out the rows, of which
every node trains on 80 %. The server's rounds are those of a real run; between it and the nodes there are no messages,
and nobody anonymizes or tests, so that a thousand nodes are cheap. Needs the folder named by FEDANON_DATA for `heart`
and `eicu` (the demo of the eICU database). The constants of the rule were chosen on seeds below 1000.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data import partition
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.datasets.files import need
from fedanon.learning import suspicion
from fedanon.learning.aggregators import Aggregator
from fedanon.learning.malicious import MALICIOUS_ATTACKS, MaliciousModel, Trigger, malicious_numbers
from fedanon.learning.node import NodeFacts
from fedanon.learning.rounds import Participants, Reply, Rounds
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import make_model
from fedanon.learning.thesis_node import FixedRows
from fedanon.models.base import LocalState
from fedanon.models.encoding import Encoding
from fedanon.models.target import target
from fedanon.types import BoolArray, FloatArray, IndexArray, Rng

#: the table, and the rows of every node
Dealt = tuple[Table, list[IndexArray]]
#: rows a node has at least
FEWEST = 10


@dataclass(frozen=True)
class Setting:
    """A federation: its nodes by a random stream, its rounds, and what malicious nodes of it do."""

    deal: Callable[[Rng], Dealt]
    rounds: int = 4
    models: tuple[str, ...] = ("lr", "xgb")
    malicious: int = 0
    attack: str = "nan"

    def run(self, model: str, seed: int) -> tuple[set[int], set[int]]:
        """The suspects, and who is malicious."""
        rng = np.random.default_rng([seed, *b"suspicion"])
        table, parts = self.deal(rng)
        chosen = RunSettings(
            model=model,
            nodes=len(parts),
            rounds=self.rounds,
            evaluate_every=self.rounds,
            malicious=self.malicious,
            malicious_attack=self.attack,
            strategy="robust" if self.malicious else "fedavg",
            seed=seed,
        )
        malicious = malicious_numbers(chosen, len(parts))
        nodes = InMemory(chosen, table, [trained_on(rows, rng) for rows in parts], malicious, rng)
        done = Rounds(chosen, nodes.participants, nodes).run()
        return {entry["node"] for entry in done.suspects}, set(malicious)


def trained_on(rows: IndexArray, rng: Rng) -> IndexArray:
    """The rows of a node but for those it would keep for testing."""
    return np.sort(rng.choice(rows, len(rows) - len(rows) // 5, replace=False))


class InMemory:
    """The nodes of a run, and the way to them (:class:`fedanon.learning.rounds.Transport`)."""

    def __init__(
        self, settings: RunSettings, table: Table, parts: list[IndexArray], malicious: list[int], rng: Rng
    ) -> None:
        encoding, labels, honest = Encoding.from_schema(table.schema), target(table, table.schema), make_model(settings)
        features, attack = encoding.encode_table(table), MALICIOUS_ATTACKS[settings.malicious_attack]()
        false = MaliciousModel(honest=honest, attack=attack, trigger=Trigger({}))
        self._data = [FixedRows(features[rows], labels[rows]) for rows in parts]
        self._models = [false if number in malicious else honest for number in range(len(parts))]
        self._states = [LocalState() for _ in parts]
        self._rng = rng
        self.participants = Participants()
        for number, rows in enumerate(parts):
            self.participants.admit(number, number, NodeFacts("", "", encoding.width, len(rows), 0, {}))

    def train(self, number: int, nodes: Sequence[int], model: Aggregator) -> list[Reply]:
        """The updates of all."""
        return [Reply(node, self._update(number, node, model), lambda: ({}, 0)) for node in nodes]

    def _update(self, number: int, node: int, model: Aggregator) -> Callable[[], tuple[Any, Any, Any]]:
        update = self._models[node].train(
            model.pending_updates((node, "train")),
            self._data[node],
            round_number=number,
            rng=self._rng,
            state=self._states[node],
        )
        return lambda: (number, update.n_examples, update.parameters)

    def evaluate(self, number: int, nodes: Sequence[int], model: Aggregator) -> list[Reply]:
        """Nobody's: what counts is who is named."""
        return []


def adult(rows: int, nodes: int, alpha: float | None = None) -> Callable[[Rng], Dealt]:
    """Some rows of Adult, dealt out evenly or with labels by Dirichlet(alpha)."""

    def deal(rng: Rng) -> Dealt:
        table = load_once("adult")
        table = table.select_rows(np.sort(rng.choice(len(table.frame), rows, replace=False)))
        if alpha is None:
            return table, partition.iid(table, nodes, rng)
        return table, partition.dirichlet(table, nodes, None, alpha, rng, at_least=FEWEST)

    return deal


def by_column(dataset: str, column: str) -> Callable[[Rng], Dealt]:
    """All rows of a data set, by the values of a column; only splits and training differ between runs."""

    def deal(_rng: Rng) -> Dealt:
        table = load_once(dataset)
        return table, partition.by_column(table, column)

    return deal


@lru_cache
def load_once(dataset: str) -> Table:
    """A data set, or the first stay of everyone in the demo of eICU."""
    return eicu() if dataset == "eicu" else load(dataset)


def eicu() -> Table:
    """Age, sex and ethnicity, whether the person left the hospital alive, and which hospital, of which region."""
    folder = need("eicu_demo/patient.csv.xz", dataset="eicu").parent
    stays, hospitals = (pd.read_csv(folder / f"{name}.csv.xz", dtype=str) for name in ("patient", "hospital"))
    stays = stays.merge(hospitals, on="hospitalid").drop_duplicates("uniquepid")
    stays = stays.dropna(subset=["gender", "age", "hospitaldischargestatus"]).fillna("unknown")
    stays = stays[stays.groupby("hospitalid").transform("size") >= FEWEST].reset_index(drop=True)
    stays["age"] = stays["age"].replace("> 89", "90")  # top-coded
    kept = ["age", "gender", "ethnicity", "hospitaldischargestatus", "region", "hospitalid"]
    known = {name: {"type": "categorical", "values": sorted(set(stays[name]))} for name in kept[1:]}
    age = {"type": "numeric", "range": [0, 120], "integer": True, "role": "quasi_identifying"}
    attributes: dict[str, Any] = {"age": age, **known}
    for name in ("gender", "ethnicity"):
        attributes[name]["role"] = "quasi_identifying"
    schema = Schema.from_dict({"name": "eicu", "target": "hospitaldischargestatus", "attributes": attributes})
    return Table.from_frame(stays[kept], schema)


HONEST = {
    "heart, 4 sites": Setting(by_column("heart", "site"), rounds=6),
    "eicu, 5 regions": Setting(by_column("eicu", "region")),
    "eicu, hospitals": Setting(by_column("eicu", "hospitalid")),
    "adult, 10 nodes, iid": Setting(adult(4_000, 10)),
    "adult, 10 nodes, dirichlet 0.1": Setting(adult(6_000, 10, 0.1)),
    "adult, 10 nodes, dirichlet 0.3": Setting(adult(6_000, 10, 0.3)),
    "adult, 100 nodes, iid": Setting(adult(4_000, 100), rounds=3),
    "adult, 1,000 nodes, iid": Setting(adult(10_000, 1_000), rounds=3, models=("lr",)),
}
MALICIOUS = {
    f"3 {attack} of 10 nodes, {dealt}": Setting(adult(30_000, 10, alpha), 6, malicious=3, attack=attack)
    for dealt, alpha in (("iid", None), ("dirichlet 0.5", 0.5))
    for attack in ("sign_flip", "scale", "label_flip", "gaussian")
}


def watch_rounds() -> list[BoolArray]:
    """Which updates are unlike the others, of every round that is compared from now on."""
    measure, seen = suspicion.unlikeness, []

    def watched(*given: Any) -> FloatArray:
        scores = measure(*given)
        seen.append(scores > suspicion.UNLIKE)
        return scores

    suspicion.unlikeness = watched
    return seen


def measure(setting: Setting, model: str, seeds: range, seen: list[BoolArray]) -> str:
    """The cells of a line: runs that name an honest node, malicious nodes named, rounds with any update unlike."""
    seen.clear()
    found = [setting.run(model, seed) for seed in seeds]
    wrong = sum(bool(named - malicious) for named, malicious in found)
    right, all_malicious = (sum(map(len, sets)) for sets in ([n & m for n, m in found], [m for _, m in found]))
    flagged = "" if all_malicious else f"{sum(map(any, seen))} of {len(seen)}" if seen else "not compared"
    return f"{wrong} of {len(seeds)} | {f'{right} of {all_malicious}' if all_malicious else ''} | {flagged}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first run")
    parser.add_argument("--models", nargs="*", default=["lr", "xgb"])
    parser.add_argument("--only", nargs="*", help="settings whose names hold any of these texts")
    given = parser.parse_args()
    logging.getLogger("fedanon").setLevel(logging.ERROR)
    seen, seeds = watch_rounds(), range(given.first, given.first + given.runs)
    print("| setting | model | runs that name an honest node | malicious nodes named | rounds that find one unlike |")
    print("|---|---|---|---|---|")
    for name, setting in (HONEST | MALICIOUS).items():
        if given.only and not any(text in name for text in given.only):
            continue
        for model in setting.models:
            if model in given.models:
                print(f"| {name} | `{model}` | {measure(setting, model, seeds, seen)} |", flush=True)


if __name__ == "__main__":
    main()
