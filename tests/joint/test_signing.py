"""Keys for masks are signed: a server that hands out others than the nodes' own is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Message

from fedanon.errors import ConfigError, DataError, InfeasibleError, PrivacyViolationError
from fedanon.federated import wire
from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.engines import RUN_ID
from fedanon.federated.server import FederatedRun
from fedanon.io.keys import node_keys
from fedanon.joint.masks import mask_counts, new_secret, pack_keys, public_key, sum_masked_counts
from fedanon.joint.signing import SIGNATURE_BYTES, NodeIdentity, _is_valid
from tests.federated.conftest import settings
from tests.federated.deployed import PATIENCE, deployed
from tests.joint.signed_grid import NODES, SECURE, Config, Keys, SignedGrid, counts_in
from tests.joint.test_engines import agreed


@pytest.fixture
def configs(tmp_path: Path) -> list[Config]:
    """The settings of nodes that know each other, and of a stranger."""
    known = tmp_path / "peers"
    known.mkdir()
    for number in range(NODES + 1):
        pair = node_keys()
        (tmp_path / f"{number}.key").write_bytes(pair.private)
        if number < NODES:
            (known / f"{number}.pub").write_bytes(pair.public)
    return [{"identity-key": str(tmp_path / f"{n}.key"), "peer-keys": str(known)} for n in range(NODES + 1)]


# ---- signatures -------------------------------------------------------------------------------------

SECRETS = [new_secret() for _ in range(3)]
KEYS = {number: public_key(secret) for number, secret in enumerate(SECRETS)}
MINE = public_key(new_secret())  # the server's own
RUN = 2**63 + 7


def check(configs: list[Config], keys: Keys, signatures: Keys) -> None:
    NodeIdentity.from_config(configs[0]).check(RUN, keys, pack_keys(keys, signatures)[-1])


def sign(config: Config, number: int, key: bytes, run: int = RUN) -> bytes:
    return NodeIdentity.from_config(config).signature(run, number, key)


def test_keys_signed_by_nodes_of_the_list_are_taken(configs: list[Config]) -> None:
    signatures = {number: sign(configs[number], number, key) for number, key in KEYS.items()}
    check(configs, KEYS, signatures)
    check(configs, {0: KEYS[0], 2: KEYS[2]}, signatures)


Lie = Callable[[list[Config], Keys, Keys], None]


def swapped(_: list[Config], keys: Keys, __: Keys) -> None:
    keys[1] = MINE


def swapped_and_signed_by_a_stranger(configs: list[Config], keys: Keys, signatures: Keys) -> None:
    keys[1], signatures[1] = MINE, sign(configs[-1], 1, MINE)


def of_another_run(configs: list[Config], keys: Keys, signatures: Keys) -> None:
    signatures[1] = sign(configs[1], 1, keys[1], RUN + 1)


def for_another_number(configs: list[Config], keys: Keys, signatures: Keys) -> None:
    signatures[1] = sign(configs[1], 3, keys[1])


def exchanged(_: list[Config], keys: Keys, signatures: Keys) -> None:
    keys[1], keys[2] = keys[2], keys[1]
    signatures[1], signatures[2] = signatures[2], signatures[1]


def missing(_: list[Config], __: Keys, signatures: Keys) -> None:
    del signatures[1]


def own_missing(_: list[Config], __: Keys, signatures: Keys) -> None:
    del signatures[0]


def repeated(configs: list[Config], keys: Keys, signatures: Keys) -> None:
    signatures[2] = sign(configs[1], 2, keys[2])


def in_the_name_of_another(configs: list[Config], keys: Keys, signatures: Keys) -> None:
    signatures[1] = signatures[1][:32] + sign(configs[-1], 1, keys[1])[32:]


def zeros_in_the_name_of_another(_: list[Config], __: Keys, signatures: Keys) -> None:
    signatures[1] = signatures[1][:32] + bytes(SIGNATURE_BYTES - 32)


LIES: dict[Lie, str] = {
    swapped: "key of number 1 has a signature for another run, number or key",
    swapped_and_signed_by_a_stranger: "key of number 1 is signed by none of its peer_keys",
    of_another_run: "key of number 1 has a signature for another run, number or key",
    for_another_number: "key of number 1 has a signature for another run, number or key",
    exchanged: "key of number 1 has a signature for another run, number or key",
    missing: "key of number 1 is not signed",
    own_missing: "key of number 0 is not signed",
    repeated: "key of number 2 is signed by a node that signed another key",
    in_the_name_of_another: "key of number 1 has a signature for another run, number or key",
    zeros_in_the_name_of_another: "key of number 1 has a signature for another run, number or key",
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_other_keys_and_signatures_are_refused(configs: list[Config], lie: Lie) -> None:
    keys, signatures = dict(KEYS), {number: sign(configs[number], number, key) for number, key in KEYS.items()}
    lie(configs, keys, signatures)
    with pytest.raises(PrivacyViolationError, match=LIES[lie]):
        check(configs, keys, signatures)


def test_signatures_are_those_of_the_standard() -> None:
    """RFC 6979, A.2.6: the public key, and the signature of "sample" with SHA-384."""
    x = (
        "ec3a4e415b4e19a4568618029f427fa5da9a8bc4ae92e02e06aae5286b300c64def8f0ea9055866064a254515480bc13",
        "8015d9b72d7d57244ea8ef9ac0c621896708a59367f9dfb9f54ca84b3f1c9db1288b231c3ae0d4fe7344fd2533264720",
    )
    signed = bytes.fromhex(
        "94edbb92a5ecb8aad4736e56c691916b3f88140666ce9fa73d64c4ea95ad133c81a648152e44acf96e36dd1e80fabe46"
        "99ef4aeb15f178cea1fe40db2603138f130e740a19624526203b6351d0a3a94fa329c145786e679e7b82c71a38628ac8"
    )
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP384R1(), bytes.fromhex("04" + "".join(x)))
    assert _is_valid(public, signed, b"sample")
    assert not _is_valid(public, signed, b"Sample")


# ---- settings ---------------------------------------------------------------------------------------


def test_a_file_of_keys_is_as_good_as_a_folder(configs: list[Config], tmp_path: Path) -> None:
    lines = [path.read_bytes().strip() + b" a comment\n" for path in sorted((tmp_path / "peers").iterdir())]
    (tmp_path / "keys").write_bytes(b"\n".join(lines))
    as_file = NodeIdentity.from_config(configs[0] | {"peer-keys": str(tmp_path / "keys")}).peers
    assert as_file is not None
    assert as_file.keys() == NodeIdentity.from_config(configs[0]).peers.keys()  # type: ignore[union-attr]


def test_a_node_knows_itself(configs: list[Config], tmp_path: Path) -> None:
    (tmp_path / "peers" / "0.pub").unlink()
    assert len(NodeIdentity.from_config(configs[0]).peers or ()) == NODES


def test_a_node_without_the_settings_signs_and_asks_for_nothing(configs: list[Config]) -> None:
    identity = NodeIdentity.from_config({"identity-key": "", "peer-keys": ""})
    assert identity.signature(RUN, 0, MINE) == b""
    identity.check(RUN, KEYS, pack_keys(KEYS)[-1])
    NodeIdentity.from_config({"identity-key": configs[0]["identity-key"]}).check(RUN, KEYS, pack_keys(KEYS)[-1])


def test_settings_that_cannot_be_are_told(configs: list[Config], tmp_path: Path) -> None:
    own, small = Path(configs[0]["identity-key"]), ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(ConfigError, match="needs an identity_key too"):
        NodeIdentity.from_config({"peer-keys": configs[0]["peer-keys"]})
    with pytest.raises(DataError, match=r"key file absent\.key cannot be read"):
        NodeIdentity.from_config({"identity-key": str(tmp_path / "absent.key")})
    with pytest.raises(DataError, match="key file absent cannot be read"):
        NodeIdentity.from_config(configs[0] | {"peer-keys": str(tmp_path / "absent")})
    for text in (b"no key", node_keys().public):
        own.write_bytes(text)
        with pytest.raises(ConfigError, match=r"identity_key 0\.key is not a private key without a password"):
            NodeIdentity.from_config(configs[0])
    own.write_bytes(small.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()))
    with pytest.raises(ConfigError, match=r"identity_key 0\.key must be on P-384"):
        NodeIdentity.from_config(configs[0])
    listed = tmp_path / "peers" / "1.pub"
    listed.write_bytes(small.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH))
    with pytest.raises(ConfigError, match=r"keys of 1\.pub in peer_keys must be on P-384"):
        NodeIdentity.from_config(configs[2])
    listed.write_bytes(node_keys().private)
    with pytest.raises(ConfigError, match=r"A line of 1\.pub in peer_keys is not the public key"):
        NodeIdentity.from_config(configs[2])


# ---- nodes ------------------------------------------------------------------------------------------


def numbered(configs: list[Config], numbers: Any = range(NODES)) -> dict[int, Config]:
    return {number: configs[number] for number in numbers}


def test_signed_sums_lead_to_the_same_recoding(configs: list[Config]) -> None:
    signed, unsigned = (
        FederatedRun(SignedGrid(chosen), settings("lr", rounds=1, **SECURE)).run() for chosen in (numbered(configs), {})
    )
    assert agreed(signed)["nodes"] == [0, 1, 2, 3, 4]
    assert agreed(signed)["recoding_sha256"] == agreed(unsigned)["recoding_sha256"]


def test_a_server_with_a_key_of_its_own_reads_counts_unless_keys_are_signed(configs: list[Config]) -> None:
    mine = new_secret()
    plain = SignedGrid({}, method_settings={"k": 10})
    true = counts_in(plain.count(1, None))
    assert true.sum() > 1000
    for chosen in ({}, numbered(configs)):
        grid = SignedGrid(chosen)
        keys, signatures = grid.join()
        offered = {0: keys[0], 1: public_key(mine)}
        reply = grid.count(1, offered, signatures)
        if chosen:
            assert reply.has_error()
            assert not reply.has_content()
            assert "key of number 1 has a signature for another run, number or key" in reply.error.reason
            assert not grid.count(2, keys, signatures).has_error(), "the nodes' own keys are answered"
        else:
            ours = mask_counts(np.zeros_like(true), mine, 1, offered, 1)
            np.testing.assert_array_equal(sum_masked_counts([counts_in(reply), ours]), true)


def test_a_node_that_asks_for_masks_gives_no_plain_counts() -> None:
    for wanted, refused in [("secure, secure_dp", True), ("plain", False), ("", False)]:
        reply = SignedGrid({0: {"counts": wanted}}, method_settings={"k": 10}).count(1, None)
        assert reply.has_error() == refused
        if refused:
            assert "This node counts jointly only by secure or secure_dp, not by plain." in reply.error.reason


def test_rules_for_counts_nobody_knows_are_told() -> None:
    with pytest.raises(ConfigError, match=r"Unknown rules for counts: open\. Known: plain, threshold, secure, dp, "):
        NodeConfig(counts="secure, open")


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_node_answers_no_lie(configs: list[Config], monkeypatch: pytest.MonkeyPatch, lie: Lie) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RUN", RUN_ID)
    grid = SignedGrid(numbered(configs))
    keys, signatures = grid.join()
    lie(configs, keys, signatures)
    reply = grid.count(1, keys, signatures)
    assert not reply.has_content()
    assert LIES[lie] in reply.error.reason


def test_a_run_whose_server_swaps_a_key_stops(configs: list[Config]) -> None:
    grid = SignedGrid(numbered(configs))

    def swap(message: Message) -> None:
        if message.metadata.message_type == wire.COUNT:
            *query, numbers, table, signed = wire.read_arrays(message)
            table = table.copy()
            table[1] = np.frombuffer(MINE, dtype=np.uint8)
            message.content[wire.ARRAYS] = wire.pack_arrays([*query, numbers, table, signed])

    grid.asked = swap
    with pytest.raises(InfeasibleError, match=r"0 of 5 nodes are left.*Nothing was released"):
        FederatedRun(grid, settings("lr", rounds=1, **SECURE)).run()
    assert len(grid.reasons) == NODES
    assert all("has a signature for another run, number or key" in reason for reason in grid.reasons)


def test_a_node_that_asks_for_signatures_leaves_those_who_do_not_sign(configs: list[Config]) -> None:
    """It refuses; the others, who ask for none, go on as ever."""
    grid = SignedGrid(numbered(configs, [0]))
    outcome = FederatedRun(grid, settings("lr", rounds=1, **SECURE)).run()
    assert agreed(outcome)["nodes"] == [1, 2, 3, 4]
    assert grid.reasons == ["This node sums only with nodes it knows: the key of number 1 is not signed."]


def test_those_who_only_sign_satisfy_those_who_ask(configs: list[Config]) -> None:
    signing = {number: {"identity-key": configs[number]["identity-key"]} for number in range(1, NODES)}
    outcome = FederatedRun(SignedGrid(numbered(configs, [0]) | signing), settings("lr", rounds=1, **SECURE)).run()
    assert agreed(outcome)["nodes"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("text", ["00" * 5, "no hexadecimal"])
def test_a_node_whose_signature_cannot_be_read_is_left_out(configs: list[Config], text: str) -> None:
    grid = SignedGrid(numbered(configs))

    def spoil(reply: Message) -> None:
        if reply.metadata.message_type == wire.JOIN and reply.metadata.src_node_id == 3:
            reply.content[wire.CONFIG]["signature"] = text  # type: ignore[index]

    grid.answered = spoil
    outcome = FederatedRun(grid, settings("lr", rounds=1, **SECURE)).run()
    assert [(entry["node"], "signature cannot be read" in entry["reason"]) for entry in outcome.rejected] == [(3, True)]
    assert agreed(outcome)["nodes"] == [0, 1, 3, 4]


# ---- deployed ---------------------------------------------------------------------------------------

#: starts `fedanon server run` with an app that hands out a key of its own in place of node 1's
LYING_SERVER = '''
import sys
from fedanon.federated.deployment import folders
folders.APP += """
from fedanon.joint.masks import new_secret, public_key
from fedanon.federated.joint_server import JointSession
true, mine = JointSession.keys.fget, public_key(new_secret())
JointSession.keys = property(lambda self: true(self) | {1: mine})
"""
from fedanon.cli.__main__ import main
sys.argv = ["fedanon", *sys.argv[4:]]
main()
'''


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_deployed_nodes_refuse_a_server_that_swaps_a_key(tmp_path: Path) -> None:
    run = 'method = "federated_mondrian"\nmodel = "lr"\nrounds = 1\nmethod_settings = { k = 6, counts = "secure" }\n'
    with deployed(tmp_path, run, min_k=1, signed=True) as found:
        server = found.start_server(prefix=[sys.executable, "-c", LYING_SERVER])
        for number in range(3):
            found.start_node(number)
        assert server.wait(PATIENCE) == 5
        said = found.said("server.log")
        assert said.count("This node refuses to answer: peers.") == 3, said
        reasons = "".join(found.said(f"node{number}.log") for number in range(3))
        assert reasons.count("the key of number 1 has a signature for another run, number or key") == 3
        assert "0 of 3 nodes are left" in said
        assert not list((found.server.folder / "results").glob("*"))


# ---- Ray --------------------------------------------------------------------------------------------

#: Ray's nodes have no settings of their own: an app around ours gives them
ON_RAY = """
import json, sys
from flwr.clientapp import ClientApp
from fedanon.federated import engines
from fedanon.federated.client import client_app
from fedanon.federated.server import FederatedRun
from fedanon.learning.settings import RunSettings

