"""Adult over ten hospitals: what anonymising together is worth, and what it costs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedanon.data.datasets import load
from fedanon.data.partition import parse_partition
from fedanon.federated.settings import RunSettings
from fedanon.federated.together.axes import loss_of
from fedanon.federated.together.bounds import lower_bound
from fedanon.federated.together.cuts import Floor
from fedanon.federated.together.growth import Growth
from fedanon.federated.together.merging import Merging
from fedanon.federated.together.methods.mondrian import FederatedMondrian
from fedanon.federated.together.node import TogetherNode
from fedanon.federated.together.noise_shares import add_shares, seeded_words
from fedanon.federated.together.questions import Counts, Question
from tests.federated.together.federations import agree, nodes_of, pooled_counts, releases, settings

MEGABYTE = 10**6
#: what is lost alone is .2032: sums with noise of epsilon 1 lose less, and of epsilon 2 three quarters of it
LOST_WITH_NOISE = {
    ("dp", 1.0): 0.24,
    ("dp", 2.0): 0.19,
    ("dp", 4.0): 0.16,
    ("dp", 8.0): 0.14,
    ("secure_dp", 1.0): 0.19,
    ("secure_dp", 2.0): 0.1524,
    ("secure_dp", 4.0): 0.14,
    ("secure_dp", 8.0): 0.135,
}


def test_together_loses_less_than_half_of_what_is_lost_alone() -> None:
    """The aim: ncp at most 60 % of the same method alone and below 9 %, 40 messages, 5 MB a client, 10 seconds."""
    nodes = adult_nodes(k=10)
    start = time.process_time()
    agreement = agree(nodes)
    seconds = time.process_time() - start
    counted, released = releases(nodes, agreement)
    assert pooled_counts(counted, released)[0] >= 10
    together, alone = mean_ncp(nodes), ncp_alone(nodes[0])
    traffic = agreement.traffic
    print(f"ncp together {together:.4f}, alone {alone:.4f}, {traffic}, {seconds:.1f} s")
    assert together < 0.09
    assert together <= 0.6 * alone
    assert traffic["questions"] + 3 <= 40
    assert traffic["bytes_up"] + traffic["bytes_down"] <= 5 * MEGABYTE
    assert seconds < 10


def adult_nodes(**method: Any) -> list[TogetherNode]:
    table = load("adult")
    parts = parse_partition("iid")(table, 10, np.random.default_rng([0, *b"partition"]))
    return nodes_of([table.take(rows) for rows in parts], replace(settings(**method), test_share=0.2))


def mean_ncp(nodes: list[TogetherNode]) -> float:
    return float(np.mean([node.facts.measures["ncp"] for node in nodes]))


def ncp_alone(node: TogetherNode) -> float:
    [single] = nodes_of([node._table], node.settings)
    single.adopt(agree([single]).plan)
    return mean_ncp([single])


@pytest.mark.slow
@pytest.mark.parametrize("counts", ["dp", "secure_dp"])
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 8.0])
def test_what_noise_costs(counts: str, epsilon: float) -> None:
    """The aim, three quarters of what is lost alone, is reached by sums with epsilon 2, not 1 (docs/together.md)."""
    nodes = adult_nodes(k=10, counts=counts, epsilon=epsilon, randomness="seeded")
    agreement = agree(nodes)
    counted, released = releases(nodes, agreement)
    assert pooled_counts(counted, released)[0] >= 10
    shares = [node.facts.measures["suppressed_share"] for node in nodes]
    print(f"{counts} {epsilon:g}: ncp {mean_ncp(nodes):.4f}, suppressed {np.mean(shares):.4f}, {agreement.traffic}")
    assert mean_ncp(nodes) < LOST_WITH_NOISE[counts, epsilon]


@pytest.mark.slow
@pytest.mark.parametrize("k", [20, 50])
def test_from_k_20_on_noise_of_epsilon_1_loses_less_than_three_quarters_of_alone(k: int) -> None:
    nodes = adult_nodes(k=k, counts="secure_dp", epsilon=1.0, randomness="seeded")
    counted, released = releases(nodes, agree(nodes))
    assert pooled_counts(counted, released)[0] >= k
    together, alone = mean_ncp(nodes), ncp_alone(adult_nodes(k=k)[0])
    print(f"k={k}, secure_dp 1: ncp {together:.4f}, alone {alone:.4f}")
    assert together <= 0.75 * alone


@pytest.mark.slow
def test_what_the_noise_of_the_final_count_alone_costs() -> None:
    """Regions cut on exact counts, as small as may be confirmed: what better questions could bring this rule to."""
    [node] = nodes_of([load("adult")], replace(settings(k=10), test_share=0.2))
    bins, axes = node.hospital._bins, node.axes

    def ask(question: Question) -> tuple[Counts, Counts]:
        counts = question.layout(axes).count(bins, None)[None]
        return counts, counts

    noise = FederatedMondrian(k=10, counts="secure_dp").final_noise(10)
    found = {}
    for smallest in (20, 24, 28):
        regions = Growth(axes, Floor(smallest, 1), exact=False, threshold=1, max_rounds=60).run(ask)
        region_of = regions.router.route(bins)
        totals = np.bincount(region_of, minlength=len(regions))[regions.router.leaves]
        words = seeded_words(0)
        noisy = totals + sum(add_shares(np.zeros_like(totals), noise["scale"], 6, words) for _ in range(10))
        classes = Merging(regions, axes, noisy, lower_bound(noisy, 10, **noise), suppress=True).run(10)
        loss, label = loss_of(axes, classes.low, classes.high).mean(axis=1), classes.of_region[region_of]
        found[smallest] = float(np.where(label < 0, 1.0, loss[np.maximum(label, 0)]).mean())
    print(f"exact regions, noisy final count: {found}")
    assert 0.14 < min(found.values()) < 0.155


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["mondrian", "gfkmc", "k_member", "anneal"])
def test_a_reference_takes_four_questions(reference: str) -> None:
    nodes = nodes_of([node._table for node in adult_nodes(k=10)], reference_settings(reference))
    agreement = agree(nodes)
    counted, released = releases(nodes, agreement)
    assert pooled_counts(counted, released)[0] >= 10
    print(f"reference {reference}: ncp {mean_ncp(nodes):.4f}, {agreement.traffic}")
    assert agreement.traffic["questions"] == 4
    assert mean_ncp(nodes) < 0.75 * ncp_alone(adult_nodes(k=10)[0])


def reference_settings(reference: str) -> RunSettings:
    return replace(settings("federated_reference", k=10, reference=reference), test_share=0.2)
