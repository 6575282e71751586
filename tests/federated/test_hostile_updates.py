"""Hostile updates: none is accepted, none crashes, the round goes on with the rest.

Every case is what one of six clients sends in place of its update, through the real app and Flower's records.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from fedanon.federated import wire
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.learning.rounds import RunResult
from tests.federated.conftest import prepared_app, settings

HOSTILE = 3
Arrays = dict[str, np.ndarray]


class HostileGrid(LocalGrid):
    """One client's train replies pass through ``forge``."""

    forge: Callable[[Message, Message], Message]

    def _deliver(self, message: Message) -> Message:
        reply = super()._deliver(message)
        if message.metadata.message_type == "train" and message.metadata.dst_node_id == HOSTILE:
            return self.forge(message, reply)
        return reply


def play(model: str, forge: Callable[[Message, Message], Message], rounds: int = 2) -> RunResult:
    chosen = settings(model, nodes=6, rounds=rounds, evaluate_every=rounds)
    grid = HostileGrid(prepared_app(chosen), chosen)
    grid.forge = forge
    return FederatedRun(grid, chosen).run()


@lru_cache
def honest_auc() -> float:
    return float(play("lr", lambda _message, reply: reply).rounds[-1]["auc_client_mean"])


def content(reply: Message, arrays: Any = None, metrics: Any = None) -> RecordDict:
    return RecordDict(
        {
            wire.ARRAYS: arrays if arrays is not None else reply.content[wire.ARRAYS],
            wire.METRICS: metrics if metrics is not None else reply.content[wire.METRICS],
        }
    )


def forged(change: Callable[[Arrays], dict[str, Any]]) -> Callable[[Message, Message], Message]:
    """Replace the arrays."""

    def forge(message: Message, reply: Message) -> Message:
        arrays = {name: array.numpy().copy() for name, array in reply.content.array_records[wire.ARRAYS].items()}
        record = ArrayRecord({n: a if isinstance(a, Array) else Array(a) for n, a in change(arrays).items()})
        return Message(content(reply, arrays=record), reply_to=message)

    return forge


def weighted(**change: Any) -> Callable[[Message, Message], Message]:
    """Replace metrics; None removes one."""

    def forge(message: Message, reply: Message) -> Message:
        metrics = {
            **dict(reply.content.metric_records[wire.METRICS]),
            **{k.replace("_", "-"): v for k, v in change.items()},
        }
        kept = {name: value for name, value in metrics.items() if value is not None}
        return Message(content(reply, metrics=MetricRecord(kept)), reply_to=message)

    return forge


def each(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Message, Message], Message]:
    return forged(lambda arrays: {name: function(array) for name, array in arrays.items()})


