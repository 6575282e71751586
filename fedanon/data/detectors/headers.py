"""What the name of a column says: its words, in three languages and however joined, and what they are about."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from fedanon.data.schema import Role

#: what a number in a column counts: a person; perhaps one; a household; a stay or a sample; who knows what ("id")
Whose = Literal["person", "perhaps_person", "household", "record", "anything"]

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TOKENS = re.compile(r"[A-Za-z0-9]+")
#: short words that may be joined to others without a sign between them: before, and after
_BEFORE, _AFTER = frozenset({"dt", "nm", "nr", "cd", "id"}), frozenset({"id", "dx", "no", "ids"})
_SHORTEST_STEMMED = 5


@dataclass(frozen=True)
class Kind:
    """One of HIPAA Safe Harbor's 18 kinds of identifiers, by its letter in the regulation's list."""

    letter: str
    name: str


@dataclass(frozen=True)
class Topic:
    """What columns are about.

    Parameters
    ----------
    name : of the topic in the word list.
    role : that its columns have.
    title : for people.
    kind : of HIPAA Safe Harbor's list, if it is one.
    entries : of the word list; every word of an entry has to occur in the column's name.
    whole : names of columns, as a whole.
    begins, ends : of words.
    is_weak : whether a word about something sensitive in the same name decides instead.
    """

    name: str
    role: Role
    title: str
    kind: Kind | None
    entries: frozenset[frozenset[str]]
    whole: frozenset[str]
    begins: tuple[str, ...]
    ends: tuple[str, ...]
    is_weak: bool = False

    def matching(self, words: frozenset[str], whole: str) -> str | None:
        """Return the word or words by which a name is about this topic, or None."""
        if whole in self.whole:
            return whole
        found = sorted(" ".join(sorted(entry)) for entry in self.entries if entry <= words)
        if found:
            return found[0]
        long = sorted(word for word in words if len(word) >= _SHORTEST_STEMMED)
        return next((word for word in long if word.startswith(self.begins) or word.endswith(self.ends)), None)


@dataclass(frozen=True)
class Header:
    """What a column's name says.

    Parameters
    ----------
    topics : what it is about with the word that says so, identifiers first.
    whose : what its numbers are numbers of, if it says so.
    is_id : whether it has a word for identifier.
    """

    topics: tuple[tuple[Topic, str], ...]
    whose: Whose | None
    is_id: bool

    def topic(self, *roles: Role) -> tuple[Topic, str] | None:
        """Return the first topic with one of these roles."""
        return next((found for found in self.topics if found[0].role in roles), None)


@lru_cache(maxsize=4096)
def read_header(name: str) -> Header:
    """Return what the name of a column says.

    Examples
    --------
    >>> read_header("nr_prontuário").whose, read_header("patientAge").whose
    ('person', None)
    """
    lists = _lists()
    words = header_words(name)
    whole = "".join(_TOKENS.findall(fold(name))).lower()
    matched = ((topic, topic.matching(words, whole)) for topic in lists.topics)
    topics = tuple((topic, word) for topic, word in matched if word is not None)
    is_property = bool(words & lists.grammar["property"])
    if is_property:  # the type of a phone identifies nobody
        topics = tuple((topic, word) for topic, word in topics if topic.role is not Role.IDENTIFYING)
    elif words & lists.grammar["thing"]:  # nor does the name of a hospital
        topics = tuple((topic, word) for topic, word in topics if topic.name not in ("names", "numbers"))
    if any(topic.name in ("postal", "places", "regions") for topic, _ in topics):  # the city of an address
        topics = tuple((topic, word) for topic, word in topics if topic.name != "addresses")
    is_id = bool(words & lists.grammar["id"])
    return Header(topics, _whose(words, topics, is_property), is_id)


def _whose(words: frozenset[str], topics: tuple[tuple[Topic, str], ...], is_property: bool) -> Whose | None:
    grammar = _lists().grammar
    rest = words - grammar["id"] - grammar["number"] - grammar["filler"]
    if not rest:
        return "anything" if words & grammar["id"] else None
    if is_property:
        return None
    numbered = bool(words & (grammar["id"] | grammar["number"]))
    if rest & grammar["record"] and numbered:
        return "record"
    others = {
        word for topic, word in topics if topic.role is not Role.IDENTIFYING or topic.name in ("names", "free_text")
    }
    tried: tuple[tuple[Whose, bool], ...] = (("person", False), ("household", True), ("perhaps_person", False))
    for whose, need_number in tried:
        meant = rest & grammar[whose]
        if meant and (numbered or not need_number) and others <= meant and not (rest - meant) & grammar["thing"]:
            return whose
    besides = any(topic.role is not Role.IDENTIFYING for topic, _ in topics)
    if words & grammar["id"] and not besides and not rest & grammar["thing"]:
        return "anything"
    return None


def names_person(name: str) -> bool:
    """Return whether a column is a person's number by its name."""
    return read_header(name).whose == "person"


def names_sex(name: str) -> bool:
    """Return whether a column holds the sex of people by its name."""
    return not header_words(name).isdisjoint({"sex", "gender", "sexo", "genero", "female", "male"})


