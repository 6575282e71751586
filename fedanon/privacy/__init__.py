"""What must hold: privacy models, evaluated on the published rows.

Every model is importable from here: ``from fedanon.privacy import TCloseness``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon._lazy import lazy_exports
from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.privacy.base import PrivacyModel
    from fedanon.privacy.models.alpha_k_anonymity import AlphaKAnonymity
    from fedanon.privacy.models.beta_likeness import BetaLikeness
    from fedanon.privacy.models.delta_disclosure import DeltaDisclosure
    from fedanon.privacy.models.differential_privacy import DifferentialPrivacy
    from fedanon.privacy.models.k_anonymity import KAnonymity
    from fedanon.privacy.models.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
    from fedanon.privacy.models.population import DeltaPresence, KMap
    from fedanon.privacy.models.t_closeness import TCloseness
    from fedanon.privacy.requirements import parse_requirements
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "AlphaKAnonymity": "fedanon.privacy.models.alpha_k_anonymity",
            "BetaLikeness": "fedanon.privacy.models.beta_likeness",
            "DeltaDisclosure": "fedanon.privacy.models.delta_disclosure",
            "DeltaPresence": "fedanon.privacy.models.population",
            "DifferentialPrivacy": "fedanon.privacy.models.differential_privacy",
            "DistinctLDiversity": "fedanon.privacy.models.l_diversity",
            "EntropyLDiversity": "fedanon.privacy.models.l_diversity",
            "KAnonymity": "fedanon.privacy.models.k_anonymity",
            "KMap": "fedanon.privacy.models.population",
            "PrivacyModel": "fedanon.privacy.base",
            "RecursiveLDiversity": "fedanon.privacy.models.l_diversity",
            "TCloseness": "fedanon.privacy.models.t_closeness",
            "parse_requirements": "fedanon.privacy.requirements",
        },
    )

__all__ = [
    "PRIVACY_MODELS",
    "AlphaKAnonymity",
    "BetaLikeness",
    "DeltaDisclosure",
    "DeltaPresence",
    "DifferentialPrivacy",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "KAnonymity",
    "KMap",
    "PrivacyModel",
    "RecursiveLDiversity",
    "TCloseness",
    "parse_requirements",
]

PRIVACY_MODELS: Registry[type] = Registry("privacy model", f"{__name__}.models", group="fedanon.privacy_models")
