"""Verdicts: every promise of a release, evaluated now on what is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from fedanon.errors import DataError
from fedanon.privacy.base import PrivacyModel
from fedanon.privacy.requirements import models_of_claim
from fedanon.release.release import Release
from fedanon.release.view import PublishedView

#: why a promise is left open: it counts people who are not known, or those of all nodes; its population is not at hand;
#: it is about how the release was made; its taxonomy is in the schema, and not in the manifest; the other releases of
#: its series are not at hand
Doubt = Literal["", "people", "federation", "population", "mechanism", "schema", "releases"]


@dataclass(frozen=True)
class Mechanism:
    """A promise about how a release was made, of which a file shows nothing, such as differential privacy."""

    #: it asks nothing of classes
    min_people: ClassVar[int] = 0
    of_federation: ClassVar[bool] = False
    hides_presence: ClassVar[bool] = False

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class OverReleases:
    """A promise about several releases together, of which one file shows nothing.

    Parameters
    ----------
    releases : how many there are.
    least_values : of every protected column, how many values stay possible for each person.
    """

    min_people: ClassVar[int] = 0
    of_federation: ClassVar[bool] = False
    hides_presence: ClassVar[bool] = False

    releases: int
    least_values: Mapping[str, int]

    def __str__(self) -> str:
        kept = ", ".join(f"{least} of {name!r}" for name, least in self.least_values.items())
        return f"values left possible by {self.releases} releases together: {kept}"


Promise = PrivacyModel | Mechanism | OverReleases


@dataclass(frozen=True)
class Verdict:
    """What became of a promise.

    Parameters
    ----------
    model : what was promised.
    holds : whether it does; None where the view cannot tell.
    broken : number of classes that break it.
    classes : of how many.
    doubt : why that is open.
    reason : how it is broken, as a clause for people.
    """

    model: Promise
    holds: bool | None
    broken: int
    classes: int
    doubt: Doubt = ""
    reason: str = ""

    @property
    def name(self) -> str:
        """The promise in a few words."""
        return str(self.model)


def claimed_models(claim: Mapping[str, Any]) -> list[Promise]:
    """What a manifest's claim promises, k-anonymity or the mechanism first."""
    try:
        mechanism = Mechanism(str(claim["model"]), {n: v for n, v in claim.items() if n != "model"}) if claim else None
        models: list[Promise] = [*models_of_claim(claim), *_over_releases(claim)]
        return models if mechanism is None or "k" in claim else [mechanism, *models]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError("The claim of the manifest cannot be read.") from None


def _over_releases(claim: Mapping[str, Any]) -> list[OverReleases]:
    series = claim.get("series")
    if series is None or int(series["releases"]) < 2:
        return []  # the first release of a series has nothing to be combined with
    return [OverReleases(int(series["releases"]), dict(series["least_values"]))]


def verified_claim(release: Release) -> list[Verdict]:
    """Verdicts on a release that has just passed the gate, which evaluated its whole claim, the mechanism's too."""
    models = [] if release.claim is None else claimed_models(release.claim.to_dict())
    return [Verdict(model, True, 0, release.classes.count) for model in models]


def evaluate_claim(view: PublishedView, models: Sequence[Promise], *, strict: bool = False) -> list[Verdict]:
    """A verdict on every model.

    Where the schema names persons and the view does not know them, rows are counted: a promise that holds for rows is
    then left open, and one that rows already break is broken.

    Parameters
    ----------
    view : what is published.
    models : what was promised of it, or is required.
    strict : whether what the view shows decides, as befits a requirement: rows stand for people who are not known, and
        a population that is not at hand is an error.
    """
    return [_verdict(view, model, strict) for model in models]


def _verdict(view: PublishedView, model: Promise, strict: bool) -> Verdict:
    def left_open(doubt: Doubt) -> Verdict:
        return Verdict(model, None, 0, view.classes.count, doubt)

    if isinstance(model, Mechanism):
        return left_open("mechanism")
    if isinstance(model, OverReleases):
        return left_open("releases")
    if model.of_federation:
        return left_open("federation")
    if not strict and model.needs_more_than(view.schema):
        return left_open("schema")
    try:
        broken = int((~model.satisfied_classes(view)).sum())
    except DataError:
        if strict or model.subject != "population":
            raise
        return left_open("population")
    if not strict and not view.knows_people and not (broken and model.refuted_by_rows):
        return left_open("people")
    reason = model.explain_failure(view) if broken else ""
    return Verdict(model, broken == 0, broken, view.classes.count, reason=reason)
