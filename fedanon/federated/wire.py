"""What travels: record names, and the whitelist of what may leave a node.

A reply holds arrays of a model, and numbers with agreed names. No text but hashes, no rows, no free-form metric.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, Literal, TypeGuard, get_type_hints

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from numpy.lib import format as npy
from numpy.typing import NDArray

from fedanon._version import __version__
from fedanon.data.schema import Unit
from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.fields import build, stored_text, takes_table
from fedanon.joint.masks import KEY_BYTES, read_keys
from fedanon.joint.signing import SIGNATURE_BYTES
from fedanon.learning.node import REPORTED_METRICS, NodeFacts, evaluation_scores
from fedanon.learning.private_scores import HISTOGRAM, MASKED
from fedanon.learning.settings import RunSettings
from fedanon.models.outcome import BINARY, Outcome

ARRAYS, CONFIG, METRICS = "arrays", "config", "metrics"
ROUND, WEIGHT = "round", "num-examples"
FACT_NUMBERS = ("width", "n_train", "n_test", "classes")
#: what a node counts of what has left it in a run, at the end of which it is asked
EGRESS = ("releases", "facts", "updates", "evaluations", "counts", "refusals", "bytes")
#: messages of joint anonymization: who takes part, and queries for counts
JOIN, COUNT = "query.join", "query.count"
TELL_EGRESS = "query.egress"
#: under which the keys of nodes that share noise travel: numbers, keys, signatures
KEY_PARTS, KEY_TYPES = ("key-numbers", "keys", "key-signatures"), (np.int32, np.uint8, np.uint8)
#: public keys by the number of their node, and a row of bytes per signature
SignedKeys = tuple[dict[int, bytes], NDArray[Any]]
MAX_ARRAYS = 100_000
MAX_BYTES = 256 * 2**20


def encode_settings(settings: RunSettings, **tags: Any) -> dict[str, Any]:
    """The settings of a run, or those with some tags, as a Flower run config.

    Names have dashes; values are scalars, so tables become JSON text.
    """
    values = {name.replace("_", "-"): value for name, value in settings.tagged(**tags).items()}
    return {name: stored_text(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def decode_settings(config: Mapping[str, Any]) -> RunSettings:
    """The settings of a run from a Flower run config or an older result; foreign keys are skipped."""
    hints = get_type_hints(RunSettings)
    known: dict[str, Any] = {}
    for entry in fields(RunSettings):
        for name in (entry.name, *entry.metadata["aliases"]):
            if (key := name.replace("_", "-")) in config:
                known[name] = json.loads(config[key]) if takes_table(hints[entry.name]) else config[key]
    return build(RunSettings, known)


def pack_arrays(arrays: Sequence[NDArray[Any]]) -> ArrayRecord:
    """Arrays under their position as name."""
    record = ArrayRecord()
    for i, array in enumerate(arrays):
        record[str(i)] = to_array(array)
    return record


def unpack_arrays(record: ArrayRecord) -> list[NDArray[Any]]:
    """Arrays in order of position; refuses other names, and sizes no model of ours has, before anything is decoded."""
    if len(record) > MAX_ARRAYS or sum(len(array.data) for array in record.values()) > MAX_BYTES:
        raise UpdateRejectedError("it is too large")
    if set(record) != {str(i) for i in range(len(record))}:
        raise UpdateRejectedError("its arrays do not have the agreed names")
    try:
        return [from_array(record[str(i)]) for i in range(len(record))]
    except Exception:
        raise UpdateRejectedError("its arrays cannot be read") from None


def read_arrays(message: Message) -> list[NDArray[Any]]:
    """The arrays of a message, which must hold exactly one record of them."""
    return unpack_arrays(_only(message, ArrayRecord, ARRAYS))


def _only(message: Message, kind: type[Any], name: str) -> Any:
    """The one record of a kind."""
    # Flower's own views of a message by kind copy it on every look
    found = [(key, record) for key, record in message.content.items() if isinstance(record, kind)]
    if [key for key, _ in found] != [name]:
        raise UpdateRejectedError("it does not hold the agreed records")
    return found[0][1]


def read_round(message: Message) -> int:
    """The round a request belongs to."""
    number = _only(message, ConfigRecord, CONFIG).get(ROUND)
    if not isinstance(number, int):
        raise UpdateRejectedError("its round is not a number")
    return number


def request_content(round_number: int, arrays: ArrayRecord, keys: Sequence[NDArray[Any]] = ()) -> RecordDict:
    """What a request says; nodes that are asked the same share it. ``keys`` are those of nodes that share noise."""
    config: dict[str, Any] = {ROUND: round_number}
    if keys:
        config |= {name: part.tobytes() for name, part in zip(KEY_PARTS, keys, strict=True)}
    return RecordDict({ARRAYS: arrays, CONFIG: ConfigRecord(config)})


def read_score_keys(message: Message) -> SignedKeys:
    """The keys and signatures that a request to score brings; none if it brings none."""
    config = _only(message, ConfigRecord, CONFIG)
    parts = [config.get(name, b"") for name in KEY_PARTS]
    if not any(parts):
        return {}, np.zeros((0, SIGNATURE_BYTES), dtype=np.uint8)
    try:
        numbers, keys, signatures = (np.frombuffer(part, dtype) for part, dtype in zip(parts, KEY_TYPES, strict=True))
        arrays = [numbers, keys.reshape(-1, KEY_BYTES), signatures.reshape(-1, SIGNATURE_BYTES)]
    except (TypeError, ValueError):
        raise UpdateRejectedError("the keys cannot be read") from None
    return read_keys(arrays), arrays[2]


def request(node: int, kind: str, round_number: int, content: RecordDict) -> Message:
    """A message of the server to a node."""
    return Message(content, dst_node_id=node, message_type=kind, group_id=str(round_number))


def reply_update(message: Message, arrays: Sequence[NDArray[Any]], n_examples: int, round_number: int) -> Message:
    """A node's update."""
    metrics = MetricRecord({WEIGHT: n_examples, ROUND: round_number})
    return Message(RecordDict({ARRAYS: pack_arrays(arrays), METRICS: metrics}), reply_to=message)


