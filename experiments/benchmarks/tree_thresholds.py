"""Split thresholds that equal a raw value, for every k-anonymous method: where xgboost puts them, and as sent.

    .venv/bin/python experiments/benchmarks/tree_thresholds.py [--k 10] [--rows 2000]

Prints a table in Markdown. Methods that take numbers only are tried on `adult_numeric`, all others on `adult`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import fields

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, KAnonymizer
from fedanon.attacks.context import AttackContext
from fedanon.attacks.tree_leakage import TreeLeakage
from fedanon.datasets import load

#: searches stop early: what is looked at are the trees
SHORT = {"iterations": 20_000, "generations": 3}


def methods(k: int) -> Iterator[Anonymizer]:
    """Raw rows, then every method that claims k."""
    yield ANONYMIZERS["identity"]()
    for method in (ANONYMIZERS[name] for name in ANONYMIZERS):
        if issubclass(method, KAnonymizer):
            known = {entry.name for entry in fields(method)}
            yield method(k=k, **{name: value for name, value in SHORT.items() if name in known})


def shares(anonymizer: Anonymizer, rows: int) -> list[float]:
    """The share where xgboost puts the thresholds, and the share as sent."""
    table = load("adult_numeric" if anonymizer.numeric_only else "adult").select_rows(range(rows))
    context = AttackContext(table, anonymizer.anonymize(table, rng=0), anonymizer)
    attacks = [TreeLeakage(rounds=10, nodes=2, thresholds=place) for place in ("values", "between")]
    return [attack.run(context, context.rng("tree_leakage")).rate for attack in attacks]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rows", type=int, default=2000)
    given = parser.parse_args()
    print("| method | at values | as sent |\n|---|---|---|")
    for anonymizer in methods(given.k):
        at_values, sent = shares(anonymizer, given.rows)
        print(f"| `{anonymizer.name}` | {at_values:.1%} | {sent:.1%} |", flush=True)


if __name__ == "__main__":
    main()