configs, chosen = json.loads(sys.argv[1]), RunSettings(**json.loads(sys.argv[2]))

class Configured(ClientApp):
    def __init__(self, *arguments):
        super().__init__()
        self.arguments = arguments

    def __call__(self, message, context):
        context.node_config.update(configs[context.node_config["partition-id"]])
        return client_app(*self.arguments)(message, context)

engines.client_app = Configured
outcome = engines.run_with_ray(chosen, lambda grid: FederatedRun(grid, chosen))
print("nodes", outcome.joint["nodes"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("strangers", "left"), [(0, [0, 1, 2, 3]), (1, [1, 2, 3])])
def test_nodes_of_ray_sign_too(configs: list[Config], strangers: int, left: list[int]) -> None:
    """Where the last of four is a stranger, the one who asks leaves, and the others, who only sign, go on."""
    chosen = {"nodes": 4, "dataset": "randhie", "rounds": 1, **SECURE}
    signing = [{"identity-key": configs[number]["identity-key"]} for number in (1, 2, NODES if strangers else 3)]
    arguments = [sys.executable, "-c", ON_RAY, json.dumps([configs[0], *signing]), json.dumps(chosen)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert f"nodes {left}" in done.stdout, done.stderr
    refused = "the key of number 3 is signed by none of its peer_keys" in done.stdout + done.stderr
    assert refused == bool(strangers)
