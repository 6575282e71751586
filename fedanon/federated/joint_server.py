"""Joint anonymization over Flower, the server's side: messages to the nodes that take part; one that fails is out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from flwr.app import Message, RecordDict

from fedanon.errors import DataError, InfeasibleError, SchemaError, UpdateRejectedError
from fedanon.federated import wire
from fedanon.io.atomic import atomic_write
from fedanon.joint.axes import Axis
from fedanon.joint.masks import KEY_BYTES
from fedanon.joint.node import make_method
from fedanon.joint.protocol import Agreement, JointProtocol, check_same_axes
from fedanon.joint.query_runner import Arrays, Read
from fedanon.joint.signing import SIGNATURE_BYTES
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.settings import RunSettings
from fedanon.types import CountArray

#: sends a message to nodes (round, kind, nodes, content) and returns the good replies in the order of their numbers
Send = Callable[[int, str, Sequence[int], RecordDict], list[Message]]
#: notes that a node is left out: step, node, reason
Reject = Callable[[int, int, str], None]


class JointSession:
    """The transport of :mod:`fedanon.joint.query_runner` by messages of Flower.

    Parameters
    ----------
    settings : of the run.
    send, reject : see :data:`Send` and :data:`Reject`.
    """

    def __init__(self, settings: RunSettings, send: Send, reject: Reject) -> None:
        self._settings = settings
        self._send_messages = send
        self._reject = reject
        self._joined = 0
        self._keys: dict[int, bytes] = {}
        self._signatures: dict[int, bytes] = {}
        #: the number of every node that takes part
        self.numbers: dict[int, int] = {}

    @property
    def keys(self) -> dict[int, bytes]:
        """Public keys of the nodes that take part, by number."""
        return {number: self._keys[node] for node, number in self.numbers.items()}

    @property
    def signatures(self) -> dict[int, bytes]:
        """Signatures of these keys, passed on as they came: the nodes judge them."""
        return {number: self._signatures[node] for node, number in self.numbers.items()}

    def agree(self, nodes: Sequence[int], numbers: dict[int, int]) -> Agreement:
        """Run the protocol with ``nodes``; their numbers are noted in ``numbers`` as they join."""
        method = make_method(self._settings)
        method.check_possible()
        axes, persons = self._join(nodes, numbers, secure=method.disclosure.secure)
        return JointProtocol(method, axes, self, persons=persons, n_nodes=self._joined).run()

    def _join(self, nodes: Sequence[int], numbers: dict[int, int], *, secure: bool) -> tuple[list[Axis], bool]:
        """Ask every node who it is; those that mean something else by the same columns are left out."""
        common: dict[int, tuple[str, str, bool]] = {}
        axes: dict[int, Arrays] = {}
        for reply in self._send_messages(0, wire.JOIN, nodes, wire.request_content(0, wire.pack_arrays([]))):
            node = reply.metadata.src_node_id
            try:
                number, common[node], key, found_axes, signature = wire.read_join(reply)
                if number in numbers.values():
                    raise UpdateRejectedError("another node has its number")
                if secure and (len(key) != KEY_BYTES or key in self._keys.values()):
                    raise UpdateRejectedError("it sends no key of its own")
                if len(signature) not in (0, SIGNATURE_BYTES):
                    raise UpdateRejectedError("its signature cannot be read")
                numbers[node], self._keys[node], axes[node] = number, key, found_axes
                self._signatures[node] = signature
            except UpdateRejectedError as error:
                self._reject(0, node, str(error))
        self.numbers = {node: numbers[node] for node in numbers if node in axes}
        if not self.numbers:
            raise InfeasibleError(f"None of {len(nodes)} nodes could prepare its data; the log has the first reasons.")
        (most, count), *others = Counter(common[node] for node in self.numbers).most_common()
        if 2 * count <= len(self.numbers):
            raise SchemaError(
                f"The nodes do not agree: {1 + len(others)} different schemas or versions, and no majority."
            )
        for node in [node for node in self.numbers if common[node] != most]:
            self._reject(0, node, "its schema or version is not that of the others")
            del self.numbers[node]
        try:
            found = check_same_axes({node: axes[node] for node in self.numbers})
        except UpdateRejectedError as error:
            raise SchemaError(f"The nodes do not agree on their axes: {error}.") from None
        self._joined = len(self.numbers)
        return found, most[2]

    def send(self, step: int, arrays: Arrays, read: Read) -> dict[int, CountArray]:
        """Send a query to all nodes that still take part."""
        content = wire.request_content(step, wire.pack_arrays(arrays))
        answers: dict[int, CountArray] = {}
        for reply in self._send_messages(step, wire.COUNT, list(self.numbers), content):
            node = reply.metadata.src_node_id
            try:
                if node not in self.numbers or self.numbers[node] in answers:
                    raise UpdateRejectedError("it was not asked, or answers twice")
                answers[self.numbers[node]] = read(wire.read_counts(reply))
            except UpdateRejectedError as error:
                self._reject(step, node, str(error))
        self.numbers = {node: number for node, number in self.numbers.items() if number in answers}
        self._check_enough(step)
        return dict(sorted(answers.items()))

    def _check_enough(self, step: int) -> None:
        needed = max(1, int(np.ceil(self._settings.min_replies * self._joined)))
        if len(self.numbers) < needed:
            raise InfeasibleError(
                f"Joint anonymization stopped at step {step}: {len(self.numbers)} of {self._joined} nodes are left, "
                f"at least {needed} are needed. Nothing was released."
            )


def record_protocol(checkpoints: Checkpoints | None, settings: RunSettings) -> int:
    """Record one more protocol of the run, before it begins, and return how many there were.

    The record outlives checkpoints that are discarded: what was disclosed stays disclosed.
    """
    if checkpoints is None:
        return 1
    path = checkpoints.folder / f"{checkpoints.name(settings)}.asked"
    try:
        asked = 1 + (int(path.read_text(encoding="ascii")) if path.exists() else 0)
    except (OSError, ValueError):
        raise DataError(f"The record {path.name} of earlier protocols is damaged.") from None
    checkpoints.folder.mkdir(parents=True, exist_ok=True)
    atomic_write(path, f"{asked}\n")
    return asked
