"""A server that asks a node whatever it likes: the attacks that nodes as `fedanon node init` makes them must survive.

Each attack works on a node whose policy is open, which the tests show first; an attack that never works proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context, Message, RecordDict
from numpy.typing import NDArray

from fedanon.federated import wire
from fedanon.federated.client import client_app
from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.deployment.node import KEY, PEERS, NodeFolder
from fedanon.federated.engines import LocalGrid
from fedanon.joint.axes import MOST_BUCKETS, make_axes
from fedanon.joint.masks import new_secret, pack_keys, public_key, sum_masked_counts
from fedanon.joint.queries import RegionQuery, leaf_count_query
from fedanon.joint.regions import GrowingRegions
from fedanon.learning.settings import RunSettings
from fedanon.types import CountArray
from tests.federated.deployed import write_tables

#: a node that lets the server decide everything, as all nodes did once
OPEN: dict[str, Any] = {
    "methods": "mondrian, identity, mdav, federated_mondrian",
    "min_k": 1,
    "truthful": False,
    "features": "all",
    "split": "run",
    "min_test": 1,
    "min_test_share": 0.01,
    "max_test_share": 0.9,
    "max_releases": 10_000,
    "runs_per_day": 10_000,
    "evaluations_per_run": 100_000,
    "evaluations_per_day": 100_000,
    "counts_per_run": 1000,
    "scores": "raw",
    "measures": "all",
    "digits": 20,
    "counts": "plain, threshold, secure, dp, secure_dp",
    "federation_k": True,
    "min_peers": 0,
}
#: what the template of a server asks for
TEMPLATE = RunSettings(method="mondrian", method_settings={"k": 5}, model="lr", rounds=10)

#: features of the table of `write_tables`: age, bmi, both sexes
WIDTH = 4

Record = tuple[float, ...]


def make_node(folder: Path, *, rows: int = 300, table: Path | None = None, **policy: Any) -> NodeFolder:
    """The folder of a node; without ``policy`` it is what `fedanon node init` makes."""
    data = table or write_tables(folder, 1, rows)[0]
    keys = {"identity_key": KEY, "peer_keys": PEERS}
    config = NodeConfig(data=str(data), schema=str(folder / "schema.toml"), **(keys | policy))
    return NodeFolder.init(folder / "node", config, None)


def grid_of(nodes: Sequence[NodeFolder], settings: RunSettings, run_id: int = 1) -> LocalGrid:
    """The local engine with nodes that have tables and policies of their own."""
    grid = LocalGrid(client_app(), settings, len(nodes))
    for node_id, node in enumerate(nodes, 1):
        grid._contexts[node_id] = Context(
            run_id=run_id,
            node_id=node_id,
            node_config=node.config.for_flower(node.folder),
            state=RecordDict(),
            run_config=wire.encode_settings(settings),
        )
    return grid


class HostileServer:
    """Asks one node over the local engine; every run has a context of its own, as in a deployed federation."""

    def __init__(self, node: NodeFolder) -> None:
        self.node = node
        self.asked = 0
        self.replies: list[Message] = []
        self.refusals: list[str] = []
        self._run_id = 0
        self.start(TEMPLATE)

    def start(self, settings: RunSettings) -> None:
        """Begin another run."""
        self._run_id += 1
        self._grid = grid_of([self.node], settings, self._run_id)

    def ask(self, kind: str, arrays: Sequence[NDArray[Any]] = (), number: int = 1) -> Message | None:
        """The node's answer, or None."""
        self.asked += 1
        content = wire.request_content(number, wire.pack_arrays(list(arrays)))
        [reply] = self._grid.send_and_receive([wire.request(1, kind, number, content)])
        if reply.has_error():
            self.refusals.append(reply.error.reason)
            return None
        self.replies.append(reply)
        return reply

    def score(self, coefficients: NDArray[Any], intercept: float) -> dict[str, float] | None:
        """Scores of a logistic regression; whatever the rows are that a node scores on, they have one name here."""
        reply = self.ask("evaluate", [np.asarray(coefficients, dtype=np.float64), np.array([float(intercept)])])
        if reply is None:
            return None
        return {name.removesuffix("_released"): float(value) for name, value in wire.read_metrics(reply).items()}

    def count(self, query: RegionQuery, step: int, keys: Sequence[NDArray[Any]] = ()) -> CountArray | None:
        """The node's counts, behind masks if ``keys`` are given."""
        reply = self.ask(wire.COUNT, [*query.to_arrays(), *keys], step)
        return None if reply is None else wire.read_counts(reply)[0].astype(np.int64)


