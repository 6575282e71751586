"""What travels: record names, and the whitelist of what may leave a node.

A reply holds arrays of a model, and numbers with agreed names. No text but hashes, no rows, no free-form metric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from numpy.typing import NDArray

from fedanon.errors import UpdateRejectedError
from fedanon.federated.node import PRIVACY_MEASURES, NodeFacts

ARRAYS, CONFIG, METRICS = "arrays", "config", "metrics"
ROUND, WEIGHT = "round", "num-examples"
SCORES = ("accuracy", "precision", "recall", "f1", "auc", "log_loss", "brier")
EVALUATION = frozenset({*SCORES, *(f"{name}_recoded" for name in SCORES), WEIGHT})
FACT_NUMBERS = ("width", "n_train", "n_test")
MAX_ARRAYS = 100_000
MAX_BYTES = 256 * 2**20


def pack_arrays(arrays: Sequence[NDArray[Any]]) -> ArrayRecord:
    """Arrays under their position as name."""
    return ArrayRecord({str(i): Array(array) for i, array in enumerate(arrays)})


def unpack_arrays(record: ArrayRecord) -> list[NDArray[Any]]:
    """Arrays in order of position; refuses other names, and sizes no model of ours has, before anything is decoded."""
    if len(record) > MAX_ARRAYS or sum(len(array.data) for array in record.values()) > MAX_BYTES:
        raise UpdateRejectedError("it is too large")
    if set(record) != {str(i) for i in range(len(record))}:
        raise UpdateRejectedError("its arrays do not have the agreed names")
    try:
        arrays = [record[str(i)].numpy() for i in range(len(record))]
    except Exception:
        raise UpdateRejectedError("its arrays cannot be read") from None
    if any(array.dtype.kind not in "fiu" for array in arrays):
        raise UpdateRejectedError("its arrays do not hold numbers")
    return arrays


def read_arrays(message: Message) -> list[NDArray[Any]]:
    """The arrays of a message, which must hold exactly one record of them."""
    records = message.content.array_records
    if set(records) != {ARRAYS}:
        raise UpdateRejectedError("it does not hold the agreed records")
    return unpack_arrays(records[ARRAYS])


def read_round(message: Message) -> int:
    """The round a request belongs to."""
    number = message.content.config_records[CONFIG][ROUND]
    if not isinstance(number, int):
        raise UpdateRejectedError("its round is not a number")
    return number


def request(node: int, kind: str, round_number: int, arrays: ArrayRecord) -> Message:
    """A message of the server to a node."""
    content = RecordDict({ARRAYS: arrays, CONFIG: ConfigRecord({ROUND: round_number})})
    return Message(content, dst_node_id=node, message_type=kind, group_id=str(round_number))


def reply_update(message: Message, arrays: Sequence[NDArray[Any]], n_examples: int, round_number: int) -> Message:
    """A node's update."""
    metrics = MetricRecord({WEIGHT: n_examples, ROUND: round_number})
    return Message(RecordDict({ARRAYS: pack_arrays(arrays), METRICS: metrics}), reply_to=message)


def reply_scores(message: Message, scores: Mapping[str, float], n_examples: int) -> Message:
    """A node's evaluation: only whitelisted numbers pass."""
    allowed = {name: float(value) for name, value in scores.items() if name in EVALUATION and np.isfinite(value)}
    return Message(RecordDict({METRICS: MetricRecord({**allowed, WEIGHT: n_examples})}), reply_to=message)


def reply_facts(message: Message, facts: NodeFacts, number: int) -> Message:
    """What a node tells before the first round."""
    texts = ConfigRecord({"schema": facts.schema_sha256, "version": facts.version, "number": number})
    numbers = {name: getattr(facts, name) for name in FACT_NUMBERS}
    measures = {name: facts.measures[name] for name in PRIVACY_MEASURES}
    finite = {name: float(value) for name, value in (numbers | measures).items() if np.isfinite(value)}
    return Message(RecordDict({CONFIG: texts, METRICS: MetricRecord({**finite})}), reply_to=message)


def read_facts(message: Message) -> tuple[int, NodeFacts]:
    """A node's number and facts, checked."""
    try:
        config, metrics = message.content[CONFIG], message.content[METRICS]
        number = config["number"]
        sizes = {name: int(metrics[name]) for name in FACT_NUMBERS}  # type: ignore[arg-type]
        measures = {name: float(metrics[name]) for name in PRIVACY_MEASURES if name in metrics}  # type: ignore[arg-type]
        facts = NodeFacts(str(config["schema"]), str(config["version"]), measures=measures, **sizes)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise UpdateRejectedError("its facts cannot be read") from None
    if not isinstance(number, int) or facts.n_train < 1 or facts.n_train > 10**8:
        raise UpdateRejectedError("its facts are out of bounds")
    return number, facts


def read_metrics(message: Message) -> dict[str, Any]:
    """The metrics of a reply as plain values."""
    record = message.content.metric_records.get(METRICS)
    if record is None or len(message.content.metric_records) != 1:
        raise UpdateRejectedError("it does not hold the agreed records")
    return dict(record)
