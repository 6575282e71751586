"""Evaluate a released file by the file alone: its texts are all a privacy model needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from fedanon.data.cells import Cells, parse_cells
from fedanon.data.schema import Schema
from fedanon.errors import PrivacyViolationError
from fedanon.io.release_file import ReleasedFrame
from fedanon.privacy.base import PrivacyModel, Rows
from fedanon.types import BoolArray


def check_released(
    released: ReleasedFrame, schema: Schema, models: Iterable[PrivacyModel], persons: NDArray[Any] | None = None
) -> None:
    """Raise PrivacyViolationError unless every model holds for every class of the file.

    ``schema`` is that of the original table; without ``persons`` rows are counted.
    """
    for model in models:
        satisfied = fine_classes(released, schema, model, persons)
        if not satisfied.all():
            broken = f"{int((~satisfied).sum())} of {len(satisfied)} equivalence classes break it"
            raise PrivacyViolationError(f"The release does not keep {model}: {broken}.")


def fine_classes(
    released: ReleasedFrame, schema: Schema, model: PrivacyModel, persons: NDArray[Any] | None = None
) -> BoolArray:
    """Which classes of the file keep ``model``."""
    rows = Rows(released.frame, schema, persons)
    return model.evaluator(rows, ~released.suppressed).satisfied(
        released.classes, lambda: cells_of_classes(released, schema)
    )


def cells_of_classes(released: ReleasedFrame, schema: Schema) -> Mapping[str, Cells]:
    """What is published of every class, typed."""
    shown = released.frame.iloc[released.classes.first_rows]
    return {a.name: parse_cells(shown[a.name], a) for a in schema.quasi_identifiers}