# ---- scores as an oracle -------------------------------------------------------------------------

Score = Callable[[NDArray[Any], float], dict[str, float] | None]


def read_one_person(score: Score, width: int) -> Record | None:
    """The features and the label of the only test row, by a message per feature and one for the label."""
    found = score(np.zeros(width), 2.0)
    if found is None or "log_loss" not in found:
        return None
    label = int(found["log_loss"] < 0.5)
    features = []
    for j in range(width):
        answer = score(np.eye(width)[j], 0.0)
        if answer is None:
            return None
        logit = -np.log(np.expm1(answer["log_loss"]))
        features.append(float(logit if label else -logit))
    return (*features, float(label))


def read_many_people(score: Score, width: int, steep: float = 1e6) -> list[Record]:
    """Test rows that one numeric feature tells apart: bisected on the first, then read one by one.

    A steep model saturates for all rows but the one whose first feature is at its threshold; that one's features are
    what is left of the Brier score.
    """
    every = score(np.zeros(width), 1.0)
    if every is None or "accuracy" not in every:
        return []
    n_rows = round(every["num-examples"])
    positives = round(every["accuracy"] * n_rows)
    first = np.eye(width)[0] * steep

    def above(threshold: float) -> tuple[int, int] | None:
        found = score(first, -steep * threshold)
        if found is None:
            return None
        true_positives = round(found["recall"] * positives)
        return true_positives, n_rows - positives - (round(found["accuracy"] * n_rows) - true_positives)

    def alone(low: float, high: float, at_low: tuple[int, int], at_high: tuple[int, int]) -> list[tuple[float, int]]:
        inside = at_low[0] - at_high[0], at_low[1] - at_high[1]
        if sum(inside) <= 0 or min(inside) < 0:
            return []
        if high - low < 10 / steep:
            return [((low + high) / 2, int(inside[0] == 1))] if sum(inside) == 1 else []
        middle = (low + high) / 2
        at_middle = above(middle)
        return (
            [] if at_middle is None else alone(low, middle, at_low, at_middle) + alone(middle, high, at_middle, at_high)
        )

    def left(coefficients: NDArray[Any], intercept: float, label: int) -> float | None:
        """The logit of the row that does not saturate."""
        found = score(coefficients, intercept)
        if found is None or "brier" not in found:
            return None
        error = np.sqrt((found["brier"] * n_rows) % 1.0)
        probability = float(np.clip(1 - error if label else error, 1e-15, 1 - 1e-15))
        return float(np.log(probability / (1 - probability)))

    records: list[Record] = []
    for place, label in alone(0.0, 1.0, (positives, n_rows - positives), (0, 0)):
        step = left(first, -steep * place, label)
        if step is None:
            break
        value = place + step / steep
        others = [left(first + 4 * np.eye(width)[j], -steep * value, label) for j in range(1, width)]
        if None in others:
            break
        records.append((value, *(float(other) / 4 for other in others if other is not None), float(label)))
    return records


def n_recovered(records: Sequence[Record], truth: NDArray[Any], within: Any = 1e-5) -> int:
    """How many records are a row of the truth: every number within so much of it."""
    return sum(bool((np.abs(truth - np.array(record)) < within).all(axis=1).any()) for record in records)


# ---- training as an oracle -----------------------------------------------------------------------

#: with so large a weight of the distance to the global parameters, a step is the gradient and nothing else
GRADIENTS = {"steps": 1, "mu": 1e9}
#: how far apart thresholds are, and how exactly a row is read: the first feature as far as thresholds tell it
STEP, EXACTLY = 1 / 400, 2e-5


def read_training_rows(server: HostileServer, width: int, places: NDArray[Any], steep: float = 1e5) -> list[Record]:
    """Features of training rows: what a gradient changes by where a steep threshold passes one row, and no other.

    The last features are those of a category, which sum to 1 for one row.
    """
    before: NDArray[Any] | None = None
    records: list[Record] = []
    for place in places:
        reply = server.ask("train", [np.eye(width)[0] * steep, np.array([-steep * place])])
        if reply is None:
            break
        _, n_rows, arrays = wire.read_update(reply)
        gradient = -arrays[0][1:] * GRADIENTS["mu"] * n_rows  # the first is lost beside the steep coefficient
        if before is not None and abs((before - gradient)[1:].sum() - 1) < 1e-3:
            records.append((float(place - STEP / 2), *(float(value) for value in before - gradient)))
        before = gradient
    return records


