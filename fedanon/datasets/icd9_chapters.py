"""The chapters of ICD-9-CM by number: a coarse reading of diagnosis codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

#: the first number of every chapter, and its name; diabetes (250) stands apart from the other endocrine diseases
CHAPTERS = (
    (1, "infectious"),
    (140, "neoplasms"),
    (240, "endocrine"),
    (250, "diabetes"),
    (251, "endocrine"),
    (280, "blood"),
    (290, "mental"),
    (320, "nervous system"),
    (390, "circulatory"),
    (460, "respiratory"),
    (520, "digestive"),
    (580, "genitourinary"),
    (630, "pregnancy"),
    (680, "skin"),
    (710, "musculoskeletal"),
    (740, "congenital"),
    (760, "perinatal"),
    (780, "symptoms"),
    (800, "injury"),
)
#: codes that begin with a letter
LETTERS = {"E": "external causes", "V": "other contacts"}


def icd9_chapters(codes: pd.Series[Any]) -> pd.Series[Any]:
    """The chapter of every code; what is no code, such as '?', stays as it is."""
    known = codes.drop_duplicates()
    numbers = pd.to_numeric(known, errors="coerce")
    names = np.array([name for _, name in CHAPTERS], dtype=object)
    places = np.searchsorted([first for first, _ in CHAPTERS], numbers.fillna(1), side="right") - 1
    found = known.str[:1].map(LETTERS).fillna(known).astype(object)
    chapters = dict(zip(known, np.where(numbers.notna(), names[places], found), strict=True))
    return codes.map(chapters)
