"""Statistical disclosure control: methods that change values, their risk and loss, and the workflow around them.

Every method is importable from here: ``from fedanon.sdc import Pram``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon._lazy import lazy_exports

if TYPE_CHECKING:
    from fedanon.sdc.methods.coding import Rounding, TopBottomCoding
    from fedanon.sdc.methods.distortion import Distortion
    from fedanon.sdc.methods.gadp import Egadp, Gadp, Ipso
    from fedanon.sdc.methods.imputation import Imputation
    from fedanon.sdc.methods.longitudinal import LongitudinalReverseMapping
    from fedanon.sdc.methods.noise import (
        AdditiveNoise,
        Correlated2Noise,
        CorrelatedNoise,
        KimNoise,
        LogMultiplicativeNoise,
        MultiplicativeNoise,
        OutlierNoise,
    )
    from fedanon.sdc.methods.pram import InvariantPram, Pram
    from fedanon.sdc.methods.rank_methods import RankSwapping, Resampling, ReverseMapping
    from fedanon.sdc.methods.recoding import GlobalRecoding
    from fedanon.sdc.methods.romm import Romm
    from fedanon.sdc.methods.semantic_recoding import SemanticRecoding
    from fedanon.sdc.methods.shuffling import DataShuffling, RegressionShuffling
    from fedanon.sdc.methods.suppression import LocalSuppression, ThresholdSuppression
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "AdditiveNoise": "fedanon.sdc.methods.noise",
            "Correlated2Noise": "fedanon.sdc.methods.noise",
            "CorrelatedNoise": "fedanon.sdc.methods.noise",
            "DataShuffling": "fedanon.sdc.methods.shuffling",
            "Distortion": "fedanon.sdc.methods.distortion",
            "Egadp": "fedanon.sdc.methods.gadp",
            "Gadp": "fedanon.sdc.methods.gadp",
            "GlobalRecoding": "fedanon.sdc.methods.recoding",
            "Imputation": "fedanon.sdc.methods.imputation",
            "InvariantPram": "fedanon.sdc.methods.pram",
            "Ipso": "fedanon.sdc.methods.gadp",
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
            "ReverseMapping": "fedanon.sdc.methods.rank_methods",
            "Romm": "fedanon.sdc.methods.romm",
            "Rounding": "fedanon.sdc.methods.coding",
            "SemanticRecoding": "fedanon.sdc.methods.semantic_recoding",
            "ThresholdSuppression": "fedanon.sdc.methods.suppression",
            "TopBottomCoding": "fedanon.sdc.methods.coding",
        },
    )

__all__ = [
    "AdditiveNoise",
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
    "ReverseMapping",
    "Romm",
    "Rounding",
    "SemanticRecoding",
    "ThresholdSuppression",
    "TopBottomCoding",
]
