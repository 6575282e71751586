"""Requirements as text: what is read, what is refused, and a model added by one class."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fedanon.anonymizers.mondrian.method import Mondrian
from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.models.beta_likeness import BetaLikeness
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.privacy.models.l_diversity import DistinctLDiversity, RecursiveLDiversity
from fedanon.privacy.models.population import DeltaPresence
from fedanon.privacy.models.t_closeness import TCloseness
from fedanon.privacy.requirements import models_of_claim, parse_requirements, split_k


def test_models_are_read_in_order() -> None:
    text = 'k=10, l=2:income ,t=0.3:income:ordered,recursive_l=3:"a,b: c":c=1.5,beta=2:income:enhanced'
    assert parse_requirements(text) == [
        KAnonymity(k=10),
        DistinctLDiversity(l=2, column="income"),
        TCloseness(t=0.3, column="income", distance="ordered"),
        RecursiveLDiversity(l=3, column="a,b: c", c=1.5),
        BetaLikeness(beta=2.0, column="income", enhanced=True),
    ]
    assert parse_requirements("presence=0.5:people.csv:low=0.1") == [
        DeltaPresence(high=0.5, population="people.csv", low=0.1)
    ]
    assert parse_requirements("") == []


def test_k_is_split_off() -> None:
    assert split_k("k=10,l=2:income, t=0.3:income") == (10, "l=2:income,t=0.3:income")
    assert split_k("l=2:income") == (None, "l=2:income")
    with pytest.raises(ConfigError, match="several values of k"):
        split_k("k=3,k=4")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l", "'l' is not of the form name=value:column"),
        ("l=2:a,,t=0.3:a", "',t=0.3:a' is not of the form"),
        ("l=2", "l must say what it is about: l=2:COLUMN"),
        ("presence=0.5", "presence must say what it is about: presence=0.5:POPULATION"),
        ("l=two:a", r"'l' parameter of DistinctLDiversity must be an int >= 2\. Got 'two' instead"),
        ("t=1.5:a", r"'t' parameter of TCloseness must be a float >= 0 and <= 1"),
        ("diversity=2:a", "Unknown requirement 'diversity'. Known: alpha, beta, delta"),
        ("t=0.2:a:near", "TCloseness has no parameter that takes 'near'"),
        ("t=0.2:a:c=3", "TCloseness has no parameter c"),
        ("k=ten", r"'k' parameter of KAnonymity must be an int >= 1\. Got 'ten' instead"),
        ("k=3:a", "KAnonymity has no parameter that takes 'a'"),
        ("k=3:federation", "KAnonymity has no parameter that takes 'federation'"),
        ("k=3:scope=federation", "KAnonymity has no parameter scope"),
        ("l=2:a,l=2:a", "names a model twice: distinct 2-diversity of 'a'"),
        ("presence=0.2:p.csv:low=0.3", "low=0.3 above high=0.2"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_requirements(text)


def test_a_claim_is_read_back_from_its_manifest() -> None:
    claim = Mondrian(k=5, require="l=2:s,t=0.2:s:equal,presence=0.5:p.csv").claim()
    assert models_of_claim(claim.to_dict()) == parse_requirements("k=5,l=2:s,t=0.2:s:equal,presence=0.5:p.csv")
    assert models_of_claim(Mondrian(k=5).claim().to_dict()) == [KAnonymity(k=5)]
    with pytest.raises(ConfigError, match="claims 'magic', which is not known here"):
        models_of_claim({"all_of": [{"model": "magic"}]})


@pytest.fixture
def printed_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The model that the documentation prints: one class, one file."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "privacy_models.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    module = ModuleType("printed_model")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with PRIVACY_MODELS.restored():
        exec(recipe, module.__dict__)
        yield


@pytest.mark.usefixtures("printed_model")
def test_a_model_is_added_by_one_file() -> None:
    table = load("adult").select_rows(np.arange(400))
    release = Mondrian(k=5, require="majority=3:relationship,l=2:income").anonymize(table, rng=0)
    shares = release.passthrough["relationship"].groupby(release.classes.labels).value_counts(normalize=True)
    assert shares.max() <= 0.5
    assert release.claim is not None
    assert "no value of 'relationship' held by more than half" in release.promise
