"""What a hostile server gets out of nodes: all of an open one, nothing raw of one that `fedanon node init` made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fedanon.data.readers import read_table
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import DataError
from fedanon.federated import wire
from fedanon.federated.deployment.node import NodeFolder
from fedanon.federated.deployment.serving import result
from fedanon.federated.server import FederatedRun
from fedanon.io.audit import read_chain
from fedanon.learning.dp_training import read_note
from fedanon.learning.egress_ledger import EgressLedger
from fedanon.learning.strategies import make_model
from fedanon.models.encoding import Encoding
from fedanon.models.target import target
from tests.federated.hostile_server import (
    EXACTLY,
    GRADIENTS,
    OPEN,
    STEP,
    TEMPLATE,
    WIDTH,
    HostileServer,
    grid_of,
    make_node,
    n_recovered,
    read_many_people,
    read_one_person,
    read_training_rows,
    write_clinic,
)
from tests.federated.test_wire import sightings


def table_of(node: NodeFolder) -> Table:
    return read_table(Path(node.config.data), Schema.read(Path(node.config.schema)))


def truth_of(node: NodeFolder, *, labels: bool = True) -> NDArray[np.float64]:
    """Features of all rows as a model sees them, and their labels."""
    table = table_of(node)
    features = Encoding.from_schema(table.schema).encode_table(table).astype(np.float64)
    return np.column_stack([features, target(table, table.schema)]) if labels else features


def kinds(server: HostileServer) -> set[str]:
    """The kinds of refusals; a server is told nothing else."""
    start, end = "This node refuses to answer: ", "."
    assert all(reason.startswith(start) and reason.endswith(end) for reason in server.refusals)
    return {reason.removeprefix(start).removesuffix(end) for reason in server.refusals}


# ---- S1: scores ----------------------------------------------------------------------------------


def attack_single_people(server: HostileServer, seeds: int) -> int:
    """Records of test sets of one person, which the seed of the run chooses."""
    found = []
    for seed in range(seeds):
        server.start(replace(TEMPLATE, seed=seed, test_share=0.01))
        found += [record] if (record := read_one_person(server.score, WIDTH)) else []
    return n_recovered(found, truth_of(server.node))


def test_test_sets_of_one_person_are_read_from_an_open_node_only(tmp_path: Path) -> None:
    for name, policy, recovered in (("open", OPEN, 4), ("default", {}, 0)):
        (tmp_path / name).mkdir()
        server = HostileServer(make_node(tmp_path / name, rows=100, **policy))
        assert attack_single_people(server, 4) == recovered
    assert kinds(server) == {"split"}


def test_scores_read_the_test_rows_of_an_open_node_only(tmp_path: Path) -> None:
    for name, policy in (("open", OPEN), ("default", {})):
        (tmp_path / name).mkdir()
        server = HostileServer(make_node(tmp_path / name, rows=60 if policy else 300, **policy))
        records = read_many_people(server.score, WIDTH)
        recovered = n_recovered(records, truth_of(server.node))
        assert recovered == (12 if policy else 0)
        assert server.asked > 50, "the attack was played"


def test_a_budget_means_that_scores_are_paid_for_or_not_given(tmp_path: Path) -> None:
    dp = {"mode": "record", "epsilon": 1, "randomness": "secure"}
    run = replace(TEMPLATE, method="identity", method_settings={}, dp_settings=dp, rounds=2)
    policy = {"methods": "identity", "min_k": 1, "max_epsilon": 1.0}
    for name, more in (("release", {}), ("raw", {"scores": "raw"})):
        (tmp_path / name).mkdir()
        server = HostileServer(make_node(tmp_path / name, **policy, **more))
        server.start(run)
        assert server.score(np.zeros(WIDTH), 2.0) == {"num-examples": 60}
    (tmp_path / "private").mkdir()
    node = make_node(tmp_path / "private", scores="private", score_epsilon=0.5, max_score_epsilon=1.0, **policy)
    server = HostileServer(node)
    server.start(run)
    for number in (1, 2, 3):
        server.ask("evaluate", [np.zeros(WIDTH), np.zeros(1)], number)
    assert len(server.replies) == 2
    assert kinds(server) == {"budget"}
    assert EgressLedger(node.folder / "egress.json").read().score_epsilon == 1.0
    assert read_note(node.folder / "told.json") == [], "nobody who is tested is trained on"


def test_private_scores_are_given_once_per_round_and_never_in_single_numbers(tmp_path: Path) -> None:
    server = HostileServer(make_node(tmp_path, scores="private"))
    model = [np.zeros(WIDTH), np.zeros(1)]
    first, again, second = (server.ask("evaluate", model, number) for number in (1, 1, 2))
    assert first is not None
    assert second is not None
    assert again is None
    assert kinds(server) == {"evaluations"}
    assert set(wire.read_metrics(first)) == {"histogram", "num-examples"}
    assert wire.read_metrics(first) != wire.read_metrics(second), "noise is drawn anew"


# ---- S3: settings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"method": "identity", "method_settings": {}}, "method"),
        ({"method": "rank_swapping", "method_settings": {}}, "method"),
        ({"method_settings": {"k": 2}}, "k"),
        ({"method_settings": {"k": 5, "require": "k_map=5:/etc/passwd"}}, "method"),
        ({"method_settings": {"k": "a"}}, "settings"),
        ({"features": "all"}, "features"),
        ({"method": "anneal"}, "method"),
        ({"test_share": 0.9}, "split"),
        ({"test_share": 0.01}, "split"),
        ({"protocol": "as_published"}, "protocol"),
    ],
)
def test_the_node_decides_what_a_run_may_ask(tmp_path: Path, settings: dict[str, Any], kind: str) -> None:
    server = HostileServer(make_node(tmp_path))
    server.start(replace(TEMPLATE, **settings))
    model = [np.zeros(WIDTH), np.zeros(1)]
    assert [server.ask(message, model) for message in ("query", "train", "evaluate")] == [None] * 3
    assert kinds(server) == {kind}
    assert not list(server.node.folder.glob("store/*")), "nothing was made"
    assert EgressLedger(server.node.folder / "egress.json").read().releases == {}


def test_limits_of_runs_and_evaluations(tmp_path: Path) -> None:
    server = HostileServer(make_node(tmp_path, runs_per_day=2, evaluations_per_run=3, evaluations_per_day=4))
    answered = []
    for _ in range(3):
        server.start(TEMPLATE)
        answered.append(sum(server.score(np.zeros(WIDTH), 0.0) is not None for _ in range(5)))
    assert answered == [3, 1, 0]
    assert kinds(server) == {"evaluations", "runs"}


def test_a_method_may_need_a_larger_k_and_more(tmp_path: Path) -> None:
    server = HostileServer(make_node(tmp_path, methods="mondrian, gfkmc:20", require="l=2:ill", max_releases=5))
    server.start(replace(TEMPLATE, method="gfkmc"))
    assert server.ask("query") is None
    assert kinds(server) == {"k"}
    server.start(TEMPLATE)
    assert server.ask("query") is None
    assert kinds(server) == {"k", "privacy"}, "classes of one label"
    server.start(replace(TEMPLATE, method_settings={"k": 5, "require": "l=2:ill"}))
    assert server.ask("query") is not None


# ---- S4: repeated runs ---------------------------------------------------------------------------


def update_of(server: HostileServer, **settings: Any) -> NDArray[Any] | None:
    server.start(replace(TEMPLATE, **settings))
    reply = server.ask("train", [np.zeros(WIDTH), np.zeros(1)])
    return None if reply is None else np.concatenate(wire.read_update(reply)[2])


def test_repeated_runs_see_one_release(tmp_path: Path) -> None:
    for name, policy in (("open", OPEN), ("default", {})):
        (tmp_path / name).mkdir()
        server = HostileServer(make_node(tmp_path / name, **policy))
        updates = [update_of(server, seed=seed) for seed in range(3)]
        same = [np.array_equal(updates[0], other) for other in updates[1:]]  # type: ignore[arg-type]
        assert same == ([False, False] if policy else [True, True])
        [made] = EgressLedger(server.node.folder / "egress.json").read().releases.values()
        assert len(made) == (3 if policy else 1)
    assert len(list(server.node.folder.glob("store/*"))) == 1
    assert update_of(server, method_settings={"k": 5, "relaxed": False}) is not None, "the same settings in full"
    for other in ({"k": 6}, {"k": 5, "relaxed": True}):
        assert update_of(server, method_settings=other) is None
    assert update_of(server, test_share=0.3) is None
    assert update_of(server, method="gfkmc") is None
    assert kinds(server) == {"releases"}


def test_an_attempt_that_fails_has_been_made(tmp_path: Path) -> None:
    """Whether a k can be reached says something about the rows."""
    server = HostileServer(make_node(tmp_path))
    assert update_of(server, method_settings={"k": 10_000}) is None
    assert kinds(server) == {"infeasible"}
    assert update_of(server) is None
    assert kinds(server) == {"infeasible", "releases"}


def test_a_release_that_publishes_records_of_people_is_refused(tmp_path: Path) -> None:
    """Five people may share the published values, but they are those of one of them."""
    server = HostileServer(make_node(tmp_path))
    server.start(replace(TEMPLATE, method="gfkmc", method_settings={"k": 5, "publish": "centroid", "das": False}))
    assert server.ask("query") is None
    assert kinds(server) == {"method"}


def test_a_method_that_never_makes_the_same_release_makes_several(tmp_path: Path) -> None:
    """The store keeps a release per model; the ledger knows that the second is another one."""
    server = HostileServer(make_node(tmp_path, methods="mondrian, anneal", max_releases=1))
    ledger = EgressLedger(server.node.folder / "egress.json")
    settings = {"method": "anneal", "method_settings": {"k": 5, "iterations": 1000}}
    assert update_of(server, **settings) is not None
    assert update_of(server, **settings, model_settings={"l2": 0.5}) is not None, "made anew, and the same"
    with ledger.changing() as note:
        [made] = note.releases.values()
        made.update(dict.fromkeys(made, "0" * 64))  # as if time, not trials, had ended the search
    assert update_of(server, **settings, model_settings={"l2": 0.25}) is None
    assert kinds(server) == {"releases"}


def test_facts_say_what_the_release_shows_and_are_rounded(tmp_path: Path) -> None:
    server = HostileServer(make_node(tmp_path))
    reply = server.ask("query")
    assert reply is not None
    _, facts = wire.read_facts(reply)
    assert set(facts.measures) == {"k_reached", "ncp_published", "suppressed_share"}
    assert all(round(value, 3) == value for value in facts.measures.values())
    assert (facts.n_train, facts.n_test) == (240, 60)


def test_too_few_people_are_not_tested(tmp_path: Path) -> None:
    server = HostileServer(make_node(tmp_path, rows=90))
    assert server.ask("query") is None
    assert kinds(server) == {"infeasible"}


# ---- everything ----------------------------------------------------------------------------------


def attack_everything(server: HostileServer, runs: int, **settings: Any) -> tuple[int, int]:
    """Records read by all that a node answers in so many runs, and its values among the bytes of the answers."""
    truth, records = truth_of(server.node), 0
    for seed in range(runs):
        model = "xgb" if seed % 10 == 0 else "lr"
        more = {"model": model, "model_settings": GRADIENTS if model == "lr" else {}, "seed": seed}
        server.start(replace(TEMPLATE, **settings, **more))
        for message in ("query", wire.JOIN):
            server.ask(message)
        if model == "xgb":
            server.ask("train", make_model(replace(TEMPLATE, **more)).initial(WIDTH))
            continue
        places = np.arange(0.2 + 4 * STEP * seed / 5, 0.2 + 4 * STEP * (seed + 6) / 5, STEP)
        rows = read_training_rows(server, WIDTH, places)
        records += n_recovered(rows, truth[:, :-1], (STEP, EXACTLY, EXACTLY, EXACTLY))
        if seed == 1:
            records += n_recovered(read_many_people(server.score, WIDTH), truth)
    numeric = np.loadtxt(server.node.config.data, delimiter=",", skiprows=1, usecols=(0, 1)).ravel()
    return records, sightings(captured(server), np.concatenate([numeric, truth[:, :2].ravel()]))


def captured(server: HostileServer) -> bytes:
    parts = []
    for reply in server.replies:
        for arrays in reply.content.array_records.values():
            parts += [array.data for array in arrays.values()]
        for numbers in (*reply.content.metric_records.values(), *reply.content.config_records.values()):
            parts.append(json.dumps(dict(numbers)).encode())
    return b"".join(parts)


def test_all_answers_to_fifty_runs_hold_no_record(tmp_path: Path) -> None:
    for name, policy in (("open", OPEN), ("default", {})):
        (tmp_path / name).mkdir()
        server = HostileServer(make_node(tmp_path / name, **policy))
        settings = {"method": "identity", "method_settings": {}} if policy else {}
        records, seen = attack_everything(server, 12 if policy else 50, **settings)
        print(f"{name}: {records} records, {seen} values in {server.asked} messages, {len(server.replies)} answered")
        assert len(server.replies) > 100
        assert records > 40 if policy else records == 0
        assert seen > 0 if policy else seen == 0


# ---- honest servers ------------------------------------------------------------------------------


def nodes_of(folder: Path, count: int, rows: int = 300, **policy: Any) -> list[NodeFolder]:
    """Nodes that know each other's keys."""
    nodes = []
    for number in range(count):
        (folder / str(number)).mkdir()
        table = write_clinic(folder / str(number), rows=rows, seed=number)
        nodes.append(make_node(folder / str(number), table=table, number=number, **policy))
    for node in nodes:
        for peer in nodes:
            (node.folder / "peers" / f"{peer.config.number}.pub").write_text(peer.public_key)
    return nodes


