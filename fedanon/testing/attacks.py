"""Checks of attacks: a rate is a rate, the seed decides, and no message shows a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fedanon.anonymizers import Anonymizer, Identity, Mondrian
from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.context import AttackContext
from fedanon.data.table import Table
from fedanon.errors import FedanonError, NotApplicableError
from fedanon.testing.examples import check_settings, example_table, expect


def check_attack(attack: Attack, context: AttackContext | None = None) -> Finding | None:
    """Raise AssertionError unless an attack keeps what every attack must.

    The rate and the baseline are shares, the rate lies in its interval, something was tried, and the same seed finds
    the same; the table stays as it is. What cannot be tried is refused with NotApplicableError, and the message of an
    error shows no cell. Without ``context`` also that the attack explains itself, and what it makes of two people.

    >>> from fedanon.attacks.record_linkage import RecordLinkage
    >>> check_attack(RecordLinkage())

    Parameters
    ----------
    attack : with its settings.
    context : on which it is tried; None for small ones: raw rows, an anonymized release, one that came as a file.

    Returns
    -------
    What the attack found in ``context``; None where it does not apply, or no context was given.
    """
    if context is not None:
        return _check_on(attack, context)
    check_settings(attack)
    name = type(attack).__name__
    expect(getattr(attack, "title", ""), f"{name} needs a title.")
    meaning = getattr(attack, "meaning", "")
    plain = meaning.endswith(".") and not any(sign.isdigit() for sign in meaning)
    expect(plain, f"The meaning of {name} must be a sentence without numbers.")
    expect(attack.target in ("release", "model", "federation"), f"{name} attacks a release, a model or a federation.")
    for example in _example_contexts():
        _check_on(attack, example)
    _check_two_people(attack)
    return None


def _example_contexts() -> Iterator[AttackContext]:
    for method, table in (
        (Mondrian(k=3), example_table(200)),
        (Mondrian(k=3), example_table(120, several_rows=True, seed=1)),
        (Mondrian(k=3), example_table(120, missing=True, seed=2)),
        (Identity(), example_table(120, seed=3)),
    ):
        context = _context(method, table)
        yield context
    yield replace(context, anonymizer=None)


def _context(method: Anonymizer, table: Table) -> AttackContext:
    return AttackContext(table, method.anonymize(table, rng=0), method)


def _check_on(attack: Attack, context: AttackContext, cells: Sequence[object] = ()) -> Finding | None:
    """``cells`` are those of the table, where it is so small that an attack may refuse it with any typed error."""
    name = type(attack).__name__
    before = context.table.frame.copy()
    try:
        found = attack.run(context, context.rng(name))
    except FedanonError as error:
        shown = [cell for cell in cells if str(cell) in str(error)]
        expect(not shown, f"{name}: the message of an error shows a cell.")
        expect(cells or isinstance(error, NotApplicableError), f"{name} must refuse with NotApplicableError: {error}")
        return None
    expect(0 <= found.baseline <= 1, f"{name}: the baseline must be a share.")
    low, high = found.interval
    expect(0 <= low <= found.rate <= high <= 1, f"{name}: the rate must be a share, and lie in its interval.")
    expect(found.n > 0, f"{name}: nothing was tried; raise NotApplicableError where nothing can be.")
    again = attack.run(context, context.rng(name))
    expect(again == found, f"{name} finds something else with the same seed.")
    expect(context.table.frame.equals(before), f"{name} changes the table.")
    return found


def _check_two_people(attack: Attack) -> None:
    """Attacked or refused, but without a word about them."""
    cells: dict[str, Sequence[str | float]] = {
        "age": [31, 47],
        "ward": ["cardiac", "cancer"],
        "illness": ["sarcoidosis", "gout"],
        "cost": [112.5, 871.25],
    }
    pair = example_table(2)
    table = Table.from_frame(pair.frame.assign(**cells), pair.schema)
    for method in (Identity(), Mondrian(k=2)):
        _check_on(attack, _context(method, table), [cell for values in cells.values() for cell in values])
