"""The protocol in all engines: the same plan in process, in Ray and deployed; nodes that leave or lie."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from fedanon.errors import ConfigError, FedanonError, InfeasibleError
from fedanon.federated import engines, wire
from fedanon.federated.client import client_app
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.federated.simulation import simulate
from fedanon.joint.masks import new_secret, pack_keys, public_key
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.rounds import RunResult
from tests.federated.conftest import settings
from tests.federated.deployed import deployed

JOINT = {"method": "federated_mondrian", "method_settings": {"k": 10}}
HOSTILE = 3
BOX = np.zeros((1, 8), dtype=np.int32)
QUERY = [np.array([[-1], [0], [0], [0]], dtype=np.int32), np.zeros(1, dtype=np.int32), BOX, BOX, BOX]


class ChangingGrid(LocalGrid):
    """What one node answers to queries for counts passes through ``change``."""

    change: Callable[[Message, Message], Message]

    def _deliver(self, message: Message) -> Message:
        reply = super()._deliver(message)
        if message.metadata.message_type == wire.COUNT and message.metadata.dst_node_id == HOSTILE:
            return self.change(message, reply)
        return reply


def play(change: Callable[[Message, Message], Message], **more: Any) -> RunResult:
    chosen = settings("lr", rounds=1, **(JOINT | more))
    grid = ChangingGrid(client_app(), chosen)
    grid.change = change
    return FederatedRun(grid, chosen).run()


def agreed(outcome: RunResult) -> dict[str, Any]:
    assert outcome.joint is not None
    return outcome.joint


def test_all_nodes_agree_on_one_recoding() -> None:
    result = simulate(settings("lr", **JOINT)).to_dict()
    joint = result["joint"]
    assert joint["nodes"] == [0, 1, 2, 3, 4]
    assert joint["smallest_class_at_least"] >= 10
    assert joint["confidence"] == 1.0
    assert "which hospital" in joint["warning"]
    assert result["k_reached"] < 10, "over the rows of one node alone k is not promised"
    assert result["ncp"] == result["ncp_published"]
    assert result["truthfulness"] == 1.0


def test_the_floor_of_each_node_is_kept() -> None:
    method = {"k": 10, "k_local": 3}
    result = simulate(settings("lr", method="federated_mondrian", method_settings=method)).to_dict()
    assert result["k_reached"] >= 3


def test_a_resumed_run_agrees_again_and_says_so(tmp_path: Any) -> None:
    def run(rounds: int) -> RunResult:
        chosen = settings("lr", rounds=rounds, **JOINT)
        return FederatedRun(LocalGrid(client_app(), chosen), chosen, checkpoints=Checkpoints(tmp_path)).run()

    first, second = run(2), run(4)
    assert agreed(first)["recoding_sha256"] == agreed(second)["recoding_sha256"]
    assert (agreed(first)["protocols"], agreed(second)["protocols"]) == (1, 2)
    whole = FederatedRun(LocalGrid(client_app(), settings("lr", **JOINT)), settings("lr", **JOINT)).run()
    for ours, other in zip(second.parameters, whole.parameters, strict=True):
        np.testing.assert_array_equal(ours, other)


# ---- nodes that lie ---------------------------------------------------------------------------


def forged(change: Callable[[np.ndarray], Any]) -> Callable[[Message, Message], Message]:
    def forge(message: Message, reply: Message) -> Message:
        counts = reply.content.array_records[wire.ARRAYS]["0"].numpy()
        sent = change(counts.copy())
        record = ArrayRecord({"0": sent if isinstance(sent, Array) else Array(np.asarray(sent))})
        return Message(RecordDict({wire.ARRAYS: record}), reply_to=message)

    return forge


def with_text(message: Message, reply: Message) -> Message:
    more = ConfigRecord({"note": "a row in clear text"})
    return Message(RecordDict({**reply.content, "more": more}), reply_to=message)


def one_more(counts: np.ndarray) -> np.ndarray:
    counts = counts.astype(np.int32)
    counts[0] += 5
    return counts


LIES: dict[str, Callable[[Message, Message], Message]] = {
    "negative": forged(lambda counts: -counts.astype(np.int32) - 1),
    "NaN": forged(lambda counts: np.full(counts.shape, np.nan)),
    "real numbers": forged(lambda counts: counts.astype(np.float64)),
    "absurd": forged(lambda counts: np.full(counts.shape, 2**31 - 1, dtype=np.int32)),
    "too short": forged(lambda counts: counts[:-1]),
    "too long": forged(lambda counts: np.append(counts, counts)),
    "another axis": forged(lambda counts: counts[None]),
    "nothing": forged(lambda counts: counts[:0]),
    "histograms that differ": forged(one_more),
    "garbage": forged(lambda _: Array(dtype="int32", shape=(4,), stype="numpy.ndarray", data=b"garbage")),
    "8 TB": forged(lambda _: Array(dtype="int32", shape=(2**41,), stype="numpy.ndarray", data=b"")),
    "text beside": with_text,
}


@pytest.mark.parametrize("lie", LIES)
def test_a_node_that_lies_is_left_out(lie: str) -> None:
    outcome = play(LIES[lie])
    assert {entry["node"] for entry in outcome.rejected} == {HOSTILE - 1}
    assert agreed(outcome)["nodes"] == [0, 1, 3, 4]
    assert sorted(outcome.facts) == [0, 1, 3, 4], "its rows were not counted, so it takes no part in training"
    assert agreed(outcome)["smallest_class_at_least"] >= 10


# ---- nodes that leave -------------------------------------------------------------------------


class LeavingGrid(LocalGrid):
    """Nodes that do not answer messages of one kind, from a step on."""

    leaving: dict[int, tuple[str, int]]

    def _deliver(self, message: Message) -> Message:
        kind, step = self.leaving.get(message.metadata.dst_node_id, ("", 0))
        if message.metadata.message_type == kind and int(message.metadata.group_id) >= step:
            message.metadata.__dict__["_dst_node_id"] = 999  # unknown: delivery fails
        return super()._deliver(message)


def leave(leaving: dict[int, tuple[str, int]], **more: Any) -> RunResult:
    chosen = settings("lr", rounds=1, **(JOINT | more))
    grid = LeavingGrid(client_app(), chosen)
    grid.leaving = leaving
    return FederatedRun(grid, chosen).run()


@pytest.mark.parametrize("step", [1, 4, 1000])
def test_the_rest_goes_on_without_a_node_that_leaves(step: int) -> None:
    outcome = leave({2: (wire.COUNT, step)})
    assert agreed(outcome)["nodes"] == [0, 2, 3, 4]
    assert sorted(outcome.facts) == [0, 2, 3, 4]
    assert agreed(outcome)["smallest_class_at_least"] >= 10


def test_too_few_nodes_stop_before_any_release() -> None:
    with pytest.raises(InfeasibleError, match=r"stopped at step 3: 2 of 5 nodes are left.*Nothing was released"):
        leave(dict.fromkeys((1, 2, 3), (wire.COUNT, 3)))


def test_a_node_that_was_counted_and_does_not_release_stops_the_run() -> None:
    with pytest.raises(InfeasibleError, match="1 of 5 nodes were counted and did not confirm their release"):
        leave({4: ("query", 0)})


# ---- sums only ----------------------------------------------------------------------------------

SECURE = {"k": 10, "counts": "secure"}


def test_sums_lead_to_the_same_recoding_as_counts() -> None:
    plain, secure = (leave({}, method_settings={"k": 10, "counts": counts}) for counts in ("plain", "secure"))
    assert agreed(plain)["recoding_sha256"] == agreed(secure)["recoding_sha256"]


@pytest.mark.parametrize("method", ["federated_mondrian", "federated_reference"])
@pytest.mark.parametrize("step", [2, 1000])
def test_sums_are_asked_again_among_the_rest(method: str, step: int) -> None:
    outcome = leave({2: (wire.COUNT, step)}, method=method, method_settings=SECURE)
    assert agreed(outcome)["nodes"] == [0, 2, 3, 4]
    assert agreed(outcome)["smallest_class_at_least"] >= 10
    facts = outcome.facts.values()
    assert sum(fact.n_train * fact.measures["suppressed_share"] for fact in facts) == 0


def test_noise_is_not_paid_for_twice() -> None:
    chosen = {"k": 10, "counts": "secure_dp", "epsilon": 4.0}
    with pytest.raises(InfeasibleError, match="1 nodes left when noisy counts were summed"):
        leave({2: (wire.COUNT, 2)}, method_settings=chosen)


def test_a_node_whose_counts_are_in_a_sum_must_release() -> None:
    with pytest.raises(InfeasibleError, match="did not confirm their release"):
        leave({4: ("query", 0)}, method_settings=SECURE)


def test_a_lie_in_a_sum_stops_the_run() -> None:
    with pytest.raises(InfeasibleError, match="nobody can tell whose counts are wrong"):
        play(forged(lambda counts: counts + np.int32(1 << 30)), method_settings=SECURE)


def test_a_node_sums_with_nobody_it_has_not_met() -> None:
    """A server that brings other keys, or its own, is refused."""
    chosen = settings("lr", method="federated_mondrian", method_settings=SECURE)
    grid = LocalGrid(client_app(), chosen)
    joined = [wire.request(node, wire.JOIN, 0, wire.request_content(0, wire.pack_arrays([]))) for node in (1, 2, 3)]
    keys = {n: wire.read_join(reply)[2] for n, reply in enumerate(grid.send_and_receive(joined))}
    refused = []
    circles = [keys, keys | {7: public_key(new_secret())}, {0: keys[0]}, {0: keys[0], 1: keys[1]}]
    for step, offered in enumerate(circles):
        content = wire.request_content(step + 1, wire.pack_arrays([*QUERY, *pack_keys(offered)]))
        [reply] = grid.send_and_receive([wire.request(1, wire.COUNT, step + 1, content)])
        refused.append(reply.has_error())
    assert refused == [False, True, True, False]


def ask(grid: LocalGrid, content: RecordDict) -> Iterable[Message]:
    return grid.send_and_receive([wire.request(1, wire.COUNT, 2, content)])


def test_no_question_is_answered_twice() -> None:
    chosen = settings("lr", **JOINT)
    grid = LocalGrid(client_app(), chosen)
    content = wire.request_content(2, wire.pack_arrays(QUERY))
    replies = [*ask(grid, content), *ask(grid, content)]
    assert [reply.has_error() for reply in replies] == [False, True]
    assert "answered this step" in replies[1].error.reason


def test_a_node_that_anonymizes_alone_answers_no_questions() -> None:
    chosen = settings("lr", method="mondrian", method_settings={"k": 5})
    content = wire.request_content(1, wire.pack_arrays([]))
    [reply] = LocalGrid(client_app(), chosen).send_and_receive([wire.request(1, wire.COUNT, 1, content)])
    assert reply.has_error()


def test_noise_without_opendp_is_told_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(ConfigError, match=r"pip install 'fedanon\[dp\]'"):
        simulate(settings("lr", method="federated_mondrian", method_settings={"k": 5, "counts": "dp"}))


def test_as_published_is_refused() -> None:
    with pytest.raises(FedanonError, match="needs the protocol 'corrected'"):
        simulate(settings("lr", protocol="as_published", **JOINT))


# ---- other engines ------------------------------------------------------------------------------


def command(engine: str, method: str) -> dict[str, Any]:
    line = f"simulate --dataset randhie --partition by:site --method {method} --k 10 --k-local 2 --rounds 1"
    arguments = [sys.executable, "-m", "fedanon.cli", *line.split(), "--engine", engine, "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=300)
    result: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return result


@pytest.mark.slow
@pytest.mark.parametrize("method", ["federated-mondrian", "federated-reference --set counts=secure"])
def test_ray_agrees_on_the_same_recoding(method: str) -> None:
    local, ray = command("local", method), command("ray", method)
    assert local["joint"] == ray["joint"]
    assert ray["auc_pooled"] == pytest.approx(local["auc_pooled"], abs=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("method", "signed"), [("federated_mondrian", True), ("federated_reference", False)])
def test_deployed_nodes_agree_on_the_same_recoding(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, method: str, signed: bool
) -> None:
    chosen = '{ k = 6, k_local = 2, counts = "secure" }'
    run = f'method = "{method}"\nmodel = "lr"\nrounds = 2\nmethod_settings = {chosen}\n'
    with deployed(tmp_path, run, signed=signed) as found:
        server = found.start_server()
        for number in range(3):
            found.start_node(number)
        result = found.finish(server)
        chosen = found.server.config.run
        monkeypatch.setattr(engines, "n_parts", lambda _: len(found.tables))
        app = client_app(lambda context, _: (found.table(n := int(context.node_config["partition-id"])), n))
        local = FederatedRun(engines.LocalGrid(app, chosen), chosen).run()
    assert result["joint"]["recoding_sha256"] == agreed(local)["recoding_sha256"]
    assert result["rounds"] == local.rounds
    assert all(fact["measures"]["k_reached"] >= 2 for fact in result["facts"].values())
