"""The chain of steps of a release as its manifest lists it: methods, changed cells, transition matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer
from fedanon.errors import FedanonError
from fedanon.report.document import Block, TableBlock, TableCell, TableColumn
from fedanon.report.privacy.language import Language
from fedanon.sdc.methods.base import Perturbative

#: most categories of which a transition matrix is shown
MOST_SHOWN = 12


def is_truthful_step(step: Mapping[str, Any]) -> bool:
    """Return whether a step publishes cells that hold the original values; an unknown method is taken not to."""
    method = _method(step)
    return method is not None and bool(getattr(method, "truthful", False))


def is_perturbing_step(step: Mapping[str, Any]) -> bool:
    """Return whether a step replaces values by others, rather than generalizing or averaging them."""
    method = _method(step)
    return method is not None and issubclass(method, Perturbative) and not method.truthful


def _method(step: Mapping[str, Any]) -> type[Anonymizer] | None:
    try:
        return ANONYMIZERS[str(step["method"])]
    except (KeyError, FedanonError):
        return None


def chain_blocks(steps: Sequence[Mapping[str, Any]], say: Language) -> list[Block]:
    """Show the steps, and the matrices with which categories were drawn anew."""
    columns = (
        TableColumn(say("losses.step"), numeric=True),
        TableColumn(say("losses.method")),
        TableColumn(say("losses.changed")),
    )
    rows = tuple(
        (
            TableCell(str(i + 1), i + 1),
            TableCell(f"`{step['method']}`"),
            TableCell(", ".join(f"`{name}` ({say.number(count)})" for name, count in step["changed"].items())),
        )
        for i, step in enumerate(steps)
    )
    return [TableBlock(say("losses.steps"), columns, rows), *_matrices(steps, say)]


def _matrices(steps: Sequence[Mapping[str, Any]], say: Language) -> Iterator[Block]:
    for i, step in enumerate(steps):
        for name, matrices in step.get("transitions", {}).items():
            # strata have a matrix each, which would be too many to read
            for one in [one for one in matrices if len(one["categories"]) <= MOST_SHOWN][:1]:
                columns = (
                    TableColumn(say("losses.from")),
                    *(TableColumn(category, numeric=True) for category in one["categories"]),
                )
                rows = tuple(
                    (TableCell(category), *(TableCell(f"{chance:.4f}", chance) for chance in row))
                    for category, row in zip(one["categories"], one["matrix"], strict=True)
                )
                yield TableBlock(say("losses.transition", column=name, n=i + 1), columns, rows)
