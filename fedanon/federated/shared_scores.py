"""Private scores with the noise of one: nodes add shares of it to their histograms and send them behind masks.

Where every node adds whole noise, a sum over ten has ten times its variance. Here the shares of more than half of the
nodes make up the whole noise, and the server reads only the sum, as in joint counts. So a node does this only with
nodes that it knows (`peer_keys`), of which it believes more than half to be honest; else it adds whole noise alone.
Every evaluation has noise and masks of its own, so its nodes may be others than those of the last.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from flwr.app import Context
from numpy.typing import NDArray

from fedanon.errors import RefusedError, UpdateRejectedError
from fedanon.federated import joint_state
from fedanon.federated.policy import NodePolicy
from fedanon.joint.masks import Keys, mask_counts, pack_keys, public_key, sum_masked_counts
from fedanon.joint.noise import add_noise_shares
from fedanon.joint.signing import NodeIdentity
from fedanon.learning.node import Node
from fedanon.learning.private_scores import FINE_EDGES, HISTOGRAM, MASKED, MAX_COUNT, add_noise, read_histogram
from fedanon.learning.rounds import Reply
from fedanon.models.base import Parameters
from fedanon.privacy.accounting.noise import SecureNoise
from fedanon.types import CountArray

log = logging.getLogger("fedanon")

#: fewer nodes hide nobody
MIN_NODES = 2


# ---- a node --------------------------------------------------------------------------------------


def offer_key(context: Context, policy: NodePolicy, node: Node) -> tuple[bytes, ...]:
    """The node's public key for the run and its signature; nothing where it adds whole noise or knows too few nodes."""
    if node.rules.scores != "private" or policy.score_noise != "shared":
        return ()
    identity = NodeIdentity.from_config(context.node_config)
    if len(identity.peers or ()) - 1 < max(policy.min_peers, MIN_NODES - 1):
        return ()
    key = public_key(_secret(context))
    return key, identity.signature(context.run_id, node.number, key)


def check_peers(context: Context, policy: NodePolicy, node: Node, keys: Keys, signatures: NDArray[Any]) -> Keys:
    """The nodes with which noise is shared, none if this one is not among them; RefusedError for those it must not."""
    if node.number not in keys:
        return {}
    if not (offered := offer_key(context, policy, node)) or keys[node.number] != offered[0]:
        raise RefusedError("peers", "Noise is to be shared by a key that this node has not offered.")
    if len(keys) - 1 < max(policy.min_peers, MIN_NODES - 1):
        raise RefusedError("peers", f"Noise is to be shared with {len(keys) - 1} other nodes, not {policy.min_peers}.")
    NodeIdentity.from_config(context.node_config).check(context.run_id, keys, signatures)
    return keys


def count_privately(
    context: Context, policy: NodePolicy, node: Node, parameters: Parameters, number: int, peers: Keys
) -> dict[str, list[int]]:
    """The histogram of a node's test people: with a share of the noise behind masks, or with all of it."""
    if not peers:
        noisy = add_noise(node.count_predictions(parameters), policy.score_epsilon, SecureNoise())
        return {HISTOGRAM: noisy.ravel().tolist()}
    exact = node.count_predictions(parameters, FINE_EDGES).ravel()
    noisy = add_noise_shares(exact, 1.0 / policy.score_epsilon, enough(len(peers)))
    masked = mask_counts(noisy, _secret(context), node.number, peers, number)
    return {MASKED: masked.tolist()}


def _secret(context: Context) -> bytes:
    return joint_state.secret(context, joint_state.SCORE_SECRET)


def enough(n_nodes: int) -> int:
    """How many shares make up the whole noise: those of more than half of the nodes."""
    return n_nodes // 2 + 1


# ---- the server ----------------------------------------------------------------------------------


def pack_score_keys(
    score_keys: Mapping[int, tuple[bytes, bytes]], numbers: Mapping[int, int], nodes: Sequence[int]
) -> list[NDArray[Any]]:
    """The keys of nodes for the wire; nothing if too few have one."""
    if len(nodes) < MIN_NODES:
        return []
    keys, signatures = ({numbers[node]: score_keys[node][part] for node in nodes} for part in (0, 1))
    return pack_keys(keys, signatures)


def add_up_shares(replies: Sequence[Reply], asked: Sequence[int]) -> tuple[list[Reply], list[int]]:
    """Replies with the sum of what came behind masks, as the part of the first of them; and who has not sent any.

    Masks cancel only if all nodes that were asked answer; without one of them the round has no such scores.
    """
    masked: dict[int, CountArray] = {}
    for reply in replies:
        try:
            found, _ = reply.read_scores()
            if MASKED in found and reply.node in asked:
                masked[reply.node] = read_histogram(found[MASKED], FINE_EDGES, bound=2**31)
        except UpdateRejectedError:
            continue  # whoever reads it says so
    missing = [node for node in asked if node not in masked]
    if not masked or missing:
        if masked:
            log.warning(
                "the private scores of %d nodes cannot be read: %d others are missing", len(masked), len(missing)
            )
        return list(replies), missing
    total = sum_masked_counts(masked.values())
    if np.abs(total).max() > MAX_COUNT:
        log.warning("the private scores of %d nodes cannot be read: one of them has sent something else", len(masked))
        return list(replies), []
    first = next(iter(masked))
    parts = {node: total if node == first else np.zeros_like(total) for node in masked}
    return [replace(reply, shared=parts.get(reply.node)) for reply in replies], []
