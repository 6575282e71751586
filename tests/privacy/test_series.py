"""What several releases leave possible: the claim against an attacker who tries all worlds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from fedanon.privacy.exchanges import possible_values
from fedanon.privacy.series import Cohort, History, Stay

from .worlds import possible

VALUES = (("flu",), ("gout",), ("asthma",))


def history(cohort: Cohort, releases: int, least: int = 2) -> History:
    return History(("illness",), {"illness": least}, VALUES, (cohort,), releases)


def brute_force(cohorts: Sequence[Cohort], releases: int) -> dict[str, set[object]]:
    groups = []
    for release, cohort in product(range(releases), cohorts):
        shown = [stay for stay in cohort if stay.is_shown(release)]
        if shown:
            groups.append((frozenset(stay.person for stay in shown), Counter[object](stay.value for stay in shown)))
    return possible(groups)


def test_who_leaves_alone_is_exposed_by_the_difference() -> None:
    first = (Stay("a", 0, 0), Stay("b", 0, 0), Stay("c", 1, 0))
    assert history(first, 1).exposed_people() == 0
    gone = (Stay("a", 0, 0, stop=1), *first[1:])
    assert history(gone, 2).exposed_people() == 1
    assert brute_force([gone], 2)["a"] == {0}


def test_a_newcomer_with_the_value_of_a_leaver_exposes_no_one() -> None:
    cohort = (Stay("a", 0, 0, stop=1), Stay("b", 0, 0), Stay("c", 1, 0), Stay("d", 0, 1))
    assert history(cohort, 2).exposed_people() == 0
    other = (*cohort[:3], Stay("d", 1, 1))
    assert history(other, 2).exposed_people() == 2  # the leaver and the newcomer, by the counts


def test_a_counterfeit_row_keeps_the_leaver_safe() -> None:
    left = Stay("a", 0, 0).leave(1)
    kept = Stay(left.person, left.value, left.start, None, left.away)
    cohort = (kept, Stay("b", 0, 0), Stay("c", 1, 0))
    assert history(cohort, 2).exposed_people() == 0
    assert history(cohort, 2).counterfeits(1) == [(0, ("flu",))]
    assert history(cohort, 2).until(1).counterfeits(0) == []
    assert kept.come_back(2).is_real(2)
    assert not kept.come_back(2).is_real(1)


def test_nobody_may_be_shown_twice_in_one_release_or_with_two_values() -> None:
    one = (Stay("a", 0, 0, stop=2), Stay("b", 1, 0))
    for other, split in ((Stay("a", 0, 1), 1), (Stay("a", 1, 2), 1), (Stay("a", 0, 2), 0)):
        two = (other, Stay("c", 1 - other.value, other.start))
        assert History(("illness",), {"illness": 2}, VALUES, (one, two), 3).split_people() == split


def test_who_changes_cohort_needs_another_value_in_both() -> None:
    """a goes from one cohort to the other, where d leaves; in the first, e comes in their place."""
    one = (Stay("a", 0, 0, stop=1), Stay("b", 0, 0), Stay("c", 1, 0), Stay("e", 0, 1))
    two = (Stay("d", 0, 0, stop=1), Stay("f", 1, 0), Stay("g", 0, 0), Stay("a", 0, 1))
    assert History(("illness",), {"illness": 2}, VALUES, (one, two), 2).exposed_people() == 2  # d and e count on a
    assert {p for p, values in brute_force([one, two], 2).items() if len(values) < 2} == set()
    alike = (*one, Stay("h", 0, 0, stop=1)), (*two, Stay("i", 0, 1))
    assert History(("illness",), {"illness": 2}, VALUES, alike, 2).exposed_people() == 0
    assert {len(values) for values in brute_force(alike, 2).values()} == {2}


def test_nobody_counts_on_someone_who_came_back() -> None:
    """d came when a left; once a is back, a and d are both exposed by the counts."""
    cohort = (Stay("a", 0, 0, stop=1), Stay("b", 1, 0), Stay("c", 0, 0), Stay("d", 0, 1))
    assert history(cohort, 2).exposed_people() == 0
    back = (*cohort, Stay("a", 0, 2))
    assert history(back, 3).exposed_people() == 2
    assert brute_force([back], 3)["a"] == {0}


@st.composite
def series(draw: st.DrawFn) -> History:
    """Two cohorts; some people come back to theirs, or go to the other."""
    releases = draw(st.integers(1, 4))
    cohorts: tuple[list[Stay], list[Stay]] = ([], [])
    for person in range(draw(st.integers(2, 7))):
        value, start = draw(st.integers(0, 2)), draw(st.integers(0, releases - 1))
        stop = draw(st.one_of(st.none(), st.integers(start + 1, releases)))
        stop = None if stop == releases else stop
        cohort = cohorts[draw(st.integers(0, 1))]
        cohort.append(Stay(f"p{person}", value, start, stop))
        if stop is not None and draw(st.booleans()):
            cohorts[draw(st.integers(0, 1))].append(Stay(f"p{person}", value, draw(st.integers(stop, releases - 1))))
    return History(("illness",), {"illness": 2}, VALUES, (tuple(cohorts[0]), tuple(cohorts[1])), releases)


@given(series())
def test_nobody_is_called_safe_who_is_not(history: History) -> None:
    true = brute_force(history.cohorts, history.releases)
    exposed = sum(len(values) < 2 for values in true.values())
    assert history.exposed_people() >= exposed
    if history.exposed_people() == 0:
        assert all(len(values) >= 2 for values in true.values())


@given(series())
def test_with_two_values_and_no_one_who_came_back_the_judgement_is_exact(history: History) -> None:
    stays = [stay for cohort in history.cohorts for stay in cohort]
    single = {stay.person: Stay(stay.person, min(stay.value, 1), stay.start, stay.stop) for stay in stays}
    arcs = {p: [(s.value, s.start, history.releases if s.stop is None else s.stop)] for p, s in single.items()}
    found = possible_values(arcs)
    assert {p: set(values) for p, values in found.items()} == brute_force([tuple(single.values())], history.releases)
