"""What every attack on releases keeps, whatever it is: see :func:`fedanon.testing.check_attack`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Finding
from fedanon.attacks.context import AttackContext
from fedanon.data.cells import Intervals, Nodes
from fedanon.testing import check_attack
from tests.attacks.contexts import context_of

NAMES = [*(name for name, attack in ATTACKS.items() if attack.target == "release"), "composition_federation"]
CONTEXTS = {
    "adult": lambda: context_of("adult", rows=600, k=10),
    "adult with l": lambda: context_of("adult", rows=600, k=3, require="l=2:income"),
    "raw": lambda: context_of("adult", rows=300, method="identity"),
    "randhie": lambda: context_of("randhie", rows=600, k=5),
    "means": lambda: context_of("adult_numeric", rows=400, method="mdav", k=5),
    "missing": lambda: context_of("nhanes", rows=400, k=5),
    "file": lambda: replace(context_of("adult", rows=600, k=10), anonymizer=None),
}
#: attacks that make releases of their own
NEEDS_METHOD = {
    "composition",
    "composition_federation",
    "inference",
    "intersection",
    "linkability",
    "minimality",
    "singling_out",
}


def _run(name: str, context: AttackContext) -> Finding:
    return ATTACKS[name]().run(context, context.rng(name))


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", NAMES)
def test_rates_are_rates_and_seeds_decide(name: str, context: str) -> None:
    here = CONTEXTS[context]()
    found = check_attack(ATTACKS[name](), here)
    assert (found is None) == _lacks(name, context)


def _lacks(name: str, context: str) -> bool:
    """Whether the context lacks what the attack needs, looked up in the release itself."""
    if name == "minimality":
        return context != "adult with l"
    if context == "file":
        return name in NEEDS_METHOD
    cells = CONTEXTS[context]().release.cells.values()
    if name == "downcoding":
        return not any((cell.nodes >= cell.hierarchy.n_leaves).any() for cell in cells if isinstance(cell, Nodes))
    if name == "interval_ends":
        return not any((cell.low < cell.high).any() for cell in cells if isinstance(cell, Intervals))
    return False


@pytest.mark.parametrize("name", NAMES)
def test_contract_on_the_examples(name: str) -> None:
    check_attack(ATTACKS[name]())


@pytest.mark.parametrize("name", ["record_linkage", "linkability", "singling_out", "inference", "numeric_disclosure"])
def test_raw_rows_are_not_safer_than_anonymized_ones(name: str) -> None:
    raw = _run(name, context_of("adult", rows=2000, method="identity"))
    anonymized = _run(name, context_of("adult", rows=2000, k=10))
    assert raw.rate - raw.baseline > anonymized.rate - anonymized.baseline
