"""How privacy is reached: one file per method, one folder per family, registered under the names users give.

Every method is importable from here: ``from fedanon.anonymizers import Mondrian``. Those of statistical disclosure
control are in :mod:`fedanon.sdc`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon._lazy import lazy_exports
from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.anonymizers.anneal.method import Anneal
    from fedanon.anonymizers.base import Anonymizer, KAnonymizer
    from fedanon.anonymizers.baselines import FixedInterval, Identity
    from fedanon.anonymizers.blocks import Blocks
    from fedanon.anonymizers.clustering.method import KMember, NearestNeighborClustering, OnePassKMeans, TopDownGreedy
    from fedanon.anonymizers.full_domain.method import FullDomain
    from fedanon.anonymizers.gfkmc.das import Das
    from fedanon.anonymizers.gfkmc.method import Gfkmc, Wkmca
    from fedanon.anonymizers.microaggregation.brkga import Brkga
    from fedanon.anonymizers.microaggregation.derivative_free import DerivativeFree
    from fedanon.anonymizers.microaggregation.dp_microaggregation import DpMicroaggregation
    from fedanon.anonymizers.microaggregation.imhm import Imhm
    from fedanon.anonymizers.microaggregation.individual_ranking import IndividualRanking
    from fedanon.anonymizers.microaggregation.mdav import Cbfs, Gsms, Mdav, RobustMahalanobis, VMdav
    from fedanon.anonymizers.microaggregation.orders import (
        ClusteredPca,
        NpnMhm,
        Pca,
        PursuitPca,
        Simple,
        TspMhm,
        UnivariateOptimal,
    )
    from fedanon.anonymizers.mondrian.method import Mondrian
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "Anneal": "fedanon.anonymizers.anneal.method",
            "Anonymizer": "fedanon.anonymizers.base",
            "Blocks": "fedanon.anonymizers.blocks",
            "Brkga": "fedanon.anonymizers.microaggregation.brkga",
            "Cbfs": "fedanon.anonymizers.microaggregation.mdav",
            "ClusteredPca": "fedanon.anonymizers.microaggregation.orders",
            "Das": "fedanon.anonymizers.gfkmc.das",
            "DerivativeFree": "fedanon.anonymizers.microaggregation.derivative_free",
            "DpMicroaggregation": "fedanon.anonymizers.microaggregation.dp_microaggregation",
            "FixedInterval": "fedanon.anonymizers.baselines",
            "FullDomain": "fedanon.anonymizers.full_domain.method",
            "Gfkmc": "fedanon.anonymizers.gfkmc.method",
            "Gsms": "fedanon.anonymizers.microaggregation.mdav",
            "Identity": "fedanon.anonymizers.baselines",
            "Imhm": "fedanon.anonymizers.microaggregation.imhm",
            "IndividualRanking": "fedanon.anonymizers.microaggregation.individual_ranking",
            "KAnonymizer": "fedanon.anonymizers.base",
            "KMember": "fedanon.anonymizers.clustering.method",
            "Mdav": "fedanon.anonymizers.microaggregation.mdav",
            "Mondrian": "fedanon.anonymizers.mondrian.method",
            "NearestNeighborClustering": "fedanon.anonymizers.clustering.method",
            "NpnMhm": "fedanon.anonymizers.microaggregation.orders",
            "OnePassKMeans": "fedanon.anonymizers.clustering.method",
            "Pca": "fedanon.anonymizers.microaggregation.orders",
            "PursuitPca": "fedanon.anonymizers.microaggregation.orders",
            "RobustMahalanobis": "fedanon.anonymizers.microaggregation.mdav",
            "Simple": "fedanon.anonymizers.microaggregation.orders",
            "TopDownGreedy": "fedanon.anonymizers.clustering.method",
            "TspMhm": "fedanon.anonymizers.microaggregation.orders",
            "UnivariateOptimal": "fedanon.anonymizers.microaggregation.orders",
            "VMdav": "fedanon.anonymizers.microaggregation.mdav",
            "Wkmca": "fedanon.anonymizers.gfkmc.method",
        },
    )

__all__ = [
    "ANONYMIZERS",
    "Anneal",
    "Anonymizer",
    "Blocks",
    "Brkga",
    "Cbfs",
    "ClusteredPca",
    "Das",
    "DerivativeFree",
    "DpMicroaggregation",
    "FixedInterval",
    "FullDomain",
    "Gfkmc",
    "Gsms",
    "Identity",
    "Imhm",
    "IndividualRanking",
    "KAnonymizer",
    "KMember",
    "Mdav",
    "Mondrian",
    "NearestNeighborClustering",
    "NpnMhm",
    "OnePassKMeans",
    "Pca",
    "PursuitPca",
    "RobustMahalanobis",
    "Simple",
    "TopDownGreedy",
    "TspMhm",
    "UnivariateOptimal",
    "VMdav",
    "Wkmca",
]

ANONYMIZERS: Registry[type[Anonymizer]] = Registry("anonymizer", __name__, "fedanon.sdc.methods", group=__name__)
