"""Does it hold up: attacks on releases, on models trained from them and on federations, each against guessing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.attacks.base import Attack

ATTACKS: Registry[type[Attack]] = Registry("attack", __name__, group=__name__)
