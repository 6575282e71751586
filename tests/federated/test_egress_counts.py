"""What a hostile server gets out of joint counts: rows of an open node, noisy sums behind masks of a default one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedanon.errors import InfeasibleError, RefusedError
from fedanon.federated import wire
from fedanon.federated.policy import NodePolicy
from fedanon.federated.server import FederatedRun
from fedanon.joint.axes import bin_rows
from fedanon.joint.methods.mondrian import FederatedMondrian
from fedanon.learning.egress_ledger import EgressLedger
from tests.federated.hostile_server import (
    OPEN,
    TEMPLATE,
    HostileServer,
    count_among,
    grid_of,
    make_node,
    read_quasi_identifiers,
    sums_of,
    write_clinic,
)
from tests.federated.test_egress import kinds, nodes_of, table_of

JOINT = {"method": "federated_mondrian"}


def test_counts_read_the_quasi_identifiers_of_an_open_node_only(tmp_path: Path) -> None:
    table = write_clinic(tmp_path)
    server = HostileServer(make_node(tmp_path, table=table, **OPEN))
    server.start(replace(TEMPLATE, **JOINT, method_settings={"k": 5}))
    found = read_quasi_identifiers(server.count, table_of(server.node).schema)
    assert sum(found.values()) == 240, "every training row"
    assert set(found) <= {tuple(row) for row in bin_rows(table_of(server.node)).tolist()}
    assert server.asked == 5


def test_exact_sums_show_the_rows_of_all_nodes_so_a_default_node_asks_for_noise(tmp_path: Path) -> None:
    """Masks hide whose rows they are, not which combinations of values there are."""
    settings = replace(TEMPLATE, **JOINT, method_settings={"k": 10, "k_local": 5, "counts": "secure"})
    for name, policy in (("exact", {"counts": "secure"}), ("default", {})):
        servers, rows = [], set()
        for number in range(3):
            folder = tmp_path / f"{name}{number}"
            folder.mkdir()
            table = write_clinic(folder, seed=number)
            servers.append(HostileServer(make_node(folder, table=table, number=number, peer_keys="", **policy)))
            servers[-1].start(settings)
            rows |= {tuple(row) for row in bin_rows(table_of(servers[-1].node)).tolist()}
        found = read_quasi_identifiers(sums_of(servers), table_of(servers[0].node).schema) if policy else {}
        assert sum(found.values()) == (3 * 240 if policy else 0)
        assert set(found) <= rows
    assert servers[0].ask(wire.JOIN) is None
    assert kinds(servers[0]) == {"counts"}


@pytest.mark.parametrize(
    ("method_settings", "kind"),
    [
        ({"k": 10}, "k"),
        ({"k": 10, "k_local": 5}, "counts"),
        ({"k": 10, "k_local": 5, "counts": "threshold"}, "counts"),
        ({"k": 10, "k_local": 5, "counts": "secure"}, "counts"),
        ({"k": 10, "k_local": 5, "counts": "dp"}, "counts"),
        ({"k": 10, "k_local": 5, "counts": "secure_dp", "epsilon": 5}, "counts"),
        ({"k": 10, "k_local": 5, "counts": "secure_dp", "randomness": "seeded"}, "counts"),
        ({"k": 10, "k_local": 2, "counts": "secure_dp"}, "k"),
    ],
)
def test_a_default_node_counts_only_behind_masks_and_noise(
    tmp_path: Path, method_settings: dict[str, Any], kind: str
) -> None:
    server = HostileServer(make_node(tmp_path, table=write_clinic(tmp_path)))
    server.start(replace(TEMPLATE, **JOINT, method_settings=method_settings))
    assert server.ask(wire.JOIN) is None
    assert read_quasi_identifiers(server.count, table_of(server.node).schema) == {}
    assert kinds(server) == {kind}


@pytest.mark.parametrize(
    ("policy", "accomplices", "kind"),
    [
        ({"peer_keys": ""}, 0, "peers"),
        ({}, 5, "peers"),
        ({"peer_keys": ""}, 1, "peers"),
        ({"peer_keys": ""}, 2, ""),
    ],
)
def test_counts_are_summed_with_enough_nodes_that_are_known(
    tmp_path: Path, policy: dict[str, Any], accomplices: int, kind: str
) -> None:
    server = HostileServer(make_node(tmp_path, table=write_clinic(tmp_path), **policy))
    server.start(replace(TEMPLATE, **JOINT, method_settings={"k": 10, "k_local": 5, "counts": "secure_dp"}))
    reply = count_among(server, table_of(server.node).schema, accomplices)
    assert (reply is None) == bool(kind)
    assert kinds(server) == ({kind} if kind else set())


def test_a_server_cannot_make_noise_small_by_asking_for_many_honest_nodes() -> None:
    def check(honest: int) -> None:
        method = FederatedMondrian(k=10, k_local=5, counts="secure_dp", honest=honest)
        NodePolicy().check_peers(method, 5)

    check(0)
    check(3)
    with pytest.raises(RefusedError, match="1000 honest nodes; there are 5"):
        check(1000)


def test_noisy_counts_are_paid_for_over_all_runs(tmp_path: Path) -> None:
    """Every run would draw its noise anew."""
    node = make_node(tmp_path, table=write_clinic(tmp_path), max_releases=9, peer_keys="", count_epsilon=2.0)
    server, answered = HostileServer(node), 0
    for _ in range(4):
        chosen = {"k": 10, "k_local": 5, "counts": "secure_dp", "epsilon": 0.7}
        server.start(replace(TEMPLATE, **JOINT, method_settings=chosen))
        answered += count_among(server, table_of(node).schema, 2) is not None
    assert kinds(server) == {"budget"}
    assert answered == 2


def test_an_honest_joint_run_by_default_policies(tmp_path: Path) -> None:
    chosen = {"k": 15, "k_local": 5, "counts": "secure_dp", "epsilon": 1.0}
    run = replace(TEMPLATE, **JOINT, method_settings=chosen, rounds=2, evaluate_every=2)
    nodes = nodes_of(tmp_path, 3, rows=1500)
    outcome = FederatedRun(grid_of(nodes, run), run).run()
    assert outcome.rejected == outcome.unresponsive == []
    assert all(facts.measures["k_reached"] >= 5 for facts in outcome.facts.values())
    assert EgressLedger(nodes[0].folder / "egress.json").read().count_epsilon == 1.0
    with pytest.raises(InfeasibleError, match="0 of 3 nodes are left"):
        FederatedRun(grid_of(nodes, run, run_id=2), run).run()
