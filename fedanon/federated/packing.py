"""What a message holds, packed into one record on its way between a deployed server and its nodes.

A SuperLink stores and serves every record, array and piece of an array by a request of its own, each of which costs it
more than the numbers in it. A message that came packed is answered packed, so other servers and nodes need not know.
"""

from __future__ import annotations

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as PlainRecords

PACKED, DATA = "packed", "data"
#: what is larger travels in the pieces Flower makes of it
MAX_BYTES = 8 * 2**20


def pack(content: RecordDict) -> RecordDict:
    """All records in one; as they are, if they are large."""
    data = recorddict_to_proto(content).SerializeToString()
    return content if len(data) > MAX_BYTES else RecordDict({PACKED: ConfigRecord({DATA: data})})


def unpack(content: RecordDict) -> RecordDict:
    """The records that were packed; what is not packed, or cannot be read, as it is."""
    record = content.get(PACKED)
    data = record.get(DATA) if isinstance(record, ConfigRecord) else None
    if len(content) != 1 or not isinstance(data, bytes):
        return content
    try:
        return recorddict_from_proto(PlainRecords.FromString(data))
    except Exception:  # whoever reads the records misses those that were agreed on
        return content


def answer_in_kind(message: Message, context: Context, answer: ClientAppCallable) -> Message:
    """A mod of a ClientApp: the app sees plain records."""
    content = message.content
    message.content = unpack(content)
    reply = answer(message, context)
    if PACKED in content and reply.has_content():
        reply.content = pack(reply.content)
    return reply
