"""Private scores whose noise nodes share: what the server can read, with whom a node shares, and who is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, MessageType
from numpy.typing import NDArray

from fedanon.federated import joint_state, wire
from fedanon.federated.deployment.egress_log import WORDS, read_egress
from fedanon.federated.deployment.node import NodeFolder
from fedanon.federated.engines import LocalGrid
from fedanon.federated.handshake import Attendance, Handshake
from fedanon.federated.policy import NodePolicy
from fedanon.federated.server import FederatedRun
from fedanon.federated.shared_scores import add_up_shares, enough, pack_score_keys
from fedanon.joint.masks import new_secret, public_key, sum_masked_counts
from fedanon.joint.node import make_node as make_learner
from fedanon.learning.egress_ledger import EgressLedger
from fedanon.learning.participants import Participants
from fedanon.learning.private_scores import FINE_EDGES, MASKED, curve_area
from fedanon.learning.rounds import Reply
from tests.federated.deployed import allow, deployed
from tests.federated.hostile_server import TEMPLATE, grid_of
from tests.federated.test_egress import nodes_of, table_of

RUN = replace(TEMPLATE, rounds=4, evaluate_every=2)
SignedKeys = dict[int, tuple[bytes, bytes]]


def ask(grid: LocalGrid, kind: str, number: int, arrays: Any = (), keys: Sequence[NDArray[Any]] = ()) -> list[Message]:
    content = wire.request_content(number, wire.pack_arrays(list(arrays)), keys)
    return list(grid.send_and_receive([wire.request(n, kind, number, content) for n in grid._contexts]))


def offered(grid: LocalGrid) -> SignedKeys:
    """The keys that nodes offer, by identifier, which is one more than their number."""
    replies = {reply.metadata.src_node_id: reply for reply in ask(grid, MessageType.QUERY, 0)}
    keys = {node: wire.read_score_key(reply) for node, reply in replies.items()}
    return {node: key for node, key in sorted(keys.items()) if key is not None}


def packed(keys: SignedKeys) -> list[NDArray[Any]]:
    return pack_score_keys(keys, {node: node - 1 for node in keys}, list(keys))


def model_of(node: NodeFolder) -> list[NDArray[Any]]:
    width = make_learner(table_of(node), RUN, 0).width
    return [np.random.default_rng(0).normal(size=width), np.zeros(1)]


def exact_of(node: NodeFolder, model: list[NDArray[Any]]) -> NDArray[np.int64]:
    rules = node.config.rules(node.folder / "split.key")
    return make_learner(table_of(node), RUN, node.config.number, rules).count_predictions(model, FINE_EDGES)


def spent(node: NodeFolder) -> float:
    return EgressLedger(node.folder / "egress.json").read().score_epsilon


@pytest.fixture
def nodes(tmp_path: Path) -> list[NodeFolder]:
    return nodes_of(tmp_path, 4, scores="private")


def test_only_the_sum_can_be_read_and_has_the_noise_of_few(nodes: list[NodeFolder]) -> None:
    grid, model = grid_of(nodes, RUN), model_of(nodes[0])
    keys = packed(offered(grid))
    replies = ask(grid, MessageType.EVALUATE, 1, model, keys)
    masked = [np.array(wire.read_metrics(reply)[MASKED]).reshape(2, -1) for reply in replies]
    exact = [exact_of(node, model) for node in nodes]
    off = sum_masked_counts(masked) - np.sum(exact, axis=0)
    # 4 shares, of which 3 are the whole noise of scale 1/2: all 44 counts are exact once in 10^6 runs, and one of
    # them is off by 20 or more once in 10^12
    assert 0 < np.abs(off).max() < 20
    for i in range(4):
        rest = sum_masked_counts([m for j, m in enumerate(masked) if j != i]) - np.sum(exact, axis=0) + exact[i]
        # a mask is uniform over 2^32: that half of 44 are so small by chance has a probability below 10^-60
        assert np.median(np.abs(rest)) > 10**6
        assert np.median(np.abs(masked[i] - exact[i])) > 10**6
    assert [spent(node) for node in nodes] == [2.0] * 4
    [run] = read_egress(nodes[0].folder)
    assert run.answers[WORDS["scores shared"]] == 1


def test_masks_of_scores_are_never_those_of_counts(nodes: list[NodeFolder]) -> None:
    """A server names steps and rounds as it likes: two answers behind one mask would show their difference."""
    run = replace(RUN, method="federated_mondrian", method_settings={"k": 10, "k_local": 5, "counts": "secure_dp"})
    grid = grid_of(nodes, run)
    joined = {reply.metadata.src_node_id: wire.read_join(reply)[2] for reply in ask(grid, wire.JOIN, 0)}
    for node, context in grid._contexts.items():
        assert public_key(joint_state.secret(context, joint_state.SCORE_SECRET)) != joined[node]


def test_whole_noise_is_that_of_more_than_half() -> None:
    assert [enough(n) for n in (2, 3, 4, 10)] == [2, 2, 3, 6]


def test_a_run_reads_the_scores_of_the_sum(nodes: list[NodeFolder]) -> None:
    outcome = FederatedRun(grid_of(nodes, RUN), RUN).run()
    assert outcome.rejected == outcome.unresponsive == []
    assert [scores["round"] for scores in outcome.rounds] == [2, 4]
    exact = np.sum([exact_of(node, outcome.parameters) for node in nodes], axis=0)
    # 240 people: noise moves the area by about .02
    assert outcome.rounds[-1]["auc_private"] == pytest.approx(curve_area(exact, int(exact.sum())), abs=0.2)
    assert [spent(node) for node in nodes] == [4.0] * 4


@pytest.mark.parametrize("policy", [{"score_noise": "own"}, {"peer_keys": ""}, {"min_peers": 4}, {"scores": "release"}])
def test_a_node_that_does_not_share_offers_no_key(nodes: list[NodeFolder], policy: dict[str, Any]) -> None:
    allow(nodes[0].folder, **policy)
    changed = NodeFolder(nodes[0].folder)
    grid = grid_of([changed], RUN)
    assert offered(grid) == {}
    [reply] = ask(grid, MessageType.EVALUATE, 1, model_of(changed))
    assert MASKED not in wire.read_metrics(reply)


def test_nobody_shares_with_strangers_with_too_few_or_by_another_key(nodes: list[NodeFolder]) -> None:
    """Refused before anything is paid; keys without this node's own are for others, and it adds whole noise."""
    grid, model = grid_of(nodes, RUN), model_of(nodes[0])
    known = offered(grid)
    stranger = public_key(new_secret()), bytes(len(known[2][1]))
    offers = {
        "a stranger among them": known | {9: stranger},
        "a key of the server's for a known node": known | {2: (stranger[0], known[2][1])},
        "too few": {1: known[1], 2: known[2]},
        "another key for itself": known | {1: (stranger[0], known[1][1])},
    }
    for what, keys in offers.items():
        first = ask(grid, MessageType.EVALUATE, 1, model, packed(keys))[0]
        assert first.has_error(), what
        assert first.error.reason == "This node refuses to answer: peers."
    assert spent(nodes[0]) == 0.0
    others = {node: key for node, key in known.items() if node != 1}
    first, *rest = ask(grid, MessageType.EVALUATE, 2, model, packed(others))
    assert MASKED not in wire.read_metrics(first)
    assert all(MASKED in wire.read_metrics(reply) for reply in rest)


