"""Outcome: the kind of thing a model predicts, as far as a server that knows no schema has to know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedanon.errors import ConfigError
from fedanon.types import AnyArray, FloatArray

OutcomeKind = Literal["binary", "multiclass", "regression"]

#: more classes than any table of ours has; a server refuses to hold a model of more
MAX_CLASSES = 100


@dataclass(frozen=True)
class Outcome:
    """One of two classes, one of several, or a number; ``classes`` is 0 for a number."""

    classes: int = 2

    def __post_init__(self) -> None:
        if self.classes != 0 and not 2 <= self.classes <= MAX_CLASSES:
            raise ConfigError(f"A target has 2 to {MAX_CLASSES} classes, or is a number. Got {self.classes} classes.")

    @property
    def kind(self) -> OutcomeKind:
        """How it is called in settings and results."""
        return "regression" if self.classes == 0 else "binary" if self.classes == 2 else "multiclass"

    @property
    def n_scores(self) -> int:
        """How many numbers a model gives a row: one, or one per class where there are more than two."""
        return self.classes if self.classes > 2 else 1

    def __str__(self) -> str:
        return {"binary": "one of two classes", "regression": "a number"}.get(
            self.kind, f"one of {self.classes} classes"
        )


BINARY = Outcome(2)
REGRESSION = Outcome(0)


def softmax(scores: AnyArray) -> FloatArray:
    """The probability of every class, a column each, by the scores of the classes."""
    powers = np.exp(np.asarray(scores, dtype=np.float64) - np.max(scores, axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
