"""Apps in the shape of Flower's quick starts run behind the gate: in process, and over a SuperLink of Flower's own."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Context, RecordDict
from flwr.cli.build import build_fab_from_files
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg

from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.deployment.egress_log import read_egress
from fedanon.federated.deployment.node import NodeFolder
from fedanon.federated.engines import LocalGrid
from fedanon.federated.gate import BUNDLE, AppLimits, fedanon_gate
from fedanon.federated.gate.app import allowed_app
from fedanon.learning.settings import RunSettings
from tests.federated.deployed import free_port
from tests.federated.foreign import write_canaries
from tests.federated.quickstart import APPS, QuickStart
from tests.federated.test_flower_tools import other_superlink, wait_for_superlink

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's"),
    pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROUNDS = 2


def make_nodes(folder: Path, count: int, *, rows: int = 300, **more: Any) -> list[NodeFolder]:
    nodes = []
    for number in range(count):
        place = folder / f"hospital{number}"
        place.mkdir()
        table = write_canaries(place, rows)
        config = NodeConfig(data=str(table), schema=str(place / "schema.toml"), number=number, **more)
        nodes.append(NodeFolder.init(place / "node", config, None))
    return nodes


def bundle(app: QuickStart) -> bytes:
    return build_fab_from_files({name: text.encode() for name, text in app.files.items()})[0]


@pytest.mark.parametrize("name", APPS)
def test_an_app_changes_by_at_most_ten_lines(name: str) -> None:
    written, removed = APPS[name].lines
    print(f"{name}: {written} lines written, {removed} removed")
    assert 0 < written <= 10
    assert removed <= 10


def run_locally(app: Any, nodes: list[NodeFolder], config: dict[str, Any], initial: ArrayRecord) -> Any:
    """Flower's own strategy with the local engine; every node has its own table and policy."""
    grid = LocalGrid(app, RunSettings(), len(nodes))
    for number, node in enumerate(nodes, 1):
        grid._contexts[number] = Context(1, number, node.config.for_flower(node.folder) | config, RecordDict(), RUN)
    strategy = FedAvg(min_train_nodes=1, min_evaluate_nodes=1, min_available_nodes=1)
    return strategy.start(
        grid=grid, initial_arrays=initial, train_config=ConfigRecord({"lr": 0.1}), num_rounds=ROUNDS, timeout=60
    )


RUN: dict[str, Any] = {"batch-size": 16, "local-epochs": 3}


def initial_arrays(name: str) -> ArrayRecord:
    if name == "sklearn":
        return ArrayRecord([np.zeros((3, 4)), np.zeros(3)])
    rng = np.random.default_rng(0)
    shapes = {"fc1.weight": (16, 4), "fc1.bias": (16,), "fc2.weight": (3, 16), "fc2.bias": (3,)}
    found = [rng.normal(0, 0.3, shape).astype(np.float32) for shape in shapes.values()]
    arrays = ArrayRecord(found)
    return ArrayRecord({key: arrays[str(i)] for i, key in enumerate(shapes)})


@pytest.mark.parametrize("name", [pytest.param("sklearn"), pytest.param("torch", marks=pytest.mark.slow)])
def test_a_quick_start_learns_behind_the_gate(tmp_path: Path, name: str) -> None:
    # a node draws its own split: of 300 people, 60 would be tested, too few to tell learning from chance
    [node] = make_nodes(tmp_path, 1, rows=1200)
    allowed = node.apps.allow(bundle(APPS[name]), AppLimits.from_toml(APPS[name].limits))

    def app(message: Any, context: Context) -> Any:
        found = allowed_app(context)
        assert found is not None
        return found(message, context)

    result = run_locally(app, [node], {BUNDLE: allowed.sha256}, initial_arrays(name))
    scores = result.evaluate_metrics_clientapp[ROUNDS]
    assert scores[APPS[name].score] > 0.45, "three classes, of which the largest has some 40 % of the people"
    [run] = read_egress(node.folder)
    assert run.answers == {"answers of an app of other people, which has seen the release": 2 * ROUNDS}
    assert run.refusals == {}