def test_signatures_of_another_run_are_no_use(nodes: list[NodeFolder]) -> None:
    grid, model = grid_of(nodes, RUN), model_of(nodes[0])
    earlier = offered(grid_of(nodes, RUN, run_id=7))
    now = offered(grid)
    reply = ask(grid, MessageType.EVALUATE, 1, model, packed(earlier | {1: now[1]}))[0]
    assert reply.error.reason == "This node refuses to answer: peers."


def test_keys_that_cannot_be_read_are_refused(nodes: list[NodeFolder]) -> None:
    grid, model = grid_of(nodes, RUN), model_of(nodes[0])
    numbers, keys, signatures = packed(offered(grid))
    for broken in ([numbers[:2], keys, signatures], [numbers, keys.ravel()[:-1], signatures], [numbers, keys, keys]):
        reply = ask(grid, MessageType.EVALUATE, 1, model, broken)[0]
        assert reply.error.reason == "This node refuses to answer: request."


def test_a_node_that_has_lost_its_key_is_left_out_of_the_sum_from_then_on(nodes: list[NodeFolder]) -> None:
    """It was started again: the sum of that round is lost; then it adds whole noise, and the others go on sharing."""
    run = replace(RUN, rounds=3, evaluate_every=1)
    grid, seen = grid_of(nodes, run), []

    def on_round(scores: dict[str, Any]) -> None:
        seen.append("auc_private" in scores)
        if len(seen) == 1:
            grid._contexts[2].state.pop("score-secret")

    FederatedRun(grid, run, on_round=on_round).run()
    assert seen == [True, False, True]


