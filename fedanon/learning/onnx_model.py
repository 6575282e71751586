"""A trained model as an ONNX graph, for programs that know nothing of fedanon.

Models whose parameters are layers of weights are a few nodes of a graph: logistic regression and the neural network.
Trees are left to the file of xgboost's own (`model.json`), which every program that has xgboost reads.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np

from fedanon.errors import ConfigError
from fedanon.fields import build
from fedanon.learning.saved_model import SavedModel
from fedanon.learning.settings import RunSettings
from fedanon.models.base import Parameters
from fedanon.models.encoding import Encoding
from fedanon.models.target import class_values
from fedanon.types import AnyArray

#: of ONNX, old enough for programs that are not of today
OPSET, IR_VERSION = 17, 8
INPUT, OUTPUT = "features", "probability"

#: weights (inputs, outputs) and bias of a layer
Layer = tuple[AnyArray, AnyArray]


def to_onnx(saved: SavedModel) -> bytes:
    """A graph from encoded features (records, width) to the probability of the positive class of each record.

    The names of the features, in their order, and the two classes are in its metadata, where the model has a schema.

    Raises
    ------
    ConfigError
        If the model is another one, or the package `onnx` is missing.
    """
    try:
        import onnx
        from onnx import TensorProto, helper
    except ModuleNotFoundError:
        raise ConfigError("Writing ONNX needs the package onnx: pip install 'fedanon[onnx]'.") from None
    settings = build(RunSettings, saved.card["settings"])
    layers = _layers(settings.model, saved.parameters)
    inner = helper.np_dtype_to_tensor_dtype(layers[0][0].dtype)
    nodes = [helper.make_node("Cast", [INPUT], ["layer0"], to=inner)]
    values: list[Any] = []
    for i, (weights, bias) in enumerate(layers):
        values += [onnx.numpy_helper.from_array(weights, f"w{i}"), onnx.numpy_helper.from_array(bias, f"b{i}")]
        nodes += [
            helper.make_node("MatMul", [f"layer{i}", f"w{i}"], [f"product{i}"]),
            helper.make_node("Add", [f"product{i}", f"b{i}"], [f"score{i}"]),
            helper.make_node("Relu" if i + 1 < len(layers) else "Sigmoid", [f"score{i}"], [f"layer{i + 1}"]),
        ]
    values.append(onnx.numpy_helper.from_array(np.array([-1], dtype=np.int64), "flat"))
    nodes.append(helper.make_node("Reshape", [f"layer{len(layers)}", "flat"], [OUTPUT]))
    graph = helper.make_graph(
        nodes,
        "fedanon",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["records", int(saved.card["width"])])],
        [helper.make_tensor_value_info(OUTPUT, inner, ["records"])],
        values,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    helper.set_model_props(model, _about(saved, settings))
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def _layers(model: str, parameters: Parameters) -> list[Layer]:
    if model == "lr":
        coefficients, intercept = parameters
        return [(coefficients.reshape(-1, 1), intercept)]
    if model == "mlp":
        return [(weights.T.copy(), bias) for weights, bias in list(pairwise(parameters))[::2]]
    raise ConfigError(
        f"Models of the kind {model!r} are not written as ONNX; lr and mlp are. Trees are a file of xgboost's own."
    )


def _about(saved: SavedModel, settings: RunSettings) -> dict[str, str]:
    told = {"fedanon": str(saved.card["version"]), "file_sha256": str(saved.card["file_sha256"])}
    if saved.schema is not None:
        encoding = Encoding.from_schema(saved.schema, features=settings.features)
        told |= {"features": json.dumps(encoding.names), "classes": json.dumps(list(class_values(saved.schema)))}
    return told