def names_postal_codes(name: str) -> bool:
    """Return whether a column holds postal codes by its name; they are text even where they are made of digits."""
    return any(topic.name == "postal" for topic, _ in read_header(name).topics)


def kinds_of_name(name: str) -> list[Kind]:
    """Return the kinds of identifiers that a column's name suggests, in the order of the regulation's list."""
    header = read_header(name)
    found = {topic.kind for topic, _ in header.topics if topic.kind is not None}
    if header.whose in ("person", "anything", "record") and not found:
        found = {KINDS[-1]}
    return [kind for kind in KINDS if kind in found]


# ---- the words of a name -------------------------------------------------------------------------


def fold(text: str) -> str:
    """Return a text without accents."""
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


@lru_cache(maxsize=4096)
def header_words(name: str) -> frozenset[str]:
    """Return the words of a name: 'patientName', 'patient_name', 'PATIENTNAME' and 'Patient name' have the same."""
    words: set[str] = set()
    for token in _TOKENS.findall(fold(name)):
        parts = [part.lower() for part in _PARTS.findall(token)]
        words.add(token.lower())
        words.update(piece for part in parts for piece in _pieces(part))
    # one of several: 'Scores', 'visits'; but several patients are a count
    singular = {word[:-1] for word in words if len(word) > 4 and word.endswith("s")}
    return frozenset(words | (singular & _lists().topical.keys()))


def _pieces(word: str) -> tuple[str, ...]:
    """Return the known words that a long one is made of, or the word itself."""
    vocabulary = _lists().vocabulary
    if word in vocabulary or len(word) < _SHORTEST_STEMMED:
        return (word,)
    best: list[tuple[str, ...] | None] = [()] + [None] * len(word)
    for end in range(1, len(word) + 1):
        for start in range(end):
            before, piece = best[start], word[start:end]
            if before is None or not _may_join(piece, start == 0, end == len(word), vocabulary):
                continue
            joined, known = (*before, piece), best[end]
            if known is None or len(joined) < len(known):
                best[end] = joined
    return best[-1] or (word, *_affixes(word))


def _affixes(word: str) -> list[str]:
    """Return the words that an unknown one hints at, of those that identify nobody.

    That is the longest one it begins or ends with ('yschool'), or else those it abbreviates, if all of them have the
    same role ('histol').
    """
    topical = _lists().topical
    sizes = range(len(word) - 1, _SHORTEST_STEMMED - 1, -1)
    pairs = ((word[:size], word[-size:]) for size in sizes)
    found = next(([piece for piece in pair if piece in topical] for pair in pairs if topical.keys() & pair), [])
    meant = [] if found or len(word) < _SHORTEST_STEMMED else [known for known in topical if known.startswith(word)]
    return found or (meant if len({topical[known] for known in meant}) == 1 else [])


def _may_join(piece: str, first: bool, last: bool, vocabulary: frozenset[str]) -> bool:
    if len(piece) < 3:
        return (first and piece in _BEFORE) or (last and piece in _AFTER)
    return piece in vocabulary or (len(piece) > 4 and piece.endswith("s") and piece[:-1] in vocabulary)


# ---- the word list -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lists:
    kinds: tuple[Kind, ...]
    grammar: Mapping[str, frozenset[str]]
    topics: tuple[Topic, ...]
    vocabulary: frozenset[str]
    topical: Mapping[str, Role]
    given_names: frozenset[str]


@lru_cache(maxsize=1)
def _lists() -> _Lists:
    document = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
    kinds = {letter: Kind(letter, name) for letter, name in document.pop("kinds").items()}
    grammar = {name: frozenset(words.split()) for name, words in document.pop("grammar").items()}
    given_names = frozenset(document.pop("given_names")["words"].split())
    topics = tuple(_topic(name, entry, kinds) for name, entry in document.items())
    single = {topic: {word for entry in topic.entries for word in entry} for topic in topics}
    vocabulary = frozenset(set().union(*single.values(), *grammar.values()))
    others = [(topic, words) for topic, words in single.items() if topic.role is not Role.IDENTIFYING]
    topical = {word: topic.role for topic, words in reversed(others) for word in words}
    return _Lists(tuple(kinds.values()), grammar, topics, vocabulary, topical, given_names)


def _topic(name: str, entry: dict[str, Any], kinds: Mapping[str, Kind]) -> Topic:
    written = str(entry["words"]).split()
    return Topic(
        name=name,
        role=Role(entry["role"]),
        title=str(entry["title"]),
        kind=kinds.get(entry.get("letter", "")),
        entries=frozenset(frozenset(word.split("+")) for word in written if not word.startswith("=")),
        whole=frozenset(word[1:] for word in written if word.startswith("=")),
        begins=tuple(entry.get("begins", "").split()),
        ends=tuple(entry.get("ends", "").split()),
        is_weak=bool(entry.get("weak", False)),
    )


def given_names() -> frozenset[str]:
    """Return frequent given names, without accents."""
    return _lists().given_names


#: HIPAA Safe Harbor's 18 kinds, 45 CFR 164.514(b)(2)(i), (A) to (R)
KINDS: tuple[Kind, ...] = _lists().kinds
