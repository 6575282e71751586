"""A process for every message, without the seconds it takes to start Python and import what a message needs.

Flower starts `flwr-clientapp` for every message. Here that is a few lines that ask the node's main process to fork:
it has everything imported and does nothing else, so a fork is ready at once and shares its memory. If it does not
answer, the command does the work itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fedanon.federated.deployment import clientapp
from fedanon.federated.deployment.folders import FOLDER_MODE, private_folder, write_private

VARIABLE = "FEDANON_WORKER"
MAX_REQUEST = 65536

COMMAND = """#!/bin/sh
exec "{python}" -I -S -c '
import json, os, socket, sys
try:
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(os.environ["{variable}"])
    asked.sendall(json.dumps(sys.argv[1:]).encode())
    asked.shutdown(socket.SHUT_WR)
    answer = asked.recv(1)
except (OSError, KeyError):
    answer = b""
if not answer:
    os.execv("{python}", ["{python}", "-m", "{module}", *sys.argv[1:]])
' "$@"
"""


def install_command(folder: Path) -> Path:
    """Put `flwr-clientapp` into ``folder``, which is to come first on the path."""
    private_folder(folder)
    path = folder / clientapp.COMMAND
    write_private(path, COMMAND.format(python=sys.executable, variable=VARIABLE, module=clientapp.__name__))
    path.chmod(FOLDER_MODE)
    return folder


@contextlib.contextmanager
def listening() -> Iterator[socket.socket]:
    """A socket only this user can reach; a short path, since those of sockets are limited."""
    with tempfile.TemporaryDirectory(prefix="fedanon-") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Path(folder) / "worker"))
        listener.listen()
        listener.settimeout(0.5)
        yield listener


def serve(listener: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Fork a worker for every request, for as long as ``process`` lives."""
    clientapp.load()
    while process.poll() is None:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            _reap(process)
            continue
        with connection:
            arguments = _arguments(connection)
            if arguments is not None:
                _fork(arguments, listener)
                connection.sendall(b"1")


def _arguments(connection: socket.socket) -> list[str] | None:
    connection.settimeout(5)
    try:
        with connection.makefile("rb") as file:
            asked = json.loads(file.read(MAX_REQUEST))
    except (OSError, ValueError):
        return None
    return [str(argument) for argument in asked] if isinstance(asked, list) else None


def _fork(arguments: list[str], listener: socket.socket) -> None:
    if os.fork():
        return
    code = 1
    try:
        listener.close()
        sys.argv = [clientapp.COMMAND, *arguments]
        clientapp.main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)  # never back into the loop of the parent


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Clear workers that have ended, and leave the status of ``process`` to its owner."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if ended.si_pid == process.pid:
                return
            os.waitpid(ended.si_pid, 0)
