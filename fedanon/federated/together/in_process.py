"""A conversation with hospitals of this process: for experiments, without Flower."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedanon.federated.together.agreement import Agreement
from fedanon.federated.together.answers import pack_counts
from fedanon.federated.together.conversation import Arrays, Read
from fedanon.federated.together.hospital import Hospital
from fedanon.federated.together.masks import new_secret, public_key
from fedanon.federated.together.protocol import Agreeing
from fedanon.federated.together.questions import Counts

NEVER = 10**9


class InProcess:
    """Asks one hospital after the other.

    Parameters
    ----------
    hospitals : that take part.
    silent_from : for some of them, by number, the step from which on they do not answer.
    """

    def __init__(self, hospitals: Sequence[Hospital], silent_from: Mapping[int, int] | None = None) -> None:
        self._hospitals = list(hospitals)
        self._silent_from = silent_from or {}
        self._secrets = {hospital.number: new_secret() for hospital in hospitals}

    @property
    def keys(self) -> dict[int, bytes]:
        """Public keys of the hospitals that still take part."""
        return {hospital.number: public_key(self._secrets[hospital.number]) for hospital in self._hospitals}

    @property
    def signatures(self) -> dict[int, bytes]:
        """None: nobody stands between hospitals of one process."""
        return {}

    def ask(self, step: int, arrays: Arrays, read: Read) -> dict[int, Counts]:
        """What each hospital answers."""
        self._hospitals = [h for h in self._hospitals if step < self._silent_from.get(h.number, NEVER)]
        found = {h.number: h.answer(list(arrays), step, self._secrets[h.number]) for h in self._hospitals}
        return {number: read([pack_counts(counts)]) for number, counts in found.items()}


def agree(hospitals: Sequence[Hospital], silent_from: Mapping[int, int] | None = None) -> Agreement:
    """Run the protocol with hospitals of this process."""
    first = hospitals[0]
    conversation = InProcess(hospitals, silent_from)
    persons = first.table.persons is not None
    return Agreeing(first.method, first.axes, conversation, persons=persons, n_clients=len(hospitals)).run()
