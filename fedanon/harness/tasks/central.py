"""A classifier in one place: trained on a release of the whole table (figures 6.7 to 6.10), or fairly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.federated.sources import data_of, whole_table
from fedanon.fields import parameter
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import CellResult, MethodTask
from fedanon.models.centralized import CLASSIFIERS, fit_predict
from fedanon.models.encoding import Encoding
from fedanon.models.scores import classification_scores
from fedanon.models.target import binary_target
from fedanon.models.thesis_encoding import one_hot_published

TEST_SHARE = 0.3
#: of the thesis's split
SPLIT_SEED = 42

Parts = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


@TASKS.register("central")
@dataclass(frozen=True, kw_only=True)
class CentralTask(MethodTask):
    """Scores of a centralized classifier.

    ``as_published`` anonymizes everything, then splits, and encodes the published values, as the thesis's code did;
    ``corrected`` splits, anonymizes the training rows, and tests on raw rows with the schema's encoding.
    """

    model: str = parameter("xgb", help=f"classifier: {', '.join(CLASSIFIERS)}")
    protocol: Literal["corrected", "as_published"] = parameter("corrected", help="fair, or as the thesis's code")
    training_order: Literal["file", "shuffled"] = parameter(
        "file", help="order of the training rows, by which k-NN chooses among equal ones", optional=True
    )

    def run(self) -> CellResult:
        """Accuracy, precision, recall and F1, plain and as means over both classes."""
        parts = self._as_published() if self.protocol == "as_published" else self._corrected()
        train_features, train_target, test_features, test_target = parts
        if self.training_order == "shuffled":
            order = np.random.default_rng([self.seed, *b"order"]).permutation(len(train_target))
            train_features, train_target = train_features[order], train_target[order]
        labels, probability = fit_predict(self.model, train_features, train_target, test_features)
        scores = classification_scores(test_target, labels, probability)
        ones = float(test_target.mean())
        return CellResult(scores | {"majority_share": max(ones, 1 - ones)})  # of the rows that are scored

    def _as_published(self) -> Parts:
        table = whole_table(data_of(self))
        release = self.anonymizer().anonymize(table, rng=self.seed)
        features, truth = one_hot_published(release), binary_target(release, release.schema)
        train, test = _split(len(truth), SPLIT_SEED)
        return features[train], truth[train], features[test], truth[test]

    def _corrected(self) -> Parts:
        table = whole_table(data_of(self))
        train, test = (table.select_rows(np.sort(rows)) for rows in _split(len(table), self.seed))
        release = self.anonymizer().anonymize(train, rng=self.seed)
        encoding = Encoding.from_schema(table.schema)
        return (
            encoding.encode_release(release),
            binary_target(release, release.schema),
            encoding.encode_table(test),
            binary_target(test, test.schema),
        )


def _split(n: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(n), test_size=TEST_SHARE, random_state=seed)
    return train, test
