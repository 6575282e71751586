"""Homogeneity and background knowledge: what the class of a person reveals of their sensitive value.

Knows: the quasi-identifiers of a person, hence their class. Does: reads off the only value of the class
(:class:`Homogeneity`), or guesses its most common one (:class:`BackgroundKnowledge`). Judged by: the share of people
whose value is certain, or guessed right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.context import AttackContext
from fedanon.attacks.sensitive_values import ClassValues, SensitivePair, sensitive_pair
from fedanon.data.groups import Groups
from fedanon.fields import parameter
from fedanon.types import FloatArray, IndexArray


@ATTACKS.register("homogeneity")
@dataclass(frozen=True, kw_only=True)
class Homogeneity(Attack):
    r"""Share of the published people whose class holds one single sensitive value (Machanavajjhala et al. 2007).

    Their value is certain, although no one is linked to a record. Without the release no value would be certain, so
    guessing is no baseline here; it is what classes of the same sizes give if they are filled at random:

    .. math:: \frac1n \sum_c n_c \sum_v \binom{N_v}{n_c} \Big/ \binom{n}{n_c}

    with :math:`N_v` of the n people having value v and :math:`n_c` people in class c.
    """

    title = "Homogeneity"
    meaning = "A sensitive value is certain for everyone in a class, since all in it share it."
    target = "release"

    column: str = parameter("", help="sensitive column; the schema's first by default")

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Count the people in classes with one value."""
        classes = context.release.classes
        pair = sensitive_pair(context.table, context.release, self.column)
        known = pair.by_class(classes)
        alone = known.distinct == 1
        certain = pair.hits(classes, alone[known.labels].astype(np.float64))
        baseline = _expected_by_chance(known, classes.sizes)
        details = {
            "classes": float(classes.count),
            "classes_with_one_value": float(alone.sum()),
            "largest_class_with_one_value": float(classes.sizes[alone].max(initial=0)),
            "values": float(pair.size),
        }
        labels = classes.labels[~classes.suppressed]
        return Finding.from_tries(certain, baseline, clusters=labels, details=details)


def _expected_by_chance(known: ClassValues, sizes: IndexArray) -> float:
    """Compute the expected share of people in classes with one value if the published values were dealt out anew."""
    have = np.bincount(known.codes, weights=known.counts)
    n = int(have.sum())
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    distinct, people = np.unique(sizes, return_inverse=True)
    share = np.zeros(len(distinct))
    for count in have[have > 0].astype(np.int64):
        fits = distinct <= count
        small = distinct[fits]
        ways = log_factorial[count] - log_factorial[count - small] - log_factorial[n] + log_factorial[n - small]
        share[fits] += np.exp(ways)
    return float(min((share[people] * sizes).sum() / n, 1.0))


@ATTACKS.register("background_knowledge")
@dataclass(frozen=True, kw_only=True)
class BackgroundKnowledge(Attack):
    r"""Share of the published people whose sensitive value is the most common one of their class.

    .. math:: \frac1n \sum_c \max_v n_{cv}

    The attacker knows the quasi-identifiers of the person, so the class, and draws among equally common values.
    Baseline: the most common value of the whole release. Where there are more than two values, the details report the
    same for an attacker who also knows one value that the person does not have, any of the others with equal chance
    (Machanavajjhala et al. 2007, instance-level background knowledge).
    """

    title = "Background knowledge"
    meaning = "The sensitive value of a person is guessed from the most common one of their class."
    target = "release"

    column: str = parameter("", help="sensitive column; the schema's first by default")

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Guess for everyone."""
        classes = context.release.classes
        pair = sensitive_pair(context.table, context.release, self.column)
        everyone = Groups.from_labels(np.where(classes.suppressed, -1, 0))
        details = {"values": float(pair.size)}
        if pair.size > 2:
            details["rate_knowing_one_not"] = float(_hits(pair, classes, without_one=True).mean())
            details["baseline_knowing_one_not"] = float(_hits(pair, everyone, without_one=True).mean())
        labels = classes.labels[~classes.suppressed]
        baseline = float(_hits(pair, everyone).mean())
        return Finding.from_tries(_hits(pair, classes), baseline, clusters=labels, details=details)


def _hits(pair: SensitivePair, classes: Groups, *, without_one: bool = False) -> FloatArray:
    known: ClassValues = pair.by_class(classes)
    chances = known.guess_chance_without_one(pair.size) if without_one else known.guess_chance
    return np.asarray(pair.hits(classes, chances), dtype=np.float64)
