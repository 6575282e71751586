"""Checks of anonymizers: what a method must keep on every table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedanon.anonymizers.base import Anonymizer, KAnonymizer
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.metrics.information_loss import truthfulness
from fedanon.release.release import Release
from fedanon.testing.examples import check_settings, example_tables, expect


def check_anonymizer(
    anonymizer: Anonymizer, table: Table | None = None, *, seed: int = 0, may_refuse: bool = False
) -> Release | None:
    """Raise AssertionError unless a method keeps what every method must.

    The table stays as it is; the same seed gives the same release; rows keep their index and columns their order;
    published cells hold the true values if the method says so; every class has at least k people, counted here anew
    from the published text; other rows can be recoded; without ``table`` also that the order of the rows does not
    matter, unless the method says it does, and that settings are documented.

    >>> from fedanon.anonymizers import Mondrian
    >>> check_anonymizer(Mondrian(k=3))

    Parameters
    ----------
    anonymizer : the method with its settings.
    table : to be published; None for small tables of every kind.
    seed : of the method.
    may_refuse : whether the method may refuse a table with ConfigError or InfeasibleError. A method that claims k must
        refuse a table of fewer than k people, and no other.

    Returns
    -------
    The release of ``table``; None if it was refused, or no table was given.
    """
    if table is not None:
        return _check_on(anonymizer, table, seed, may_refuse=may_refuse)
    check_settings(anonymizer)
    expect(getattr(anonymizer, "name", ""), f"{type(anonymizer).__name__} needs a name.")
    published = 0
    for example in example_tables(numeric_only=anonymizer.numeric_only).values():
        published += _check_on(anonymizer, example, seed, may_refuse=may_refuse) is not None
        if not anonymizer.row_order_matters and not may_refuse:
            check_row_order(anonymizer, example, seed=seed)
    expect(published, f"The method {anonymizer.name!r} refuses every example table: choose settings that suit them.")
    return None


def _check_on(anonymizer: Anonymizer, table: Table, seed: int, *, may_refuse: bool) -> Release | None:
    name, k = anonymizer.name, getattr(anonymizer, "k", 0)
    before, codes = table.frame.copy(), table.codes.copy()
    try:
        release = anonymizer.anonymize(table, rng=seed)
    except InfeasibleError:
        expect(may_refuse or table.n_units < k, f"The method {name!r} refuses a table of enough people.")
        return None
    except ConfigError:
        if not may_refuse:
            raise
        return None
    expect(table.n_units >= k or may_refuse, f"The method {name!r} must refuse fewer people than k={k}.")
    _same(table.frame, before, f"The method {name!r} changes the table.")
    expect(np.array_equal(table.codes, codes), f"The method {name!r} changes the codes of the table.")
    published = release.to_frame()
    again = anonymizer.anonymize(table, rng=seed).to_frame()
    _same(published, again, f"The method {name!r} publishes something else with the same seed.")
    expect(published.index.equals(table.frame.index), f"The method {name!r} changes the index.")
    expect(list(published.columns) == list(table.frame.columns), f"The method {name!r} changes the columns.")
    expect(release.provenance.method == name, f"The provenance of a release by {name!r} names another method.")
    if anonymizer.for_table(table).truthful:
        expect(
            truthfulness(table, release) == 1.0,
            f"The method {name!r} says it is truthful, but a published cell does not hold the true value.",
        )
    _check_claim(anonymizer, release, table, published)
    half = table.select_rows(np.arange(0, len(table), 2))
    expect(len(release.recode(half).to_frame()) == len(half), f"Rows recoded by {name!r} are lost.")
    return release


def _check_claim(anonymizer: Anonymizer, release: Release, table: Table, published: pd.DataFrame) -> None:
    name, claim = anonymizer.name, anonymizer.claim()
    expect((release.claim is None) == (claim is None), f"A release by {name!r} does not carry the claim of the method.")
    if isinstance(anonymizer, KAnonymizer):
        expect(claim is not None, f"The method {name!r} has a k, but claims nothing.")
        smallest = _smallest_class(release, table, published)
        expect(
            smallest >= anonymizer.k, f"The method {name!r} publishes {smallest} people alike, not k={anonymizer.k}."
        )


def _smallest_class(release: Release, table: Table, published: pd.DataFrame) -> int:
    """An independent count: group the published text, count rows or people."""
    quasi = [attribute.name for attribute in table.schema.quasi_identifiers]
    people = pd.Series(table.person_of_row, index=published.index)
    kept = ~release.suppressed
    if not kept.any():
        return len(table)
    groups = people[kept].groupby([published.loc[kept, name] for name in quasi], dropna=False)
    return int(groups.nunique().min())


def check_row_order(anonymizer: Anonymizer, table: Table, *, seed: int = 0) -> None:
    """Raise AssertionError if a table whose rows are shuffled is published otherwise.

    Tables of too few people for the method, and of people with several rows, are not looked at.

    >>> from fedanon.anonymizers import Mondrian
    >>> from fedanon.testing import example_table
    >>> check_row_order(Mondrian(k=3), example_table())
    """
    if table.n_units < max(2, getattr(anonymizer, "k", 0)) or table.persons is not None:
        return
    quasi = [attribute.name for attribute in table.schema.quasi_identifiers]
    shuffled = table.select_rows(np.random.default_rng(seed).permutation(len(table)))
    first, second = (
        anonymizer.anonymize(rows, rng=seed).to_frame()[quasi].sort_values(quasi).reset_index(drop=True)
        for rows in (table, shuffled)
    )
    message = "depends on the order of the rows: sort them first, or set row_order_matters."
    _same(first, second, f"A release by {anonymizer.name!r} {message}")


def _same(frame: pd.DataFrame, other: pd.DataFrame, message: str) -> None:
    try:
        pd.testing.assert_frame_equal(frame, other)
    except AssertionError as difference:
        raise AssertionError(f"{message}\n{difference}") from None