def one_nan(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flat[0] = np.nan
    return array


def raw_bytes(dtype: str, shape: tuple[int, ...], data: bytes) -> Array:
    return Array(dtype=dtype, shape=shape, stype="numpy.ndarray", data=data)


def lying(declared: np.ndarray, sent: np.ndarray) -> Array:
    """What is declared fits the model, the bytes hold something else."""
    return raw_bytes(str(declared.dtype), declared.shape, Array(sent).data)


def longer(array: np.ndarray, more: bytes, drop: int = 0, stype: str = "numpy.ndarray") -> Array:
    data = Array(array).data
    return Array(dtype=str(array.dtype), shape=array.shape, stype=stype, data=data[: len(data) - drop] + more)


def reshaped(array: np.ndarray, shape: tuple[int, ...]) -> Array:
    """Bytes whose own header says the shape, which need not be one."""
    return raw_bytes(str(array.dtype), shape, header(shape) + array.tobytes())


def huge(shape: tuple[int, ...]) -> Array:
    return raw_bytes("float64", shape, header(shape))


def header(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


ARRAY_CASES: dict[str, Callable[[Message, Message], Message]] = {
    "all NaN": each(lambda a: np.full_like(a, np.nan)),
    "one NaN": each(one_nan),
    "inf": each(lambda a: np.full_like(a, np.inf)),
    "-inf": each(lambda a: np.full_like(a, -np.inf)),
    "x 1e6": each(lambda a: a * 1e6),
    "x -10": each(lambda a: a * -10),
    "shape (1, 4)": each(lambda _: np.zeros((1, 4))),
    "shape (1, 1)": each(lambda _: np.zeros((1, 1))),
    "shape (1,)": forged(lambda arrays: {"0": np.zeros(1), "1": arrays["1"]}),
    "extra axis": each(lambda a: a[None]),
    "empty": each(lambda a: a[:0]),
    "int8": each(lambda a: a.astype(np.int8)),
    "complex": each(lambda a: a.astype(np.complex128)),
    "float16": each(lambda a: a.astype(np.float16)),
    "bytes": each(lambda a: np.array([b"x"] * len(a))),
    "missing key": forged(lambda arrays: {"0": arrays["0"]}),
    "extra key": forged(lambda arrays: {**arrays, "2": np.zeros(3)}),
    "renamed key": forged(lambda arrays: {"0": arrays["0"], "bias": arrays["1"]}),
    "swapped keys": forged(lambda arrays: {"0": arrays["1"], "1": arrays["0"]}),
    "ten thousand keys": forged(lambda _: {str(i): np.zeros(1) for i in range(10_000)}),
    "garbage bytes": forged(lambda arrays: {**arrays, "0": raw_bytes("float64", (3,), b"garbage")}),
    "pickled object": forged(lambda arrays: {**arrays, "0": raw_bytes("object", (1,), b"\x80\x04K\x01.")}),
    "no arrays": forged(lambda _: {}),
    "bytes of another array": forged(lambda arrays: {**arrays, "1": lying(arrays["1"], np.zeros(4))}),
    "bytes of another type": forged(lambda arrays: {**arrays, "1": lying(arrays["1"], arrays["1"].astype(np.float32))}),
    "bytes beyond the array": forged(lambda arrays: {**arrays, "1": longer(arrays["1"], b"x" * 8)}),
    "half a number": forged(lambda arrays: {**arrays, "1": longer(arrays["1"], b"", drop=4)}),
    "a shape that equals": forged(lambda arrays: {**arrays, "1": reshaped(arrays["1"], (True,))}),
    "negative shape": forged(lambda arrays: {**arrays, "1": reshaped(arrays["1"], (-1, -1))}),
    "a hundred axes": forged(lambda arrays: {**arrays, "1": reshaped(arrays["1"], (1,) * 100)}),
    "another serialisation": forged(lambda arrays: {**arrays, "1": longer(arrays["1"], b"", stype="pickle")}),
    "8 TB declared": forged(lambda arrays: {**arrays, "1": huge((2**40,))}),
}
WEIGHT_CASES = {
    "examples 1e12": weighted(num_examples=10**12),
    "examples 0": weighted(num_examples=0),
    "examples negative": weighted(num_examples=-5),
    "examples NaN": weighted(num_examples=float("nan")),
    "examples inf": weighted(num_examples=float("inf")),
    "examples missing": weighted(num_examples=None),
    "examples a list": weighted(num_examples=[1, 2]),
    "another round": weighted(round=7),
    "extra metric": weighted(secret=1.0),
}


def other_records(message: Message, reply: Message) -> Message:
    text = ConfigRecord({"note": "a row in clear text"})
    return Message(RecordDict({**content(reply), "more": text}), reply_to=message)


@pytest.mark.parametrize("case", [*ARRAY_CASES, *WEIGHT_CASES, "extra record"])
def test_hostile_arrays(case: str) -> None:
    forge = {**ARRAY_CASES, **WEIGHT_CASES, "extra record": other_records}[case]
    outcome = play("lr", forge)
    assert {entry["node"] for entry in outcome.rejected} == {HOSTILE - 1}
    assert len(outcome.rejected) == 2, "left out in both rounds"
    assert outcome.rounds[-1]["auc_client_mean"] == pytest.approx(honest_auc(), abs=0.03)


def trees(change: Callable[[dict[str, Any]], Any]) -> Callable[[Message, Message], Message]:
    """Change the JSON of an honest update."""

    def replace(arrays: Arrays) -> dict[str, Any]:
        document = json.loads(arrays["0"].tobytes())
        changed = change(document)
        data = changed if isinstance(changed, bytes) else json.dumps(document).encode()
        return {"0": np.frombuffer(data, dtype=np.uint8)}

    return forged(replace)


def tree_of(document: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = document["learner"]["gradient_booster"]["model"]["trees"][0]
    return tree


def in_tree(key: str, position: int, value: Any) -> Callable[[Message, Message], Message]:
    return trees(lambda document: tree_of(document)[key].__setitem__(position, value))


TREE_CASES = {
    "garbage": trees(lambda _: b"\x00\xffgarbage"),
    "empty bytes": trees(lambda _: b""),
    "truncated": trees(lambda document: json.dumps(document).encode()[:200]),
    "split index beyond features": in_tree("split_indices", 0, 999_999),
    "child points to the root": in_tree("left_children", 0, 0),
    "children of each other": in_tree("left_children", 1, 1),
    "child beyond the array": in_tree("right_children", 0, 10**6),
    "leaf 1e30": trees(lambda d: tree_of(d).__setitem__("split_conditions", [1e30] * len(tree_of(d)["left_children"]))),
    "unequal arrays": trees(lambda d: tree_of(d)["split_conditions"].append(0.0)),
    "deep JSON": trees(lambda _: b"[" * 200_000),
    "number of features": trees(lambda d: d["learner"]["learner_model_param"].__setitem__("num_feature", "3")),
    "wrong objective": trees(lambda d: d["learner"]["objective"].__setitem__("name", "reg:squarederror")),
    "multi-class": trees(lambda d: d["learner"]["learner_model_param"].__setitem__("num_class", "3")),
}


@pytest.mark.parametrize("case", TREE_CASES)
def test_hostile_trees(case: str) -> None:
    outcome = play("xgb", TREE_CASES[case])
    assert {entry["node"] for entry in outcome.rejected} == {HOSTILE - 1}
    assert outcome.rounds[-1]["auc_client_mean"] > 0.7


def test_no_reply_can_crash_the_evaluation() -> None:
    class Grid(LocalGrid):
        def _deliver(self, message: Message) -> Message:
            reply = super()._deliver(message)
            if message.metadata.message_type == "evaluate" and message.metadata.dst_node_id == HOSTILE:
                forged_metrics = MetricRecord({"accuracy": float("nan"), wire.WEIGHT: 1})
                return Message(RecordDict({wire.METRICS: forged_metrics}), reply_to=message)
            return reply

    chosen = settings("lr", nodes=6, rounds=2)
    outcome = FederatedRun(Grid(prepared_app(chosen), chosen), chosen).run()
    assert {entry["node"] for entry in outcome.rejected} == {HOSTILE - 1}
    assert np.isfinite(outcome.rounds[-1]["accuracy"])
