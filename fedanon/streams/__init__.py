"""Readings published as they come: on a gateway, within a bounded time, under a claim about all that was published.

Records (nothing links the readings of a person) are generalized by one of :data:`RECORD_METHODS`; the readings of a
person that must stay one series by sticky classes (:mod:`fedanon.streams.people`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon._lazy import lazy_exports
from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.streams.base import RecordMethod
    from fedanon.streams.release import StreamRelease
    from fedanon.streams.replay import replay_people, replay_records
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "RecordMethod": "fedanon.streams.base",
            "StreamRelease": "fedanon.streams.release",
            "replay_people": "fedanon.streams.replay",
            "replay_records": "fedanon.streams.replay",
        },
    )

__all__ = ["RECORD_METHODS", "RecordMethod", "StreamRelease", "replay_people", "replay_records"]

RECORD_METHODS: Registry[type[RecordMethod]] = Registry(
    "stream method", "fedanon.streams.methods", group="fedanon.stream_methods"
)
