"""A model written as ONNX and run by another program's engine gives what it gave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from typer.testing import CliRunner

from fedanon.cli.app import app
from fedanon.errors import ConfigError
from fedanon.federated.simulation import simulate
from fedanon.federated.sources import node_table
from fedanon.learning.onnx_model import to_onnx
from fedanon.learning.saved_model import SavedModel
from fedanon.learning.strategies import make_model
from fedanon.models.encoding import Encoding
from tests.federated.conftest import settings


@pytest.mark.parametrize(("name", "off"), [("lr", 1e-12), ("mlp", 1e-6)])
def test_the_graph_predicts_as_the_model_does(name: str, off: float) -> None:
    model, rng, width = make_model(settings(name)), np.random.default_rng(0), 7
    parameters = [rng.normal(size=array.shape).astype(array.dtype) for array in model.initial(width)]
    card = {"settings": settings(name).tagged(), "width": width, "version": "1", "file_sha256": "0"}
    graph = to_onnx(SavedModel(card, parameters, None))
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    features = rng.normal(size=(50, width)).astype(np.float32)
    [found] = session.run(None, {"features": features})
    np.testing.assert_allclose(found, model.predict_proba(parameters, features), atol=off)


def test_the_command_writes_a_graph_that_says_what_it_takes(tmp_path: Path) -> None:
    done = simulate(settings("lr", rounds=1))
    done.write_model(tmp_path / "model")
    command = ["export", str(tmp_path / "model"), "-o", str(tmp_path / "model.onnx")]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    about, table = session.get_modelmeta().custom_metadata_map, node_table(done.settings, 0)
    encoding = Encoding.from_schema(table.schema, features=done.settings.features)
    assert json.loads(about["features"]) == encoding.names
    assert json.loads(about["classes"]) == ["<=50K", ">50K"]
    assert f"{encoding.width} features" in " ".join(told.output.split())
    assert isinstance(CliRunner().invoke(app, command).exception, ConfigError), "it exists"


def test_trees_are_left_to_xgboost() -> None:
    card = {"settings": settings("xgb").tagged(), "width": 1}
    with pytest.raises(ConfigError, match=r"lr and mlp are. Trees are a file of xgboost's own"):
        to_onnx(SavedModel(card, [], None))