def reply_scores(message: Message, scores: Mapping[str, Any], n_examples: int, outcome: Outcome = BINARY) -> Message:
    """A node's evaluation: only the numbers agreed on for its target pass, and a histogram of whole numbers."""
    agreed = evaluation_scores(outcome)
    allowed: dict[str, Any] = {
        name: float(value) for name, value in scores.items() if name in agreed and np.isfinite(value)
    }
    for name in {HISTOGRAM, MASKED} & set(scores):
        allowed[name] = [int(count) for count in scores[name]]
    return Message(RecordDict({METRICS: MetricRecord({**allowed, WEIGHT: n_examples})}), reply_to=message)


def reply_facts(message: Message, facts: NodeFacts, number: int, key: bytes = b"", signature: bytes = b"") -> Message:
    """What a node reports before the first round; with a signed key, if it shares the noise of its scores."""
    known: dict[str, str | int] = {"schema": facts.schema_sha256, "version": facts.version, "number": number}
    if key:
        known |= {"key": key.hex(), "signature": signature.hex()}
    texts = ConfigRecord({**known, "counted": facts.counted})
    numbers = {name: getattr(facts, name) for name in FACT_NUMBERS}
    measures = {name: facts.measures[name] for name in REPORTED_METRICS if name in facts.measures}
    finite = {name: float(value) for name, value in (numbers | measures).items() if np.isfinite(value)}
    return Message(RecordDict({CONFIG: texts, METRICS: MetricRecord({**finite})}), reply_to=message)


def read_facts(message: Message) -> tuple[int, NodeFacts]:
    """A node's number and facts, checked."""
    try:
        config, metrics = message.content[CONFIG], message.content[METRICS]
        number = config["number"]
        sizes = {name: int(metrics[name]) for name in FACT_NUMBERS}  # type: ignore[arg-type]
        Outcome(sizes["classes"])
        measures = {name: float(metrics[name]) for name in REPORTED_METRICS if name in metrics}  # type: ignore[arg-type]
        counted: Unit = "people" if config.get("counted") == "people" else "records"
        facts = NodeFacts(str(config["schema"]), str(config["version"]), measures=measures, counted=counted, **sizes)
    except (KeyError, TypeError, ValueError, OverflowError, ConfigError):
        raise UpdateRejectedError("its facts cannot be read") from None
    if not _is_number(number) or facts.n_train < 1 or facts.n_train > 10**8:
        raise UpdateRejectedError("its facts are out of bounds")
    return number, facts


def read_score_key(message: Message) -> tuple[bytes, bytes] | None:
    """The key, and its signature, with which a node offers to share the noise of its scores."""
    config = message.content[CONFIG]
    if "key" not in config:
        return None
    key, signature = _from_hex(config["key"]), _from_hex(config.get("signature"))
    if len(key) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        raise UpdateRejectedError("its key or signature cannot be read")
    return key, signature


def _is_number(number: Any) -> TypeGuard[int]:
    """Whether this is the number of a node, as it travels with keys."""
    return type(number) is int and 0 <= number <= np.iinfo(np.int32).max


def reply_egress(message: Message, told: Mapping[str, int]) -> Message:
    """What has left a node in a run: numbers alone."""
    return Message(RecordDict({METRICS: MetricRecord({name: int(told[name]) for name in EGRESS})}), reply_to=message)


def read_egress(message: Message) -> dict[str, int]:
    """What a node says has left it, checked."""
    found = read_metrics(message)
    if set(found) != set(EGRESS) or any(type(n) is not int or not 0 <= n < 2**53 for n in found.values()):
        raise UpdateRejectedError("what it says has left it is not the agreed numbers")
    return {name: found[name] for name in EGRESS}


