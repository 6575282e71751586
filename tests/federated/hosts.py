"""Separate hosts on one machine: network namespaces joined by a bridge, each with an address and a loopback of its own.

The bridge lies in a namespace too, so the network of this machine is not touched, and no host reaches the outside.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

NETWORK = "10.213.0."


class NoNamespacesError(Exception):
    """Network namespaces cannot be made here."""


@dataclass(frozen=True)
class Host:
    """A network namespace."""

    namespace: str
    address: str

    def inside(self, *command: str) -> list[str]:
        """A command, to be run on this host."""
        return ["ip", "netns", "exec", self.namespace, *command]


@contextlib.contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """So many hosts on one bridge; all is removed at the end, also after a failure.

    Raises
    ------
    NoNamespacesError
        If the system does not let us.
    """
    if shutil.which("ip") is None:
        raise NoNamespacesError("the command ip (iproute2) is missing")
    mark = f"fedanon{os.getpid()}"
    switch, made = f"{mark}-switch", [Host(f"{mark}-{i}", f"{NETWORK}{i + 1}") for i in range(count)]
    try:
        _make(switch, made)
        yield made
    finally:
        for namespace in [switch, *(host.namespace for host in made)]:
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)


def _make(switch: str, made: Sequence[Host]) -> None:
    _ip("netns", "add", switch)
    _ip("-n", switch, "link", "add", "bridge0", "type", "bridge")
    _ip("-n", switch, "link", "set", "bridge0", "up")
    for i, host in enumerate(made):
        _ip("netns", "add", host.namespace)
        ends = ("eth0", "netns", host.namespace, "type", "veth", "peer", "name", f"port{i}", "netns", switch)
        _ip("link", "add", *ends)
        _ip("-n", switch, "link", "set", f"port{i}", "master", "bridge0", "up")
        _ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
        _ip("-n", host.namespace, "link", "set", "eth0", "up")
        _ip("-n", host.namespace, "link", "set", "lo", "up")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNamespacesError(f"ip {' '.join(arguments[:2])}: {done.stderr.strip()}")