# ---- counts as an oracle -------------------------------------------------------------------------

CLINIC = """
name = "clinic"
target = "ill"
[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [18, 95]
integer = true
[attributes.weight]
role = "quasi_identifying"
type = "numeric"
range = [40, 139]
integer = true
[attributes.sex]
role = "quasi_identifying"
type = "categorical"
values = ["F", "M"]
[attributes.ward]
role = "quasi_identifying"
type = "categorical"
values = ["A", "B", "C", "D", "E"]
[attributes.smoker]
role = "quasi_identifying"
type = "categorical"
values = ["no", "yes"]
[attributes.creatinine]
role = "sensitive"
type = "numeric"
range = [0, 10]
[attributes.ill]
role = "sensitive"
type = "categorical"
values = ["no", "yes"]
"""


def write_clinic(folder: Path, rows: int = 300, seed: int = 0, name: str = "clinic.csv") -> Path:
    """A table with five quasi-identifiers and a laboratory value that is none."""
    (folder / "schema.toml").write_text(CLINIC, encoding="utf-8")
    rng = np.random.default_rng(seed)
    lines = ["age,weight,sex,ward,smoker,creatinine,ill"]
    for _ in range(rows):
        age, weight, value = rng.integers(18, 96), rng.integers(40, 140), rng.uniform(0.4, 6)
        words = [rng.choice(list(choices)) for choices in ("FM", "ABCDE")]
        ill = "yes" if age / 90 + value / 6 + rng.normal(0, 0.3) > 1.2 else "no"
        lines.append(f"{age},{weight},{words[0]},{words[1]},{rng.choice(['no', 'yes'])},{value:.6f},{ill}")
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


#: asks for the counts of a query at a step
Count = Callable[[RegionQuery, int], CountArray | None]


def read_quasi_identifiers(count: Count, schema: Any) -> dict[tuple[int, ...], int]:
    """All combinations of bins that occur, with their counts: one question per column."""
    axes = make_axes(schema)
    regions = GrowingRegions([axis.n_bins for axis in axes])
    found: dict[int, tuple[int, ...]] = {0: ()}
    counts: dict[tuple[int, ...], int] = {}
    for step, axis in enumerate(range(len(axes)), 1):
        leaves = np.array(list(found), dtype=np.int32)
        grain = np.zeros((len(leaves), len(axes)), dtype=np.int32)
        grain[:, axis] = MOST_BUCKETS
        query = RegionQuery(regions.router, leaves, *regions.boxes(leaves), grain)
        counted, layout = count(query, step), query.layout(axes)
        if counted is None:
            return {}
        answer = counted[None, :]
        following: dict[int, tuple[int, ...]] = {}
        for position, leaf in enumerate(leaves.tolist()):
            [histogram], starts, rest = layout.part(answer, position, axis), layout.starts(position, axis), leaf
            for start in starts[histogram > 0].tolist():
                path = (*found[leaf], start)
                counts[path] = int(histogram[starts == start][0])
                if axis + 1 < len(axes):
                    chosen, rest = regions.cut(rest, axis, start, start)
                    following[chosen] = path
        found = following
    return {path: count for path, count in counts.items() if len(path) == len(axes)}


def sums_of(servers: Sequence[HostileServer]) -> Count:
    """Exact sums over nodes that hide their counts behind masks of each other; none of them lies."""
    joined = [wire.read_join(reply) for server in servers if (reply := server.ask(wire.JOIN)) is not None]
    keys = pack_keys({number: key for number, _, key, _, _ in joined})

    def count(query: RegionQuery, step: int) -> CountArray | None:
        answers = [server.count(query, step, keys) for server in servers]
        return None if any(a is None for a in answers) else sum_masked_counts([a for a in answers if a is not None])

    return count


def count_among(server: HostileServer, schema: Any, accomplices: int) -> Message | None:
    """The number of training rows behind masks that the node shares with accomplices of the server alone."""
    joined = server.ask(wire.JOIN)
    assert joined is not None
    number, _, key, _, _ = wire.read_join(joined)
    axes = make_axes(schema)
    query = leaf_count_query(GrowingRegions([axis.n_bins for axis in axes]), len(axes))
    keys = {number: key} | {number + 1 + i: public_key(new_secret()) for i in range(accomplices)}
    return server.ask(wire.COUNT, [*query.to_arrays(), *pack_keys(keys)])