def reply_join(
    message: Message,
    number: int,
    schema_sha256: str,
    persons: bool,
    key: bytes,
    axes: Sequence[NDArray[Any]],
    signature: bytes,
) -> Message:
    """Who a node is, its public key for the run, and the bins of its schema: integers that follow from it alone."""
    who: dict[str, str | int] = {"schema": schema_sha256, "version": __version__, "number": number, "persons": persons}
    texts = ConfigRecord({**who, "key": key.hex(), "signature": signature.hex()})
    return Message(RecordDict({CONFIG: texts, ARRAYS: pack_arrays(axes)}), reply_to=message)


def read_join(message: Message) -> tuple[int, tuple[str, str, bool], bytes, list[NDArray[Any]], bytes]:
    """A node's number, what it must have in common with the others, its public key, its axes, and its signature."""
    config = _only(message, ConfigRecord, CONFIG)
    number, persons = config.get("number"), config.get("persons")
    if len(message.content) != 2 or not _is_number(number) or type(persons) is not bool:
        raise UpdateRejectedError("it does not say who it is")
    common = str(config.get("schema")), str(config.get("version")), persons
    return number, common, _from_hex(config.get("key")), read_arrays(message), _from_hex(config.get("signature"))


def _from_hex(text: Any) -> bytes:
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise UpdateRejectedError("its key or signature cannot be read") from None


def reply_counts(message: Message, counts: NDArray[Any]) -> Message:
    """A node's counts: one array of integers and nothing else."""
    return Message(RecordDict({ARRAYS: pack_arrays([counts])}), reply_to=message)


def read_counts(message: Message) -> list[NDArray[Any]]:
    """The arrays of an answer, which holds nothing else."""
    if len(message.content) != 1:
        raise UpdateRejectedError("it does not hold the agreed records")
    return read_arrays(message)


def read_metrics(message: Message) -> dict[str, Any]:
    """The metrics of a reply as plain values."""
    return dict(_only(message, MetricRecord, METRICS))


def read_update(message: Message) -> tuple[Any, Any, list[NDArray[Any]]]:
    """The round, the number of examples and the arrays of an update, which holds nothing else."""
    if len(message.content) != 2:
        raise UpdateRejectedError("it does not hold the agreed records")
    metrics, arrays = read_metrics(message), read_arrays(message)
    if set(metrics) != {WEIGHT, ROUND}:
        raise UpdateRejectedError("its metrics are not those of this round")
    return metrics[ROUND], metrics[WEIGHT], arrays


def read_scores(message: Message) -> tuple[dict[str, Any], Any]:
    """The scores of an evaluation, and its number of examples."""
    metrics = read_metrics(message)
    weight = metrics.pop(WEIGHT, None)
    return metrics, weight


# ---- Arrays on the wire --------------------------------------------------------------------------
#
# numpy writes a header as text and evaluates it on reading, which for a small array costs far more than its numbers.
# Here the header of a type and shape is written once and compared on reading; one that differs is parsed.


STYPE = "numpy.ndarray"
NUMBERS = {name: np.dtype(name) for name in ("float16", "float32", "float64", "uint8", "int8", "int32", "int64")}
NAMES = {dtype: name for name, dtype in NUMBERS.items()}
MAX_AXES = 8
Order = Literal["C", "F"]


def to_array(values: NDArray[Any]) -> Array:
    """The bytes `numpy.save` would write, as Flower's record of an array."""
    name = NAMES.get(values.dtype)
    if name is None:
        return Array(values)
    return Array(dtype=name, shape=values.shape, stype=STYPE, data=_header(name, values.shape) + values.tobytes())


def from_array(array: Array) -> NDArray[Any]:
    """The numbers of an array that came over the wire; what it says of itself must be true.

    Raises
    ------
    ValueError
        If the bytes are no array of numbers, or another one than is declared beside them.
    """
    if array.stype != STYPE or array.dtype not in NUMBERS or len(array.shape) > MAX_AXES:
        raise ValueError("not an array of numbers")
    if any(type(length) is not int for length in array.shape):
        raise ValueError("not a shape")  # True equals 1: it would find its way into the cache
    dtype, shape = NUMBERS[array.dtype], array.shape
    header = _header(array.dtype, shape)
    order: Order = "C"
    start = len(header)
    if not array.data.startswith(header):
        start, order = _parsed(array.data, dtype, shape)
    if len(array.data) - start != dtype.itemsize * math.prod(shape):
        raise ValueError("more or fewer numbers than declared")
    values = np.frombuffer(array.data, dtype, offset=start).reshape(shape, order=order)
    return values.copy()  # what is read may be changed


@lru_cache(maxsize=256)
def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": NUMBERS[dtype].str, "fortran_order": False, "shape": shape})
    return file.getvalue()


def _parsed(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[int, Order]:
    """Where the numbers begin and their order, by a header that another numpy wrote."""
    file = io.BytesIO(data)
    if npy.read_magic(file) != (1, 0):
        raise ValueError("another version of the format")
    found, fortran, kind = npy.read_array_header_1_0(file)
    if found != shape or kind != dtype:
        raise ValueError("another array than declared")
    return file.tell(), "F" if fortran else "C"
