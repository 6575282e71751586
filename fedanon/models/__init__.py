"""Is it still useful: models that learn from releases and are tested on raw or recoded rows.

Every model is importable from here: ``from fedanon.models import LogisticRegression``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon._lazy import lazy_exports
from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.models.base import Model
    from fedanon.models.boosted_trees import BoostedTrees
    from fedanon.models.logistic_regression import LogisticRegression
    from fedanon.models.mlp import MultilayerPerceptron
    from fedanon.models.thesis_models import ThesisLogisticRegression, ThesisTrees
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "BoostedTrees": "fedanon.models.boosted_trees",
            "LogisticRegression": "fedanon.models.logistic_regression",
            "Model": "fedanon.models.base",
            "MultilayerPerceptron": "fedanon.models.mlp",
            "ThesisTrees": "fedanon.models.thesis_models",
            "ThesisLogisticRegression": "fedanon.models.thesis_models",
        },
    )

__all__ = [
    "MODELS",
    "BoostedTrees",
    "LogisticRegression",
    "Model",
    "MultilayerPerceptron",
    "ThesisLogisticRegression",
    "ThesisTrees",
]

MODELS: Registry[type[Model]] = Registry("model", __name__, group=__name__)
MODELS.alias("saga", "lr_thesis")
MODELS.alias("xgb_published", "xgb_thesis")
