"""What a node decides about its own rows, whatever a run asks: which people are tested, and what is scored.

A simulation has no such rules: its tables are the researcher's own, and the seed of the run decides everything.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fedanon.errors import InfeasibleError
from fedanon.types import Rng

#: what models are scored on: raw test rows, a k-anonymous release of the test people, noisy counts of raw rows, nothing
ScoreRule = Literal["release", "private", "raw", "none"]


@dataclass(frozen=True, kw_only=True)
class NodeRules:
    """The rules of one node.

    Parameters
    ----------
    secret : seeds the split and the anonymization in place of the run's seed; empty leaves them to the run.
    min_test : the least number of people who are tested, however few the run asks for.
    max_test_share : the largest share of the people that may be.
    scores : what models are scored on.
    test_k : the k of the release of the test people, where there is one.
    require : what its classes must satisfy beyond k.
    """

    secret: bytes = field(default=b"", repr=False)
    min_test: int = 1
    max_test_share: float = 1.0
    scores: ScoreRule = "raw"
    test_k: int = 2
    require: str = ""

    def n_test(self, people: int, share: float) -> int:
        """How many of the people are tested."""
        wanted = max(self.min_test, round(share * people))
        if people - wanted < 1:
            raise InfeasibleError(f"A node with {people} people cannot be split into training and test rows.")
        if wanted > self.max_test_share * people:
            raise InfeasibleError(
                f"{wanted} test people of {people} are more than max_test_share = {self.max_test_share:g} allows; "
                "lower min_test, or raise that share."
            )
        return wanted

    def rng(self, purpose: str) -> Rng | None:
        """A stream for a purpose that nobody else can know; None where the run's seed is to be used."""
        if not self.secret:
            return None
        digest = hmac.new(self.secret, purpose.encode(), hashlib.sha256).digest()
        return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))

    @property
    def split(self) -> str:
        """Changes with what decides who is tested; does not give the secret away."""
        return self._keyed(self.min_test, self.max_test_share)

    @property
    def fingerprint(self) -> str:
        """Changes with every rule; does not give the secret away."""
        return self._keyed(self.min_test, self.max_test_share, self.scores, self.test_k, self.require)

    def _keyed(self, *rules: object) -> str:
        return hmac.new(self.secret, repr(rules).encode(), hashlib.sha256).hexdigest()
