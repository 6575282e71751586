"""How privacy is reached: one file a method, registered under the name the command line uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.anonymizers.base import Anonymizer

ANONYMIZERS: Registry[type[Anonymizer]] = Registry("anonymizer", __name__, "fedanon.sdc.methods", group=__name__)