@contextlib.contextmanager
def imported(app: QuickStart, folder: Path) -> Iterator[ClientApp]:
    """The app's own ClientApp in this process, as in a simulation."""
    for name, text in app.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        from theirs import client_app

        yield client_app.app
    finally:
        sys.path.remove(str(folder))
        for module in [found for found in sys.modules if found.partition(".")[0] == "theirs"]:
            del sys.modules[module]


def test_an_author_puts_the_gate_into_an_app_as_a_mod(tmp_path: Path) -> None:
    app = APPS["sklearn"]
    limits = AppLimits.from_toml(app.limits.replace("slot_seconds = 1", "slot_seconds = 0"))
    gated = app.client.replace("app = ClientApp()", "app = ClientApp(mods=[MOD])")
    nodes = make_nodes(tmp_path, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.MOD", fedanon_gate(limits), raising=False)
        with imported(QuickStart(**{**vars(app), "client": gated}), tmp_path / "app") as client:
            result = run_locally(client, nodes, {}, initial_arrays("sklearn"))
    assert result.evaluate_metrics_clientapp[ROUNDS]["accuracy"] > 0.45
    for node in nodes:
        [run] = read_egress(node.folder)
        assert sum(run.answers.values()) == 2 * ROUNDS


@pytest.mark.slow
@pytest.mark.parametrize("name", APPS)
def test_a_quick_start_runs_over_a_superlink_of_flowers(tmp_path: Path, name: str) -> None:
    """Our nodes run the allowed bundle behind their walls; `flwr run` sends the same bundle to a stock SuperLink."""
    flower, superlink = other_superlink(tmp_path)
    app, folder = APPS[name], tmp_path / "theirs-app"
    for file, text in app.files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    nodes = make_nodes(tmp_path, 2, server=f"127.0.0.1:{superlink[5]}")
    for node in nodes:
        node.apps.allow(bundle(app), AppLimits.from_toml(app.limits))
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(flower.running(*superlink))
        wait_for_superlink(flower, link)
        for node in nodes:
            stack.enter_context(flower.running("fedanon", "node", "run", node.folder, "--insecure"))
        said = flower.call("run", folder, "other", "--stream")
    assert "FINAL" in said
    final = said[said.index("FINAL") :]
    print(name, final.splitlines()[0])
    for node in nodes:
        [run] = read_egress(node.folder)
        assert sum(run.answers.values()) == 6, json.dumps(run.refusals)
        assert "seccomp" in (node.folder / "egress.jsonl").read_text(encoding="ascii")


@pytest.mark.slow
def test_the_mod_runs_in_a_supernode_of_flowers(tmp_path: Path) -> None:
    flower, superlink = other_superlink(tmp_path)
    app, folder = APPS["sklearn"], tmp_path / "theirs-app"
    gated = app.client.replace(
        "app = ClientApp()",
        "from fedanon.federated.gate import AppLimits, fedanon_gate\n"
        f"app = ClientApp(mods=[fedanon_gate(AppLimits.from_toml({app.limits!r}))])",
    )
    for file, text in (app.files | {"theirs/client_app.py": gated}).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    nodes = make_nodes(tmp_path, 2)
    address = f"127.0.0.1:{superlink[5]}"
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(flower.running(*superlink))
        wait_for_superlink(flower, link)
        for node in nodes:
            config = node.config.for_flower(node.folder).items()
            text = " ".join(f"{name}={json.dumps(value)}" for name, value in config)
            options = ["--superlink", address, "--port", free_port(), "--node-config", text]
            stack.enter_context(flower.running("flower-supernode", "--insecure", "--host", "127.0.0.1", *options))
        said = flower.call("run", folder, "other", "--stream")
    assert "FINAL" in said
    for node in nodes:
        [run] = read_egress(node.folder)
        assert sum(run.answers.values()) == 6, json.dumps(run.refusals)