# ---- the server ----------------------------------------------------------------------------------


def reply_of(node: int, counts: Any) -> Reply:
    return Reply(node, read_update=lambda: (0, 0, []), read_scores=lambda: ({MASKED: counts}, 50))


def test_a_sum_that_cannot_be_one_is_left_out() -> None:
    size = 2 * (len(FINE_EDGES) + 1)
    replies = [reply_of(1, [7] * size), reply_of(2, [2**30] * size)]
    summed, missing = add_up_shares(replies, [1, 2])
    assert [reply.shared for reply in summed] == [None, None]
    assert missing == []
    summed, missing = add_up_shares([replies[0], reply_of(2, [3] * size)], [1, 2])
    assert [int(reply.shared.sum()) for reply in summed if reply.shared is not None] == [10 * size, 0]
    for other in ([reply_of(1, [7] * size)], [reply_of(1, [7] * size), reply_of(2, "rows")]):
        summed, missing = add_up_shares(other, [1, 2])
        assert missing == [2]
        assert all(reply.shared is None for reply in summed)


def tamper(reply: Message, **config: Any) -> Message:
    reply.content["config"] = ConfigRecord({**reply.content["config"], **config})  # type: ignore[dict-item]
    return reply


def test_keys_of_malicious_nodes_do_not_stop_the_others(nodes: list[NodeFolder]) -> None:
    grid = grid_of(nodes, RUN)
    first, second, third, fourth = ask(grid, MessageType.QUERY, 0)
    taken = str(first.content["config"]["key"])
    del fourth.content["config"]
    replies = [first, tamper(second, key=taken), tamper(third, key="rows"), fourth]
    for changed in (replies, [tamper(third, number=2**40)]):
        participants = Participants()
        handshake = Handshake(grid, participants, lambda *_, found=changed: found, Attendance())  # type: ignore[misc]
        handshake._greet(0, [1, 2, 3, 4])
        assert list(handshake.score_keys) == list(participants.facts) == ([1] if changed is replies else [])
        assert len(participants.rejected) == len(changed) - len(participants.facts)


# ---- real processes ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_deployed_nodes_share_the_noise_of_their_scores(tmp_path: Path) -> None:
    """The key that a node has offered outlives the process that answered."""
    run = 'method = "mondrian"\nmodel = "lr"\nrounds = 2\nmethod_settings = { k = 5 }\n'
    with deployed(tmp_path, run, nodes=3, rows=300, signed=True) as found:
        for number in range(3):
            allow(found.nodes[number].folder, **asdict(NodePolicy(scores="private")))
            found.start_node(number)
        result = found.finish(found.start_server())
        left = [read_egress(node.folder) for node in found.nodes]
    assert [sorted(scores) for scores in result["rounds"]] == [sorted(result["rounds"][0])] * 2
    assert all(0.5 < scores["auc_private"] <= 1 for scores in result["rounds"])
    assert [run.answers[WORDS["scores shared"]] for [run] in left] == [2, 2, 2]
