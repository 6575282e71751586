"""Validation of updates: what a malicious or broken node sends must not reach the model.

Pure functions on plain arrays; the server calls them before aggregation, a node before it uses what it received.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import UpdateRejectedError
from fedanon.models.base import Parameters
from fedanon.models.outcome import Outcome
from fedanon.models.outcome_scores import NODE_SCORES, ROWS

#: an update that moves more than this many times the median of the round is rejected
MAX_MOVE = 5.0
MAX_ABS = 1e6


def check_weight(value: Any, declared: int) -> int:
    """The number of examples of an update: what the node declared before the first round, nothing else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise UpdateRejectedError("its number of examples is not a finite number")
    if value != declared:
        raise UpdateRejectedError("its number of examples is not the one it declared before the first round")
    return declared


def check_arrays(arrays: Sequence[NDArray[Any]], reference: Parameters) -> None:
    """Arrays of a model that is averaged: same number, shape and type as the global ones, finite and bounded."""
    if len(arrays) != len(reference):
        raise UpdateRejectedError(f"it has {len(arrays)} arrays instead of {len(reference)}")
    for array, known in zip(arrays, reference, strict=True):
        if array.dtype != known.dtype or array.shape != known.shape:
            raise UpdateRejectedError(f"an array is {array.dtype}{array.shape}, not {known.dtype}{known.shape}")
        largest = float(np.abs(array).max(initial=0))  # NaN if any number is
        if not math.isfinite(largest):
            raise UpdateRejectedError("an array holds numbers that are not finite")
        if largest > MAX_ABS:
            raise UpdateRejectedError(f"an array holds numbers beyond {MAX_ABS:g}")


def far_movers(
    updates: Mapping[int, Parameters], reference: Parameters, max_move: float = MAX_MOVE
) -> dict[int, float]:
    """Nodes whose arrays moved absurdly far, with the factor over the round's median; three updates are needed.

    With ``max_move`` 0 no move is too far.
    """
    if len(updates) < 3 or max_move == 0:
        return {}
    moves = {
        node: math.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in zip(arrays, reference, strict=True)))
        for node, arrays in updates.items()
    }
    median = float(np.median(list(moves.values())))
    if median == 0.0:
        return {node: math.inf for node, move in moves.items() if move > 0.0}
    return {node: move / median for node, move in moves.items() if move > max_move * median}


def check_scores(scores: Mapping[str, Any], allowed: frozenset[str]) -> dict[str, float]:
    """Metrics of an evaluation: whitelisted names, finite numbers."""
    unknown = sorted(set(scores) - allowed)
    if unknown:
        raise UpdateRejectedError(f"it sends {len(unknown)} metrics that are not agreed on")
    for name, value in scores.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise UpdateRejectedError(f"its metric {name!r} is not a finite number")
    return {name: float(value) for name, value in scores.items()}


def refuse_partial(scores: Mapping[str, Any], outcome: Outcome) -> None:
    """Of a number, scores pool only together: all of them, or none."""
    for end in ROWS if outcome.kind == "regression" else ():
        found = [name for name in NODE_SCORES["regression"] if f"{name}{end}" in scores]
        if 0 < len(found) < len(NODE_SCORES["regression"]):
            raise UpdateRejectedError("it sends only some of the agreed metrics")
