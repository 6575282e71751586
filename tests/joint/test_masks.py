"""Masks cancel in the sum over all and hide every answer alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from fedanon.errors import UpdateRejectedError
from fedanon.joint.masks import (
    _common_secret,
    mask_counts,
    new_secret,
    pack_keys,
    public_key,
    read_keys,
    sum_masked_counts,
)

SECRETS = {number: new_secret() for number in range(5)}
KEYS = {number: public_key(secret) for number, secret in SECRETS.items()}


def answers(counts: dict[int, np.ndarray], step: int = 1) -> list[np.ndarray]:
    keys = {number: KEYS[number] for number in counts}
    return [mask_counts(counted, SECRETS[number], number, keys, step) for number, counted in counts.items()]


@given(st.lists(st.lists(st.integers(-1000, 10**8), min_size=3, max_size=3), min_size=2, max_size=5))
@hypothesis_settings(max_examples=50, deadline=None, derandomize=True)
def test_the_sum_is_that_of_the_counts(counts: list[list[int]]) -> None:
    counted = {number: np.array(line) for number, line in enumerate(counts)}
    np.testing.assert_array_equal(sum_masked_counts(answers(counted)), np.sum(counts, axis=0))


def test_any_of_the_answers_missing_leaves_noise() -> None:
    counted = {number: np.full(1000, 7) for number in range(4)}
    without = sum_masked_counts(answers(counted)[:-1])
    assert np.abs(without).mean() > 2**28, "uniform over 32 bits, not 21"


def test_masks_differ_from_step_to_step_and_from_circle_to_circle() -> None:
    nothing = np.zeros(1000, dtype=np.int64)
    one, other = answers({0: nothing, 1: nothing}, 1)[0], answers({0: nothing, 1: nothing}, 2)[0]
    third = answers({0: nothing, 1: nothing, 2: nothing}, 1)[0]
    assert max((one == other).mean(), (one == third).mean(), (other == third).mean()) < 0.01


def test_common_secrets_are_those_of_the_standard() -> None:
    """The example of RFC 7748, section 6.1: Bob's private key, Alice's public key, and what they share."""
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    alice = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    assert public_key(bob).hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    assert _common_secret(bob, alice).hex() == "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"


@pytest.mark.parametrize(
    "keys",
    [
        {0: KEYS[0]},
        {1: KEYS[1], 2: KEYS[2]},
        {0: KEYS[1], 1: KEYS[0]},
        {0: KEYS[0], 1: bytes(32)},
    ],
    ids=["alone", "without itself", "under another's key", "with a key that is none"],
)
def test_a_node_answers_only_in_company(keys: dict[int, bytes]) -> None:
    with pytest.raises(UpdateRejectedError):
        mask_counts(np.zeros(4, dtype=np.int64), SECRETS[0], 0, keys, 1)


def test_keys_travel() -> None:
    assert read_keys(pack_keys(KEYS)) == KEYS
    numbers, table, signed = pack_keys(KEYS)
    for bad in ([numbers, table[:-1]], [numbers, table.astype(np.int32)], [numbers * 0, table], [numbers, table * 0]):
        with pytest.raises(UpdateRejectedError):
            read_keys([*bad, signed])
    with pytest.raises(UpdateRejectedError, match="brings no keys"):
        read_keys([numbers[:0], table[:0], signed[:0]])
    for unreadable in (signed[:-1], signed[:, 1:], signed.astype(np.int32), signed.ravel()):
        with pytest.raises(UpdateRejectedError):
            read_keys([numbers, table, unreadable])
