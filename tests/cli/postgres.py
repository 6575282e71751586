"""A PostgreSQL server of its own in a temporary folder, reached by a socket in that folder alone."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PASSWORD = "correct horse"


@dataclass(frozen=True)
class Server:
    """A running server: where its socket is, and who may log in with :data:`PASSWORD`."""

    folder: Path
    user: str = "steward"

    @property
    def environment(self) -> dict[str, str]:
        """What PostgreSQL's own library reads."""
        return {"PGHOST": str(self.folder), "PGUSER": self.user, "PGPASSWORD": PASSWORD}


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`, if they are on this machine."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


@contextmanager
def running() -> Iterator[Server]:
    """A server that ends with the block."""
    tools = binaries()
    assert tools is not None
    # outside the folder of the tests, which is closed to the user the server must be: not root
    folder = Path(tempfile.mkdtemp(prefix="fedanon-pg-"))
    as_other: dict[str, Any] = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        as_other = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **as_other}
    password = folder / "password"
    password.write_text(PASSWORD)
    password.chmod(0o644)
    server = None
    try:
        login = ("-U", Server.user, "-A", "scram-sha-256", f"--pwfile={password}")
        subprocess.run(
            [tools / "initdb", "-D", folder / "data", *login, "--no-sync", "-E", "UTF8"], check=True, **quiet
        )
        settings = ("-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB")
        server = subprocess.Popen([tools / "postgres", "-D", folder / "data", "-k", folder, *settings], **quiet)
        deadline = time.monotonic() + 60
        while not _answers(folder):
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.1)
        yield Server(folder)
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)
            server.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _answers(folder: Path) -> bool:
    import psycopg

    try:
        psycopg.connect(host=str(folder), user=Server.user, password=PASSWORD, dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True
