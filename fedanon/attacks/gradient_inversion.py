"""Gradient inversion: what the update of a logistic regression reveals of the rows behind it.

Knows: the first gradient of a batch, or what a node sends in its place; the labels of the batch; the marginals of the
table. Does: divides the gradient by that of the intercept, which for a single row is the row itself. Judged by: the
share of raw values, over people and columns, that are read off right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.context import AttackContext
from fedanon.attacks.learning import labels_of
from fedanon.data import partition
from fedanon.data.schema import Numeric
from fedanon.data.table import Table
from fedanon.errors import NotApplicableError
from fedanon.fields import parameter
from fedanon.models.base import LocalState
from fedanon.models.encoding import CategoricalColumn, Encoding
from fedanon.models.logistic_regression import LogisticRegression
from fedanon.models.target import binary_target
from fedanon.release.release import Release
from fedanon.types import BoolArray, FeatureArray, FloatArray, IndexArray, TargetArray

#: of coefficients and intercept
Gradient = tuple[FloatArray, float]

#: larger batches that are tried too
BATCHES = (8, 32)
#: nodes of a simulated federation, one of which sends the update whose zeros are read
NODES = 10
#: categories with fewer rows rest on few
FEW = 5
#: a number that is not whole is right within this share of its declared range
CLOSE = 1e-3
#: categories whose weights differ by less, relative to the largest, count as equally likely
LEVEL = 0.01


@ATTACKS.register("gradient_inversion")
@dataclass(frozen=True, kw_only=True)
class GradientInversion(Attack):
    r"""Share of the raw values that are read off the first gradient of a batch of published rows.

    The gradient of the mean log-loss is :math:`g_w = \frac1B \sum_i r_i x_i` and :math:`g_b = \frac1B \sum_i r_i` with
    the residuals :math:`r_i = p_i - y_i`, so

    .. math:: g_w / g_b = \sum_i r_i x_i / \sum_i r_i

    is the row itself if the batch is one row (Zhu et al. 2019, Geiping et al. 2020). In a larger batch numbers are read
    off that mean; at the first gradient people of the two labels push coefficients apart, so the category of a person
    is the one pushed most in the direction of their label. Rate: share of the batch's raw values, over people and
    columns, that are guessed right; baseline: the commonest value of every column.
    """

    title = "Gradient inversion"
    meaning = "Someone who sees the update of a logistic regression reads off the values of the people behind it."
    target = "model"

    batch: int = parameter(1, help="rows of a batch", at_least=1)
    tries: int = parameter(300, help="number of batches", at_least=1)

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Invert the gradients of random batches, and what a node would send."""
        labels_of(context.table)
        node = PublishedRows.from_release(context.table, context.release)
        if len(node.features) < self.batch:
            raise NotApplicableError(f"The release publishes fewer than the {self.batch} rows of a batch.")
        people = node.batches(self.batch, self.tries, rng)
        right = node.guessed(people, gradient)
        baseline = float(node.decoder.right(node.decoder.commonest, node.truth[people.ravel()]).mean())
        clusters = np.repeat(np.arange(len(people)), right.size // len(people))
        details = {"whole_records": float(right.all(axis=1).mean())}
        details |= _try_variants(node, self.tries, rng) | _read_presence(context)
        return Finding.from_tries(right.ravel().astype(float), baseline, clusters=clusters, details=details)


def _try_variants(node: PublishedRows, tries: int, rng: np.random.Generator) -> dict[str, float]:
    """Try other batches, what our model sends in place of a gradient, and the published rows themselves."""
    alone = node.batches(1, tries, rng)
    published = node.decoder.values(node.features[alone[:, 0]])
    details = {
        "rate_of_the_published_rows": float(node.decoder.right(published, node.truth[alone[:, 0]]).mean()),
        "rate_of_updates_on_one_row": float(node.guessed(alone, node.update).mean()),
    }
    for size in BATCHES:
        if len(node.features) >= size:
            people = node.batches(size, tries // size + 1, rng)
            details[f"rate_of_batches_of_{size}"] = float(node.guessed(people, gradient).mean())
    return details


def gradient(rows: FeatureArray, labels: TargetArray) -> Gradient:
    """Compute the gradient of the mean log-loss at zero, where every probability is one half."""
    residual = 0.5 - labels
    return residual @ rows / len(rows), float(residual.mean())


@dataclass(frozen=True, eq=False)
class PublishedRows:
    """What a node trains on, and the truth behind it.

    Parameters
    ----------
    features, labels : of the published rows.
    truth : values of the same people's raw rows, as the decoder writes them.
    decoder : of the encoding.
    """

    features: FeatureArray
    labels: TargetArray
    truth: FloatArray
    decoder: Decoder

    @classmethod
    def from_release(cls, table: Table, release: Release) -> PublishedRows:
        """Pair the rows that a release publishes with those of its table."""
        encoding = Encoding.from_schema(table.schema)
        decoder = Decoder(encoding, encoding.encode_table(table))
        truth = decoder.values(decoder.raw)[~release.suppressed]
        return cls(encoding.encode_release(release), binary_target(release, release.schema), truth, decoder)

    def batches(self, size: int, count: int, rng: np.random.Generator) -> IndexArray:
        """Draw disjoint random batches: numbers of rows, one batch per line."""
        people = rng.permutation(len(self.features))[: count * size]
        return people[: len(people) // size * size].reshape(-1, size)

    def guessed(self, people: IndexArray, sent: Callable[[FeatureArray, TargetArray], Gradient]) -> BoolArray:
        """Return which values of the people of every batch are guessed right, people x columns."""
        rows = [self._read(*sent(self.features[batch], self.labels[batch]), self.labels[batch]) for batch in people]
        return self.decoder.right(self.decoder.values(np.concatenate(rows)), self.truth[people.ravel()])

    def update(self, rows: FeatureArray, labels: TargetArray) -> Gradient:
        """Return what the federation's model sends, read as a gradient.

        On one row its steps move the coefficients along the row, the intercept by another amount. But the features of
        a categorical column sum to one, so their coefficients reveal the scale.
        """
        moved, intercept = update(rows, labels)
        category = self.decoder.categorical
        return -moved, float(-moved[category[0]].sum()) if category else -intercept

    def _read(self, slope: FloatArray, scale: float, labels: TargetArray) -> FloatArray:
        """Read the features of each person of a batch off its gradient; categories as weights of any scale."""
        towards = np.where(labels == 1, -1.0, 1.0)[:, None] * slope
        read = np.maximum(towards, 0.0)
        numeric = self.decoder.numeric
        middle = self.decoder.commonest[[a for a, _ in numeric]]
        read[:, [place for _, place in numeric]] = slope[[place for _, place in numeric]] / scale if scale else middle
        return read


@dataclass(frozen=True, eq=False)
class Batch:
    """Training rows as they are, in the form a model expects."""

    rows: FeatureArray
    target: TargetArray
    n_instances: int = 1

    def instance(self, round_number: int) -> int:
        """The only one."""
        return 0

    def features(self, round_number: int) -> FeatureArray:
        """All rows."""
        return self.rows


def update(rows: FeatureArray, labels: TargetArray) -> Gradient:
    """Compute how one round of the federation's model moves coefficients and intercept from zero."""
    model, rng = LogisticRegression(), np.random.default_rng(0)
    start = model.initial(rows.shape[1])
    sent = model.train(start, Batch(rows, labels), round_number=1, rng=rng, state=LocalState())
    coefficients, intercept = sent.parameters
    return coefficients, float(intercept[0])


def _read_presence(context: AttackContext) -> dict[str, float]:
    """Read off which categories a node has: a coefficient moves just where a published row may have its category."""
    table, release = context.table, context.release
    if context.anonymizer is not None:
        table = table.select_rows(partition.iid(table, min(NODES, table.n_units), context.rng("gradient"))[0])
        release = context.make_release(table, "gradient")
    node = PublishedRows.from_release(table, release)
    if not node.decoder.categorical or not len(node.features):
        return {}
    columns = np.concatenate([np.arange(place.start, place.stop) for place in node.decoder.categorical])
    moved = update(node.features, node.labels)[0][columns] != 0
    present = (node.decoder.raw[:, columns] > 0).any(axis=0)
    rows = (node.features[:, columns] > 0).sum(axis=0)
    return {
        "categories_known_present_or_absent": float(np.mean(moved == present)),
        "categories_resting_on_fewer_than_5_rows": float(np.mean((rows > 0) & (rows < FEW))),
    }


@dataclass(frozen=True, eq=False)
class Decoder:
    """Reads values off features; where several categories are equally likely, the commonest of the table is guessed.

    Parameters
    ----------
    encoding : how columns became features.
    raw : features of the raw table, whose marginals the attacker knows.
    """

    encoding: Encoding
    raw: FeatureArray

    @cached_property
    def places(self) -> list[slice]:
        """Where the features of every column are."""
        return places_of(self.encoding)

    @cached_property
    def numeric(self) -> list[tuple[int, int]]:
        """Number of every numeric column, and of its feature."""
        columns = enumerate(zip(self.encoding.attributes, self.places, strict=True))
        return [(i, place.start) for i, (attribute, place) in columns if isinstance(attribute, Numeric)]

    @cached_property
    def categorical(self) -> list[slice]:
        """Where the features of every categorical column are."""
        columns = zip(self.encoding.attributes, self.places, strict=True)
        return [place for attribute, place in columns if not isinstance(attribute, Numeric)]

    def values(self, rows: NDArray[np.floating]) -> FloatArray:
        """Read one value per column: the number of the category, or the number's place in the declared range."""
        return np.column_stack([self._value(rows[:, place], i) for i, place in enumerate(self.places)])

    @cached_property
    def commonest(self) -> FloatArray:
        """The value most people have, per column: the best guess without a gradient."""
        found = [np.unique(column, return_counts=True) for column in self.values(self.raw).T]
        return np.array([values[int(np.argmax(counts))] for values, counts in found])

    def right(self, guesses: FloatArray, truth: FloatArray) -> BoolArray:
        """Return which guesses are the true values."""
        return np.asarray(np.abs(guesses - truth) <= self._tolerances)

    @cached_property
    def _tolerances(self) -> FloatArray:
        return np.array([_tolerance(a) if isinstance(a, Numeric) else 0.0 for a in self.encoding.attributes])

    @cached_property
    def _shares(self) -> FloatArray:
        return np.asarray(self.raw.mean(axis=0), dtype=np.float64)

    def _value(self, weights: NDArray[np.floating], number: int) -> FloatArray:
        if isinstance(self.encoding.attributes[number], Numeric):
            return np.asarray(np.clip(weights[:, 0], 0.0, 1.0), dtype=np.float64)
        likely = weights >= (1 - LEVEL) * weights.max(axis=1, keepdims=True)
        shares = np.where(likely, self._shares[self.places[number]], -1.0)
        return np.asarray(np.argmax(shares, axis=1), dtype=np.float64)


def _tolerance(attribute: Numeric) -> float:
    return 0.5 / attribute.width if attribute.integer else CLOSE


def places_of(encoding: Encoding) -> list[slice]:
    """Find where the features of every column are."""
    widths = [1 if isinstance(a, Numeric) else len(CategoricalColumn(a).values) for a in encoding.attributes]
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for width, end in zip(widths, ends, strict=True)]
