"""Membership by scores: who is caught at a given share of false alarms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: share of false alarms at which attacks on membership are compared (Carlini et al. 2022)
FALSE_ALARMS = 0.01


def caught(scores: FloatArray, inside: Mask, false_alarms: float = FALSE_ALARMS) -> FloatArray:
    """The chance of every member to be caught, if exactly ``false_alarms`` of the others are taken for members.

    Those who score above a threshold are caught, and of those at it as many as the share allows, so that a score which
    tells nothing catches ``false_alarms`` of the members, however many ties it has.

    Parameters
    ----------
    scores : high where the attacker thinks of a member.
    inside : who is a member.
    false_alarms : share of the others who may be taken for members.
    """
    others = np.sort(scores[~inside])[::-1]
    allowed = false_alarms * len(others)
    threshold = others[min(int(allowed), len(others) - 1)]
    above, at = int((others > threshold).sum()), int((others == threshold).sum())
    chance = (allowed - above) / at
    members = scores[inside]
    return np.where(members > threshold, 1.0, np.where(members == threshold, chance, 0.0))
