"""Backdoor: hostile clients teach the model to call everyone positive who carries a rare combination of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Finding
from fedanon.attacks.hostile_federation import FederationAttack
from fedanon.attacks.intervals import wilson
from fedanon.attacks.scene import Scene


@ATTACKS.register("backdoor")
@dataclass(frozen=True, kw_only=True)
class PlantedBackdoor(FederationAttack):
    """Share of the negative test rows that are called positive once they carry the trigger (Bagdasaryan et al. 2020).

    The baseline is the same share where nobody is hostile.
    """

    title = "Backdoor"
    meaning = "Hostile clients decide what the model says of a row that carries their mark."

    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """A run without hostile clients and one with them."""
        federation = self.federation(scene, rng)
        clean, planted = (federation.play("backdoor", hostile) for hostile in (0, self.hostile))
        n, rate = int((federation.labels == 0).sum()), planted["backdoor_rate"]
        details = {name: result["auc_pooled"] for name, result in (("auc_clean", clean), ("auc_planted", planted))}
        return Finding(rate, clean["backdoor_rate"], wilson(rate * n, n), n, details)
