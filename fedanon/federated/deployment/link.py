"""The running SuperLink: started, waited for, spoken to and ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from fedanon.errors import ConfigError, InfeasibleError
from fedanon.federated.deployment import processes
from fedanon.federated.deployment.config import ServerConfig
from fedanon.federated.deployment.folders import private_folder, toml_text, write_private
from fedanon.federated.deployment.presence import who_is_present
from fedanon.federated.deployment.processes import end, running
from fedanon.federated.deployment.serving import FOLDER_VARIABLE, RUN_PID_FILE, SECURITY_VARIABLE

#: a SuperLink that ends is noticed at once; this is for one that hangs, and a busy machine takes its time
START_SECONDS = 300
LOOK_SECONDS = 0.2
#: how long Flower may take to report the end of a run whose process has ended
LAST_WORDS_SECONDS = 10.0


class Link:
    """A SuperLink on this machine, as a context: inside it runs.

    Parameters
    ----------
    folder : of the server.
    config : of the server.
    insecure : without TLS and without keys of nodes.
    """

    NAME = "fedanon"

    def __init__(self, folder: Path, config: ServerConfig, *, insecure: bool) -> None:
        self._folder = folder
        self._config = config
        self._insecure = insecure
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """For Flower's commands that speak to this SuperLink."""
        home = private_folder(self._folder / "flower")
        trust = {"insecure": True} if self._insecure else {"root-certificates": str(self._folder / "ca.crt")}
        table = {"address": f"{self._config.here}:{self._config.port}", **trust}
        text = f'[superlink]\ndefault = "{self.NAME}"\n\n[superlink.{self.NAME}]\n{toml_text(table)}'
        write_private(home / "config.toml", text)
        more = {
            FOLDER_VARIABLE: str(self._folder),
            SECURITY_VARIABLE: "none" if self._insecure else "tls",
            # a server starts one task per run, so it need not look for tasks often
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "1",
            # a proxy on this machine may say on whose behalf a request comes: the fence relies on it
            "FORWARDED_ALLOW_IPS": ",".join(dict.fromkeys(("127.0.0.1", self._config.here))),
        }
        return processes.environment(home) | more

    def is_up(self) -> bool:
        """Whether something answers at the port."""
        try:
            socket.create_connection((self._config.here, self._config.port), timeout=1).close()
        except OSError:
            return False
        return True

    def stream(self, arguments: Sequence[str]) -> None:
        """Run `flwr` and show what it says, for as long as the SuperLink and the run's own process live."""
        assert self._process is not None
        seen, gone = False, 0.0
        with running([processes.command("flwr"), *arguments], self.environment) as client:
            while client.poll() is None:
                if self._process.poll() is not None:
                    raise InfeasibleError("The SuperLink ended during the run; superlink.log says why.")
                alive = who_is_present(self._folder / RUN_PID_FILE) is not None
                seen, gone = seen or alive, 0.0 if alive or not seen else gone + LOOK_SECONDS
                if gone > LAST_WORDS_SECONDS:
                    return
                time.sleep(LOOK_SECONDS)

    def wait(self) -> None:
        """Wait until the SuperLink ends."""
        assert self._process is not None
        self._process.wait()
        raise InfeasibleError("The SuperLink ended; superlink.log says why.")

    # ---- the process ----------------------------------------------------------------------------

    def __enter__(self) -> Link:
        end = time.monotonic() + LAST_WORDS_SECONDS
        while self.is_up():
            if time.monotonic() > end:  # the processes of a server that was killed have gone by now
                raise ConfigError(f"Port {self._config.port} is taken by another program.")
            time.sleep(LOOK_SECONDS)
        # a process started by us must not outlive a failed start
        try:
            with self._log() as log:
                self._process = processes.start(self._command(), self.environment, log)
            self._wait()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            end(self._process)

    def _log(self) -> Any:
        path = self._folder / "superlink.log"
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")

    def _wait(self) -> None:
        assert self._process is not None
        end = time.monotonic() + START_SECONDS
        while not self.is_up():
            if self._process.poll() is not None or time.monotonic() > end:
                raise InfeasibleError("The SuperLink did not start; superlink.log says why.")
            time.sleep(0.1)

    def _command(self) -> list[str]:
        start = [sys.executable, "-m", "fedanon.federated.deployment.superlink"]
        start += ["--host", self._config.listen, "--port", str(self._config.port)]
        start += ["--disable-runtime-dependency-installation"]
        if self._insecure:
            return [*start, "--insecure", "--database", str(self._folder / "state-insecure.db")]
        start += ["--enable-supernode-auth", "--database", str(self._folder / "state.db")]
        for option, name in (("certfile", "server.crt"), ("keyfile", "server.key"), ("ca-certfile", "ca.crt")):
            start += [f"--ssl-{option}", str(self._folder / name)]
        return start
