"""Byzantine clients: some of a federation send whatever spoils the model most."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Finding
from fedanon.attacks.hostile_federation import FederationAttack
from fedanon.attacks.intervals import Z
from fedanon.attacks.scene import Scene

#: what they try, each in a run of its own
TAMPERINGS = ("nan", "sign_flip", "scale", "label_flip", "gaussian")


@ATTACKS.register("byzantine")
@dataclass(frozen=True, kw_only=True)
class Byzantine(FederationAttack):
    """Share of the pairs of a positive and a negative test row that the model ranks wrongly: 1 - AUC.

    The worst of several kinds of tampering counts (Blanchard et al. 2017); the baseline is the same federation with
    nobody hostile.
    """

    title = "Byzantine clients"
    meaning = "Hostile clients make the model of all useless by the updates they send."

    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """A run without hostile clients, and one for each kind of tampering."""
        federation = self.federation(scene, rng)
        clean = federation.play(TAMPERINGS[0], 0)
        played = {name: federation.play(name, self.hostile) for name in TAMPERINGS}
        areas = {name: result["auc_pooled"] for name, result in played.items()}
        worst, labels = min(areas.values()), federation.labels
        named = [[entry["client"] in result["hostile"] for entry in result["suspects"]] for result in played.values()]
        details = {
            "auc_clean": clean["auc_pooled"],
            **{f"auc_{name}": area for name, area in areas.items()},
            "hostile_named_share": sum(map(sum, named)) / (self.hostile * len(played)),
            "honest_named": float(sum(right.count(False) for right in named)),
        }
        interval = auc_interval(worst, int(labels.sum()), int((labels == 0).sum()))
        rate = 1 - worst
        return Finding(rate, 1 - clean["auc_pooled"], (1 - interval[1], 1 - interval[0]), len(labels), details)


def auc_interval(area: float, positives: int, negatives: int) -> tuple[float, float]:
    r"""95 % interval of an AUC A by the variance of Hanley and McNeil (1982).

    .. math:: \frac{A(1-A) + (p-1)(Q_1 - A^2) + (n-1)(Q_2 - A^2)}{pn}, \quad
              Q_1 = \frac{A}{2-A}, \; Q_2 = \frac{2A^2}{1+A}
    """
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (positives - 1) * (first - area**2) + (negatives - 1) * (second - area**2)
    reach = Z * math.sqrt(spread / (positives * negatives))
    return max(0.0, area - reach), min(1.0, area + reach)
