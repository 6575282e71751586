"""Background knowledge: the most common sensitive value of a person's class, guessed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.class_values import ClassValues
from fedanon.attacks.scene import Scene
from fedanon.attacks.sensitive_pair import SensitivePair, sensitive_pair
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.parameters import parameter


@ATTACKS.register("background_knowledge")
@dataclass(frozen=True, kw_only=True)
class BackgroundKnowledge(Attack):
    r"""Share of the published people whose sensitive value is the most common one of their class.

    .. math:: \frac1n \sum_c \max_v n_{cv}

    The attacker knows the quasi-identifiers of the person, so the class, and draws among equally common values.
    Baseline: the most common value of all that is published. Where there are more than two values, the details tell
    the same for an attacker who also knows one value that the person does not have, any of the others with equal
    chance (Machanavajjhala et al. 2007, instance-level background knowledge).
    """

    title = "Background knowledge"
    meaning = "The sensitive value of a person is guessed from the most common one of their class."
    target = "release"

    column: str = parameter("", help="sensitive column; the schema's first by default")

    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """Guess for everyone."""
        classes = scene.release.classes
        pair = sensitive_pair(scene.table, scene.release, self.column)
        everyone = Groups.of(np.where(classes.suppressed, -1, 0))
        details = {"values": float(pair.size)}
        if pair.size > 2:
            details["rate_knowing_one_not"] = float(_hits(pair, classes, without_one=True).mean())
            details["baseline_knowing_one_not"] = float(_hits(pair, everyone, without_one=True).mean())
        labels = classes.labels[~classes.suppressed]
        baseline = float(_hits(pair, everyone).mean())
        return Finding.of_tries(_hits(pair, classes), baseline, clusters=labels, details=details)


def _hits(pair: SensitivePair, classes: Groups, *, without_one: bool = False) -> FloatArray:
    known: ClassValues = pair.by_class(classes)
    chances = known.guess_chance_without_one(pair.size) if without_one else known.guess_chance
    return np.asarray(pair.hits(classes, chances), dtype=np.float64)
