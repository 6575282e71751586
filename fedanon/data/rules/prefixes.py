"""Codes whose beginning says where they belong: postal codes, occupations, drugs (ATC)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from string import ascii_uppercase, digits
from typing import Any

from fedanon.data.hierarchy import ROOT, Hierarchy
from fedanon.data.rules.base import RuleError

#: what a letter of a form stands for; anything else stands for itself
ALPHABETS = {"9": digits, "A": ascii_uppercase, "X": digits + ascii_uppercase}
MASK = "*"
#: the drug classes of the WHO: anatomical group, therapeutic, pharmacological, chemical, substance
ATC_FORM, ATC_PREFIXES = "A99AA99", (1, 3, 4, 5)


@dataclass(frozen=True)
class PrefixRule:
    """Codes of one form, generalized by leaving out their ends.

    Parameters
    ----------
    form : 9 is a digit, A a letter, X either, all else a sign that may be left out: 99999-999.
    prefixes : how many letters and digits the levels keep, the shortest first.
    level : the finest that is published: 'code', or the number of a prefix as text.
    distinct_at : the level at which privacy models tell values apart.
    partial : whether a code may end where a prefix ends.
    type_name : as a schema file says it.
    """

    form: str
    prefixes: tuple[int, ...]
    level: str = "code"
    distinct_at: str = "code"
    partial: bool = False
    type_name: str = "code"

    def __post_init__(self) -> None:
        if not self._alphabets:
            raise RuleError("The form of a code needs a 9 (digit), A (letter) or X (either): 99999-999.")
        if any(sign.isalnum() and sign not in ALPHABETS for sign in self.form) or MASK in self.form:
            raise RuleError("The form of a code is made of 9, A, X and signs between them, such as 99999-999.")
        if list(self.prefixes) != sorted(set(self.prefixes)) or not self.prefixes:
            raise RuleError("The prefixes of a code must grow, such as [2, 5].")
        if not 1 <= self.prefixes[0] <= self.prefixes[-1] < len(self._alphabets):
            raise RuleError(f"The prefixes of a code of {len(self._alphabets)} signs lie between 1 and one less.")
        known = ["code", *map(str, self.prefixes)]
        if self.level not in known or self.distinct_at not in known:
            raise RuleError(f"The levels of the code are: {', '.join(known)}.")

    @cached_property
    def _alphabets(self) -> tuple[str, ...]:
        return tuple(ALPHABETS[sign] for sign in self.form if sign in ALPHABETS)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = {"9": "([0-9])", "A": "([A-Z])", "X": "([0-9A-Z])"}
        return re.compile("".join(parts.get(sign, f"{re.escape(sign)}?") for sign in self.form))

    def path(self, text: str) -> tuple[str, ...] | None:
        """The code in its form, then its prefixes from long to short."""
        letters = self._letters(text)
        if letters is None:
            return None
        finest = len(letters) if self.level == "code" else int(self.level)
        above = tuple(self._label(letters[:n]) for n in reversed(self.prefixes) if n <= min(finest, len(letters)))
        # a code that is shorter than what is published of others stays as it is
        own = (self._written(letters),) if self.level == "code" or len(letters) < finest else ()
        return (*own, *above, ROOT)

    def _letters(self, text: str) -> str | None:
        cleaned = text.strip().upper()
        found = self._pattern.fullmatch(cleaned)
        if found is not None:
            return "".join(found.groups())
        if self.partial and len(cleaned) in self.prefixes and self._begins(cleaned):
            return cleaned
        return None

    def _begins(self, letters: str) -> bool:
        return all(letter in known for letter, known in zip(letters, self._alphabets, strict=False))

    def _written(self, letters: str) -> str:
        """Letters with the signs of the form between them, as far as they go."""
        rest, text = list(letters), ""
        for sign in self.form:
            if not rest:
                break
            text += rest.pop(0) if sign in ALPHABETS else sign
        return text

    def _label(self, letters: str) -> str:
        return self._written(letters) + MASK

    def path_through(self, label: str) -> tuple[str, ...] | None:
        """For '013*' the path of the first code that begins so."""
        text = label
        if label.endswith(MASK):
            kept = "".join(sign for sign in label if sign.isalnum())
            text = kept + "".join(alphabet[0] for alphabet in self._alphabets[len(kept) :])
        path = self.path(text)
        return path if path is not None and label in path else None

    def share(self, label: str) -> float:
        """One part in as many as there are prefixes of that length; the root is all, a code nothing."""
        if label == ROOT:
            return 1.0
        if not label.endswith(MASK):
            return 0.0
        return 1 / prod(len(self._alphabets[i]) for i in range(sum(sign.isalnum() for sign in label)))

    def upper(self, label: str) -> str:
        """The prefix of one character."""
        return ROOT if label == ROOT else self._label(next(sign for sign in label if sign.isalnum()))

    def at_level(self, text: str, level: str) -> str | None:
        """The code itself, or its prefix; a partial code that is shorter stays as it is."""
        letters = self._letters(text)
        if letters is None or level == "code":
            return None if letters is None else self._written(letters)
        return self._label(letters[: int(level)])

    def published_at(self, level: str) -> PrefixRule:
        """The rule with another finest level."""
        return replace(self, level=level)

    @cached_property
    def outline(self) -> Hierarchy:
        """One node for every first character."""
        return Hierarchy.flat([self._label(letter) for letter in self._alphabets[0]])

    @property
    def samples(self) -> list[str]:
        """The first code with each first character."""
        return [letter + "".join(rest[0] for rest in self._alphabets[1:]) for letter in self._alphabets[0]]

    def list_paths(self, most: int) -> list[tuple[str, ...]]:
        """All codes of the longest prefix that has at most ``most``, and the shorter ones where codes may end early."""
        finest = len(self._alphabets) if self.level == "code" else int(self.level)
        lengths = [n for n in (*self.prefixes, len(self._alphabets)) if n <= finest]
        fitting = [n for n in lengths if prod(map(len, self._alphabets[:n])) <= most] or lengths[:1]
        level = "code" if fitting[-1] == len(self._alphabets) else str(fitting[-1])
        rule, rest = self.published_at(level), "".join(alphabet[0] for alphabet in self._alphabets)
        ends = fitting[:-1] if self.partial else []
        texts = ("".join(text) for n in (*ends, fitting[-1]) for text in product(*self._alphabets[:n]))
        paths = (rule.path(text if len(text) in ends else text + rest[len(text) :]) for text in texts)
        return [path for path in paths if path is not None]

    def to_dict(self) -> dict[str, Any]:
        """As a schema file writes it."""
        document: dict[str, Any] = {}
        if self.type_name == "code":
            document = {"form": self.form, "prefixes": list(self.prefixes)}
        stated = {"level": self.level, "distinct_at": self.distinct_at}
        return document | {key: value for key, value in stated.items() if value != "code"}


def atc_rule(*, level: str = "code", distinct_at: str = "code") -> PrefixRule:
    """Drugs by the five levels of the ATC: A10BA02 below A10BA, A10B, A10 and A; a code may end at any level."""
    return PrefixRule(ATC_FORM, ATC_PREFIXES, level, distinct_at, partial=True, type_name="atc")
