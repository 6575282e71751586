"""Verdicts: every promise of a release, judged now on the released file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.data.schema import Schema
from fedanon.errors import DataError
from fedanon.io.release_file import ReleasedFrame
from fedanon.privacy.base import PrivacyModel, Rows
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.privacy.models.population import PopulationModel
from fedanon.privacy.requirements import Model, models_of_claim
from fedanon.release.released import fine_classes

#: why a promise cannot be judged: people are counted but not known, or all hospitals; the population is not at hand; it
#: is one about how the release was made
Doubt = Literal["", "people", "federation", "population", "mechanism"]


@dataclass(frozen=True)
class Mechanism:
    """A promise about how a release is made, of which a file shows nothing, such as differential privacy."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


Promise = Model | Mechanism


@dataclass(frozen=True)
class Verdict:
    """What became of a promise.

    Parameters
    ----------
    model : what was promised.
    holds : whether it does; None where the file cannot tell.
    broken : number of classes that break it.
    classes : of how many.
    doubt : why it cannot be told.
    """

    model: Promise
    holds: bool | None
    broken: int
    classes: int
    doubt: Doubt = ""

    @property
    def name(self) -> str:
        """The promise in a few words."""
        return _named(self.model) if isinstance(self.model, KAnonymity) else str(self.model)


def claimed_models(claim: Mapping[str, Any]) -> list[Promise]:
    """The models a manifest's claim lists, k-anonymity first; of a federation's k also that of the hospital."""
    models: list[Promise] = []
    try:
        if "k" in claim:
            k, local = int(claim["k"]), int(claim.get("k_local", 1))
            models.append(KAnonymity(k=k, scope=claim.get("scope", "node")))
            models += [KAnonymity(k=local)] if local > 1 else []
        elif claim:
            models.append(Mechanism(str(claim["model"]), {n: v for n, v in claim.items() if n != "model"}))
        return models + list(models_of_claim(claim))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError("The claim of the manifest cannot be read.") from None


def evaluate_claim(
    released: ReleasedFrame, schema: Schema, models: Sequence[Promise], persons: NDArray[Any] | None = None
) -> list[Verdict]:
    """A verdict on every model.

    Parameters
    ----------
    released : the file.
    schema : of the original table.
    models : what is promised.
    persons : the person of every row; without it rows are counted. Where the schema names persons, a promise that
        holds for rows is then left open, and one that rows already break is broken.
    """
    return list(_judged(released, schema, models, persons))


def _judged(
    released: ReleasedFrame, schema: Schema, models: Sequence[Promise], persons: NDArray[Any] | None
) -> Iterator[Verdict]:
    classes = released.classes
    people = Rows(released.frame, schema, persons).people(classes)
    blind = schema.person_id is not None and persons is None
    for model in models:
        doubt = _doubt(model)
        satisfied = None if doubt else _fine(released, schema, model, people, persons)
        if satisfied is None:
            yield Verdict(model, None, 0, classes.count, doubt or "population")
            continue
        broken = int((~satisfied).sum())
        # a class of few rows has no more people than rows; the other models may turn either way
        sure = not blind or (broken > 0 and isinstance(model, KAnonymity))
        yield (
            Verdict(model, broken == 0, broken, classes.count)
            if sure
            else Verdict(model, None, 0, classes.count, "people")
        )


def _doubt(model: Promise) -> Doubt:
    """Why no single file can tell."""
    if isinstance(model, Mechanism):
        return "mechanism"
    return "federation" if isinstance(model, KAnonymity) and model.scope == "federation" else ""


def _fine(
    released: ReleasedFrame,
    schema: Schema,
    model: Promise,
    people: NDArray[np.int64],
    persons: NDArray[Any] | None,
) -> NDArray[np.bool_] | None:
    """Which classes keep it; None where its population cannot be read."""
    if isinstance(model, KAnonymity):
        return np.asarray(people >= model.k)
    assert isinstance(model, PrivacyModel)
    try:
        return fine_classes(released, schema, model, persons)
    except DataError:
        if isinstance(model, PopulationModel):
            return None
        raise


def _named(model: KAnonymity) -> str:
    return f"{model.k}-anonymity" + (" over the federation" if model.scope == "federation" else "")