@pytest.mark.parametrize(("scores", "end"), [("release", "released"), ("private", "private"), ("none", "")])
def test_an_honest_run_by_the_templates_trains_and_says_what_it_was_scored_on(
    tmp_path: Path, scores: str, end: str
) -> None:
    run = replace(TEMPLATE, rounds=3, evaluate_every=3)
    outcome = FederatedRun(grid_of(nodes_of(tmp_path, 3, scores=scores), run), run).run()
    assert outcome.rejected == outcome.unresponsive == []
    told = result(run, outcome, "tls")
    assert list(told["scored_on"]) == ([f"accuracy_{end}"] if end else [])
    if end:
        [last] = outcome.rounds
        assert 0.5 < last[f"accuracy_{end}"] <= 1
        assert not {"accuracy", "accuracy_recoded", "auc_client_mean"} & set(last)
    assert all(facts.n_test == 60 for facts in outcome.facts.values())


# ---- the log -------------------------------------------------------------------------------------


def test_everything_that_leaves_and_every_refusal_is_a_line(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    server = HostileServer(node)
    server.ask("query")
    server.ask("train", [np.zeros(WIDTH), np.zeros(1)])
    server.score(np.zeros(WIDTH), 0.0)
    server.ask(wire.JOIN)
    server.ask("train", [np.full(WIDTH, np.nan), np.zeros(1)])
    chain, _ = read_chain(node.folder / "egress.jsonl")
    assert chain.broken is None
    lines = [json.loads(line) for line in (node.folder / "egress.jsonl").read_text().splitlines()]
    assert [(line["event"], line["facts"].get("kind")) for line in lines] == [
        ("release", None),
        ("answer", "facts"),
        ("answer", "update"),
        ("answer", "scores"),
        ("refusal", "key"),
        ("refusal", "update"),
    ]
    assert [line["facts"]["refusal"] for line in lines[4:]] == ["settings", "request"]
    assert "not finite" in lines[5]["facts"]["reason"]
    assert lines[2]["facts"]["bytes"] > 5 * 8
    assert {path.stat().st_mode & 0o077 for path in node.folder.rglob("*")} == {0}


def test_a_node_without_a_place_for_its_ledger_answers_nothing(tmp_path: Path) -> None:
    server = HostileServer(make_node(tmp_path))
    context = server._grid._contexts[1]
    for name in ("egress", "split-key"):
        kept = context.node_config.pop(name)
        assert server.ask("query") is None
        context.node_config[name] = kept
    assert kinds(server) == {"policy", "settings"}


def test_a_damaged_ledger_closes_the_door(tmp_path: Path) -> None:
    server = HostileServer(make_node(tmp_path))
    (server.node.folder / "egress.json").write_text("{}")
    assert server.ask("query") is None
    assert kinds(server) == {"data"}
    with pytest.raises(DataError, match=r"egress\.json of what this node has answered is damaged"):
        EgressLedger(server.node.folder / "egress.json").read()
