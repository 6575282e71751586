"""fedanon: anonymize tabular health data where they are, then learn across hospitals.

What this list names is public: it stays, or is kept for one release with a warning. So do the families, in which every
component is importable by class (:mod:`fedanon.anonymizers`, :mod:`fedanon.attacks`, :mod:`fedanon.metrics`,
:mod:`fedanon.models`, :mod:`fedanon.privacy`), and the checks for components of your own (:mod:`fedanon.testing`).
Everything is loaded on first use, so that ``import fedanon`` is instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon._lazy import lazy_exports
from fedanon._version import __version__

if TYPE_CHECKING:
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.anonymizers.base import Anonymizer, KAnonymizer
    from fedanon.attacks import ATTACKS
    from fedanon.attacks.base import Attack
    from fedanon.attacks.context import AttackContext
    from fedanon.data.readers import READERS, read_table
    from fedanon.data.schema import Schema
    from fedanon.data.table import Table
    from fedanon.datasets import DATASETS
    from fedanon.datasets import load as load_dataset
    from fedanon.errors import (
        ConfigError,
        DataError,
        FedanonError,
        InfeasibleError,
        NotApplicableError,
        PrivacyViolationError,
        SchemaError,
        UnknownComponentError,
        UpdateRejectedError,
    )
    from fedanon.federated.simulation import simulate
    from fedanon.io.release_file import write_release
    from fedanon.learning.settings import RunSettings
    from fedanon.learning.strategies import STRATEGIES, Strategy
    from fedanon.metrics import METRICS, evaluate
    from fedanon.metrics.base import metric
    from fedanon.models import MODELS
    from fedanon.models.base import Model
    from fedanon.privacy import PRIVACY_MODELS
    from fedanon.privacy.base import PrivacyModel
    from fedanon.release.gate import verify
    from fedanon.release.release import Release
    from fedanon.release.view import PublishedView
    from fedanon.verification import check_release
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "ANONYMIZERS": "fedanon.anonymizers",
            "ATTACKS": "fedanon.attacks",
            "Anonymizer": "fedanon.anonymizers.base",
            "Attack": "fedanon.attacks.base",
            "AttackContext": "fedanon.attacks.context",
            "ConfigError": "fedanon.errors",
            "DATASETS": "fedanon.datasets",
            "DataError": "fedanon.errors",
            "FedanonError": "fedanon.errors",
            "InfeasibleError": "fedanon.errors",
            "KAnonymizer": "fedanon.anonymizers.base",
            "METRICS": "fedanon.metrics",
            "MODELS": "fedanon.models",
            "Model": "fedanon.models.base",
            "NotApplicableError": "fedanon.errors",
            "PRIVACY_MODELS": "fedanon.privacy",
            "PrivacyModel": "fedanon.privacy.base",
            "PrivacyViolationError": "fedanon.errors",
            "PublishedView": "fedanon.release.view",
            "READERS": "fedanon.data.readers",
            "Release": "fedanon.release.release",
            "RunSettings": "fedanon.learning.settings",
            "STRATEGIES": "fedanon.learning.strategies",
            "Schema": "fedanon.data.schema",
            "SchemaError": "fedanon.errors",
            "Strategy": "fedanon.learning.strategies",
            "Table": "fedanon.data.table",
            "UnknownComponentError": "fedanon.errors",
            "UpdateRejectedError": "fedanon.errors",
            "check_release": "fedanon.verification",
            "evaluate": "fedanon.metrics",
            "load_dataset": "fedanon.datasets:load",
            "metric": "fedanon.metrics.base",
            "read_table": "fedanon.data.readers",
            "simulate": "fedanon.federated.simulation",
            "verify": "fedanon.release.gate",
            "write_release": "fedanon.io.release_file",
        },
    )

__all__ = [
    "ANONYMIZERS",
    "ATTACKS",
    "DATASETS",
    "METRICS",
    "MODELS",
    "PRIVACY_MODELS",
    "READERS",
    "STRATEGIES",
    "Anonymizer",
    "Attack",
    "AttackContext",
    "ConfigError",
    "DataError",
    "FedanonError",
    "InfeasibleError",
    "KAnonymizer",
    "Model",
    "NotApplicableError",
    "PrivacyModel",
    "PrivacyViolationError",
    "PublishedView",
    "Release",
    "RunSettings",
    "Schema",
    "SchemaError",
    "Strategy",
    "Table",
    "UnknownComponentError",
    "UpdateRejectedError",
    "__version__",
    "check_release",
    "evaluate",
    "load_dataset",
    "metric",
    "read_table",
    "simulate",
    "verify",
    "write_release",
]
