"""Does it hold up: attacks on releases, on models trained from them and on federations, each against guessing.

Every attack is importable from here: ``from fedanon.attacks import RecordLinkage``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon._lazy import lazy_exports
from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.attacks.base import Attack, Finding
    from fedanon.attacks.composition import Composition, CompositionFederation
    from fedanon.attacks.context import AttackContext
    from fedanon.attacks.downcoding import Downcoding
    from fedanon.attacks.gradient_inversion import GradientInversion
    from fedanon.attacks.homogeneity import BackgroundKnowledge, Homogeneity
    from fedanon.attacks.inference import Inference, Linkability
    from fedanon.attacks.intersection import Intersection
    from fedanon.attacks.interval_ends import IntervalEnds
    from fedanon.attacks.malicious_nodes import Byzantine, PlantedBackdoor
    from fedanon.attacks.membership import Lira, MembershipLoss
    from fedanon.attacks.minimality import Minimality
    from fedanon.attacks.numeric_disclosure import NumericDisclosure
    from fedanon.attacks.record_linkage import RecordLinkage
    from fedanon.attacks.record_risk import RecordRisk, record_frame
    from fedanon.attacks.singling_out import SinglingOut
    from fedanon.attacks.suite import run_attacks, select_attacks
    from fedanon.attacks.tree_leakage import TreeLeakage
    from fedanon.attacks.tree_reconstruction import TreeReconstruction
    from fedanon.errors import NotApplicableError
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "Attack": "fedanon.attacks.base",
            "AttackContext": "fedanon.attacks.context",
            "BackgroundKnowledge": "fedanon.attacks.homogeneity",
            "Byzantine": "fedanon.attacks.malicious_nodes",
            "Composition": "fedanon.attacks.composition",
            "CompositionFederation": "fedanon.attacks.composition",
            "Downcoding": "fedanon.attacks.downcoding",
            "Finding": "fedanon.attacks.base",
            "GradientInversion": "fedanon.attacks.gradient_inversion",
            "Homogeneity": "fedanon.attacks.homogeneity",
            "Inference": "fedanon.attacks.inference",
            "Intersection": "fedanon.attacks.intersection",
            "IntervalEnds": "fedanon.attacks.interval_ends",
            "Linkability": "fedanon.attacks.inference",
            "Lira": "fedanon.attacks.membership",
            "MembershipLoss": "fedanon.attacks.membership",
            "Minimality": "fedanon.attacks.minimality",
            "NotApplicableError": "fedanon.errors",
            "NumericDisclosure": "fedanon.attacks.numeric_disclosure",
            "PlantedBackdoor": "fedanon.attacks.malicious_nodes",
            "RecordLinkage": "fedanon.attacks.record_linkage",
            "RecordRisk": "fedanon.attacks.record_risk",
            "SinglingOut": "fedanon.attacks.singling_out",
            "TreeLeakage": "fedanon.attacks.tree_leakage",
            "TreeReconstruction": "fedanon.attacks.tree_reconstruction",
            "record_frame": "fedanon.attacks.record_risk",
            "run_attacks": "fedanon.attacks.suite",
            "select_attacks": "fedanon.attacks.suite",
        },
    )

__all__ = [
    "ATTACKS",
    "Attack",
    "AttackContext",
    "BackgroundKnowledge",
    "Byzantine",
    "Composition",
    "CompositionFederation",
    "Downcoding",
    "Finding",
    "GradientInversion",
    "Homogeneity",
    "Inference",
    "Intersection",
    "IntervalEnds",
    "Linkability",
    "Lira",
    "MembershipLoss",
    "Minimality",
    "NotApplicableError",
    "NumericDisclosure",
    "PlantedBackdoor",
    "RecordLinkage",
    "RecordRisk",
    "SinglingOut",
    "TreeLeakage",
    "TreeReconstruction",
    "record_frame",
    "run_attacks",
    "select_attacks",
]

ATTACKS: Registry[type[Attack]] = Registry("attack", __name__, group=__name__)
