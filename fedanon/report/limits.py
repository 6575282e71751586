"""What the numbers do not say: the same words under every report, as far as they apply."""

from __future__ import annotations

import pandas as pd

from fedanon.report.document import Bullets, Section

_ALWAYS = (
    "Only the columns declared as quasi-identifiers are anonymised. Everything else, sensitive columns among it, is "
    "published as it is; a column that was not declared as a quasi-identifier but is known to others protects nobody.",
    "k-anonymity hides who is who among at least k people. It does not hide a diagnosis that all k of them share, nor "
    "does it hold against someone who combines several releases of the same people.",
    "The risk is that of one attacker, who knows the exact quasi-identifiers of everyone and picks the nearest record. "
    "Attackers who know more, or guess better, are not measured.",
    "A method that promises nothing (such as the original rows, DAS or fixed intervals) may score well here and still "
    "leave single people standing alone.",
    "A ± is the 95 % interval of the mean over seeds (Student's t): how much the randomness of method, partition and "
    "training moves a number. It says nothing about other hospitals, other years or other people.",
)
_MODELS = "Classes are of unequal size: an accuracy at the share of the commonest class means that nothing was learned."
_FEDERATION = (
    "The federation is simulated on one machine. What a model's updates give away about training rows is not measured "
    "here; anonymised rows limit it, they do not rule it out."
)


def limits(results: list[pd.DataFrame]) -> Section:
    """The section for these results."""
    tasks = {task for frame in results if len(frame) for task in frame["task"]}
    items = list(_ALWAYS)
    items += [_MODELS] if tasks & {"central", "federation"} else []
    items += [_FEDERATION] if "federation" in tasks else []
    return Section("What is not protected, and what the numbers do not say", (Bullets(tuple(items)),))
