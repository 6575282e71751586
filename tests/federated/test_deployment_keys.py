"""Whom a server lets in, and by what certificate nodes know it: the folder, and real TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fedanon.errors import ConfigError, DataError
from fedanon.federated.deployment import certificates
from fedanon.federated.deployment.certificates import days_left, new_authority, new_certificate
from fedanon.federated.deployment.server import Server
from fedanon.io.keys import node_keys

LISTEN = "127.0.0.1"
HOST = "federation.example.org"


def new_server(folder: Path, *, days: int = 365, ca_key: Path | None = None) -> Server:
    with socket.socket() as probe:  # nothing listens there
        probe.bind((LISTEN, 0))
        port = int(probe.getsockname()[1])
    return Server.init(folder, host=HOST, port=port, nodes=2, days=days, listen=LISTEN, ca_key=ca_key)


def new_public_key(folder: Path, name: str = "node.pub") -> Path:
    path = folder / name
    path.write_bytes(node_keys().public)
    return path


def trusts(ca: Path, server: Server, name: str = HOST) -> None:
    """A handshake between a client that knows ``ca`` alone and the server's key and certificate."""
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(server.folder / "server.crt", server.folder / "server.key")
    theirs = ssl.create_default_context(cafile=str(ca))
    with socket.create_server((LISTEN, 0)) as listener:
        answering = threading.Thread(target=_answer, args=(listener, ours))
        answering.start()
        try:
            plain = socket.create_connection(listener.getsockname(), timeout=10)
            with plain, theirs.wrap_socket(plain, server_hostname=name) as secure:
                assert secure.recv(2) == b"ok"
        finally:
            answering.join()


def _answer(listener: socket.socket, context: ssl.SSLContext) -> None:
    plain, _ = listener.accept()
    plain.settimeout(10)
    try:
        with plain, context.wrap_socket(plain, server_side=True) as secure:
            secure.sendall(b"ok")
    except OSError:
        pass  # the other side does not trust us


# ---- certificates -----------------------------------------------------------------------------------


def test_nodes_trust_a_renewed_certificate_by_the_ca_they_have(tmp_path):
    server = new_server(tmp_path / "server", days=20)
    ca = tmp_path / "ca-of-a-node.crt"
    ca.write_bytes((server.folder / "ca.crt").read_bytes())
    old = [(server.folder / name).read_bytes() for name in ("server.crt", "server.key")]
    trusts(ca, server)
    server.renew(days=400)
    assert not set(old) & {(server.folder / name).read_bytes() for name in ("server.crt", "server.key")}
    for name in (HOST, LISTEN, "localhost"):
        trusts(ca, server, name)
    assert server.days_left()["server.crt"] == 399
    assert ca.read_bytes() == (server.folder / "ca.crt").read_bytes()


def test_a_certificate_of_another_authority_or_for_another_host_is_not_trusted(tmp_path):
    server, other = new_server(tmp_path / "server"), new_server(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        trusts(other.folder / "ca.crt", server)
    with pytest.raises(ssl.SSLCertVerificationError):
        trusts(server.folder / "ca.crt", server, "elsewhere.example.org")


def test_the_key_of_the_authority_can_lie_elsewhere(tmp_path):
    ca_key = tmp_path / "safe.key"
    server = new_server(tmp_path / "server", ca_key=ca_key)
    assert not (server.folder / "ca.key").exists()
    assert ca_key.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="--ca-key"):
        server.renew(days=10)
    server.renew(days=10, ca_key=ca_key)
    trusts(server.folder / "ca.crt", server)
    with pytest.raises(ConfigError, match=r"safe\.key exists"):
        new_server(tmp_path / "another", ca_key=ca_key)


def test_renewing_with_a_foreign_key_changes_nothing(tmp_path):
    server, other = new_server(tmp_path / "server"), new_server(tmp_path / "other")
    before = (server.folder / "server.crt").read_bytes()
    for key in (other.folder / "ca.key", new_public_key(tmp_path)):
        with pytest.raises(ConfigError, match="key of the authority"):
            server.renew(days=10, ca_key=key)
    assert (server.folder / "server.crt").read_bytes() == before


def test_a_certificate_ends_with_its_authority(tmp_path, monkeypatch):
    monkeypatch.setattr(certificates, "AUTHORITY_DAYS", 5)
    made = new_certificate(new_authority(), [HOST], 365)
    (tmp_path / "server.crt").write_bytes(made.certificate)
    assert 4.9 < days_left(tmp_path / "server.crt") <= 5


def test_an_expired_certificate_is_told_before_a_run(tmp_path, monkeypatch):
    server = new_server(tmp_path / "server", days=10)
    server.register(new_public_key(tmp_path), "a")

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=11)

    monkeypatch.setattr(certificates, "datetime", Later)
    with pytest.raises(ConfigError, match="server renew"):
        server.run(insecure=False, resume=False)
    server.renew(days=10)
    assert days_left(server.folder / "server.crt") > 9
    assert datetime.now(UTC) < Later.now(UTC)


def test_a_file_that_is_no_certificate_is_named(tmp_path):
    with pytest.raises(DataError, match=r"node\.pub is not a certificate"):
        days_left(new_public_key(tmp_path))


# ---- the nodes --------------------------------------------------------------------------------------


def test_a_removed_key_never_comes_back_and_its_name_is_free(tmp_path):
    server, key = new_server(tmp_path / "server"), new_public_key(tmp_path)
    server.register(key, "a")
    assert server.remove("a") is False  # no server runs
    assert server.roster.names() == []
    with pytest.raises(ConfigError, match="This key was removed"):
        server.register(key, "b")
    server.register(new_public_key(tmp_path, "new.pub"), "a")
    assert server.roster.names() == ["a"]
    assert {path.stat().st_mode & 0o077 for path in server.folder.rglob("*")} == {0}


@pytest.mark.parametrize("name", ["b", "", "../nodes/a", "*"])
def test_an_unknown_name_is_told(tmp_path, name):
    server = new_server(tmp_path / "server")
    server.register(new_public_key(tmp_path), "a")
    with pytest.raises(ConfigError, match="is registered; registered: a"):
        server.remove(name)
    assert server.roster.names() == ["a"]
