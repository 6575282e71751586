"""Statistical disclosure control: methods that change values, their risk and loss, and the workflow around them.

Every method is importable from here: ``from fedanon.sdc import Pram``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon._lazy import lazy_exports

if TYPE_CHECKING:
    from fedanon.sdc.methods.category_ranks import CategoryMicroaggregation, CategorySwapping
    from fedanon.sdc.methods.coding import Rounding, TopBottomCoding
    from fedanon.sdc.methods.geography import AreaCenters, SpatialSmoothing
    from fedanon.sdc.methods.linear_models import Egadp, Gadp, Imputation, Ipso, Romm
    from fedanon.sdc.methods.longitudinal import LongitudinalReverseMapping
    from fedanon.sdc.methods.noise import (
        AdditiveNoise,
        Correlated2Noise,
        CorrelatedNoise,
        KimNoise,
        LogMultiplicativeNoise,
        MultiplicativeNoise,
        OutlierNoise,
        RestrictedNoise,
    )
    from fedanon.sdc.methods.pram import InvariantPram, Pram
    from fedanon.sdc.methods.rank_methods import Distortion, RankSwapping, Resampling, ReverseMapping
    from fedanon.sdc.methods.recoding import GlobalRecoding
    from fedanon.sdc.methods.semantic_recoding import SemanticRecoding
    from fedanon.sdc.methods.shuffling import DataShuffling, RegressionShuffling
    from fedanon.sdc.methods.suppression import LocalSuppression, ThresholdSuppression
    from fedanon.sdc.problem import SdcProblem
    from fedanon.sdc.variables import Variables
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "AdditiveNoise": "fedanon.sdc.methods.noise",
            "AreaCenters": "fedanon.sdc.methods.geography",
            "CategoryMicroaggregation": "fedanon.sdc.methods.category_ranks",
            "CategorySwapping": "fedanon.sdc.methods.category_ranks",
            "Correlated2Noise": "fedanon.sdc.methods.noise",
            "CorrelatedNoise": "fedanon.sdc.methods.noise",
            "DataShuffling": "fedanon.sdc.methods.shuffling",
            "Distortion": "fedanon.sdc.methods.rank_methods",
            "Egadp": "fedanon.sdc.methods.linear_models",
            "Gadp": "fedanon.sdc.methods.linear_models",
            "GlobalRecoding": "fedanon.sdc.methods.recoding",
            "Imputation": "fedanon.sdc.methods.linear_models",
            "InvariantPram": "fedanon.sdc.methods.pram",
            "Ipso": "fedanon.sdc.methods.linear_models",
            "KimNoise": "fedanon.sdc.methods.noise",
            "LocalSuppression": "fedanon.sdc.methods.suppression",
            "LogMultiplicativeNoise": "fedanon.sdc.methods.noise",
            "LongitudinalReverseMapping": "fedanon.sdc.methods.longitudinal",
            "MultiplicativeNoise": "fedanon.sdc.methods.noise",
            "OutlierNoise": "fedanon.sdc.methods.noise",
            "Pram": "fedanon.sdc.methods.pram",
            "RankSwapping": "fedanon.sdc.methods.rank_methods",
            "RegressionShuffling": "fedanon.sdc.methods.shuffling",
            "Resampling": "fedanon.sdc.methods.rank_methods",
            "RestrictedNoise": "fedanon.sdc.methods.noise",
            "ReverseMapping": "fedanon.sdc.methods.rank_methods",
            "Romm": "fedanon.sdc.methods.linear_models",
            "Rounding": "fedanon.sdc.methods.coding",
            "SdcProblem": "fedanon.sdc.problem",
            "SemanticRecoding": "fedanon.sdc.methods.semantic_recoding",
            "SpatialSmoothing": "fedanon.sdc.methods.geography",
            "ThresholdSuppression": "fedanon.sdc.methods.suppression",
            "TopBottomCoding": "fedanon.sdc.methods.coding",
            "Variables": "fedanon.sdc.variables",
        },
    )

__all__ = [
    "AdditiveNoise",
    "AreaCenters",
    "CategoryMicroaggregation",
    "CategorySwapping",
    "Correlated2Noise",
    "CorrelatedNoise",
    "DataShuffling",
    "Distortion",
    "Egadp",
    "Gadp",
    "GlobalRecoding",
    "Imputation",
    "InvariantPram",
    "Ipso",
    "KimNoise",
    "LocalSuppression",
    "LogMultiplicativeNoise",
    "LongitudinalReverseMapping",
    "MultiplicativeNoise",
    "OutlierNoise",
    "Pram",
    "RankSwapping",
    "RegressionShuffling",
    "Resampling",
    "RestrictedNoise",
    "ReverseMapping",
    "Romm",
    "Rounding",
    "SdcProblem",
    "SemanticRecoding",
    "SpatialSmoothing",
    "ThresholdSuppression",
    "TopBottomCoding",
    "Variables",
]
