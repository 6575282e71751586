"""Minimality: a method that merges classes only where it must reveals where it had to.

Knows: the quasi-identifiers of everyone, and the method with its parameters. Does: runs the method without what is
required beyond k, sees which groups were merged, and updates beliefs: one of the groups must have broken the
requirement. Judged by: the belief in the values that people with rarer values really have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.anonymizers.base import KAnonymizer
from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.context import AttackContext
from fedanon.attacks.sensitive_values import SensitivePair, sensitive_pair
from fedanon.data.groups import Groups
from fedanon.errors import NotApplicableError
from fedanon.fields import parameter
from fedanon.privacy.base import PrivacyModel, Rows
from fedanon.release.release import Release
from fedanon.types import FloatArray

#: how many rows are judged at once
ROWS_AT_ONCE = 200_000


@ATTACKS.register("minimality")
@dataclass(frozen=True, kw_only=True)
class Minimality(Attack):
    r"""How strongly the rarer sensitive values of a merged class are believed of those who have them.

    The attacker knows the quasi-identifiers of everyone and the method (Wong, Fu, Wang & Pei 2007), so runs it without
    what is required beyond k and sees which groups the release has merged. One of them must have broken the
    requirement. Of many random ways to deal out the values of the merged class to its people, those count in which one
    does:

    .. math:: \frac1n \sum_i P(s_i \mid \text{some group merged into } c(i) \text{ breaks the requirement})

    over the people of merged classes whose value :math:`s_i` is not the most common there. That is also how often
    someone who names people for such a value, drawn by this belief, is right. Baseline: the share of the value in the
    merged class, which is the belief without the argument. Classes that are not unions of whole groups are skipped.
    """

    title = "Minimality"
    meaning = "That a class was merged, and with which, gives away more of a sensitive value than the class itself."
    target = "release"

    draws: int = parameter(150, help="ways to deal out the values that are tried", at_least=1)

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Find the merged classes, deal out their values, compare beliefs."""
        model, before = _classes_without_requirement(context)
        classes = context.release.classes
        pair = sensitive_pair(context.table, context.release, str(getattr(model, "column", "")))
        merged = find_merged_classes(classes, before)
        tried = np.flatnonzero(np.append(merged, False)[classes.labels])
        known = pair.by_class(classes)
        rarer = ~known.modal[known.pair_of[tried]]
        if not rarer.any():
            raise NotApplicableError("No class was merged to keep what is required, or none holds a rarer value.")
        share = (known.counts / classes.sizes[known.labels])[known.pair_of[tried]]
        belief = _estimate_belief(context, model, before, pair, tried, self.draws, rng)
        # no draw broke the requirement: the class is all there is to go by
        belief = np.where(np.isnan(belief), share, belief)[rarer]
        details = {"merged_classes": float(merged.sum()), "people_in_merged_classes": float(len(tried))}
        clusters = classes.labels[tried][rarer]
        return Finding.from_tries(belief, float(share[rarer].mean()), clusters=clusters, details=details)


def _classes_without_requirement(context: AttackContext) -> tuple[PrivacyModel, Groups]:
    """Return the first model required beyond k, and the classes the method makes without any."""
    method = context.anonymizer
    if not isinstance(method, KAnonymizer) or not method.required:
        raise NotApplicableError("It needs a method with a requirement beyond k, such as l=2:COLUMN.")
    model = next((m for m in method.required if hasattr(m, "column")), None)
    if model is None:
        raise NotApplicableError("What is required beyond k is not about a sensitive column.")
    seed = context.release.provenance.seed
    plain: Release = replace(method.for_table(context.table), require="").anonymize(
        context.table, rng=context.seed if seed is None else seed
    )
    return model, plain.classes


def find_merged_classes(after: Groups, before: Groups) -> NDArray[np.bool_]:
    """Find the classes that are unions of several earlier groups, each of which is whole in one class."""
    torn = before.distinct(after.labels) > 1
    lost = np.append(torn, True)[before.labels]
    shown = ~after.suppressed
    whole = np.bincount(after.labels[shown], weights=lost[shown], minlength=after.count) == 0
    return np.asarray(whole & (after.distinct(before.labels) > 1))


def _estimate_belief(
    context: AttackContext,
    model: PrivacyModel,
    before: Groups,
    pair: SensitivePair,
    tried: NDArray[np.int64],
    draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Estimate how often each of the rows ``tried`` keeps its value among draws that give its class a reason to be.

    NaN where no draw gives one.
    """
    values, own = context.release.passthrough[pair.name].to_numpy(), pair.published[tried]
    labels = context.release.classes.labels[tried]
    at_once = max(1, ROWS_AT_ONCE // len(values))
    reasons, kept = np.zeros((2, len(tried)))
    for start in range(0, draws, at_once):
        sources = [shuffle_within(labels, rng) for _ in range(min(at_once, draws - start))]
        dealt = np.tile(values, (len(sources), 1))
        dealt[:, tried] = values[tried][np.stack(sources)]
        for source, broken in zip(
            sources, _find_broken(context, model, before, pair.name, dealt)[:, tried], strict=True
        ):
            reason = np.isin(labels, labels[broken])
            reasons += reason
            kept += reason & (own[source] == own)
    return np.where(reasons > 0, kept / np.maximum(reasons, 1), np.nan)


def _find_broken(
    context: AttackContext, model: PrivacyModel, groups: Groups, name: str, dealt: NDArray[Any]
) -> NDArray[np.bool_]:
    """Check whether the group of each row breaks the model, for each way (row of ``dealt``) to deal out the values.

    All ways are judged at once, as tables stacked on each other: the shares of values in all of them are those in one.
    """
    ways, n = dealt.shape
    persons = context.table.persons
    people = None if persons is None else _stack(persons, context.table.n_units, ways)
    rows = Rows(pd.DataFrame({name: dealt.ravel()}), context.table.schema, people)
    many = Groups(_stack(groups.labels, groups.count, ways).astype(np.int32), groups.count * ways)
    broken = ~model.evaluator(rows, ~many.suppressed).satisfied(many, dict)
    return np.append(broken, False)[many.labels].reshape(ways, n)


def _stack(numbers: NDArray[Any], count: int, copies: int) -> NDArray[Any]:
    """Repeat numbers so that every copy has its own; negative ones stay."""
    shift = count * np.arange(copies)[:, None]
    return np.where(numbers < 0, numbers, numbers + shift).ravel()


def shuffle_within(labels: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a permutation that moves rows only among those with their label."""
    source = np.empty(len(labels), dtype=np.int64)
    source[np.argsort(labels, kind="stable")] = np.lexsort((rng.random(len(labels)), labels))
    return source
