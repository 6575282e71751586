"""Hostile clients of a simulation: what they do to their rows or to what they send. Never part of a deployed node.

Only :mod:`fedanon.federated.simulation` makes them; the client app and the nodes do not import this package, so the
settings `hostile` and `tampering` mean nothing to a hospital.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.learning.malicious.base import Tampering

TAMPERINGS: Registry[type[Tampering]] = Registry("tampering", __name__)
