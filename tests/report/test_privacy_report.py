"""The risk report of a release: what it says is so, in both languages, and no value of a person is in it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedanon.attacks.base import AttackResult
from fedanon.attacks.suite import AttackReport
from fedanon.metrics import evaluate
from fedanon.privacy.models.population import Population
from fedanon.privacy.requirements import parse_requirements
from fedanon.report.document import Document, Note, TableBlock, walk
from fedanon.report.html import render_html
from fedanon.report.numbers import NOTHING
from fedanon.report.privacy.attacks import largest_gain
from fedanon.report.privacy.claims import sensitive_facts
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.language import TABLES, Language, language
from fedanon.report.privacy.losses import column_losses
from fedanon.report.privacy.release_report import release_report
from fedanon.report.privacy.risks import journalist, prosecutor
from tests.report.conftest import Page
from tests.report.privacy_cases import CANARIES, claim, evidence, ward_frame, ward_schema
from tests.report.test_pdf import pages

LANGUAGES = sorted(TABLES)


@pytest.fixture(params=LANGUAGES)
def say(request: pytest.FixtureRequest) -> Language:
    return language(request.param)


def attack(name: str, rate: float, baseline: float) -> AttackResult:
    return AttackResult(name, name, rate, baseline, None, rate - 0.01, rate + 0.01, 100, 0.1, 0, {})


def titles(document: Document) -> list[str]:
    return [block.title for block in walk(document.blocks) if isinstance(block, Note)]


def cells(document: Document, caption: str) -> list[list[str]]:
    tables = [block for block in walk(document.blocks) if isinstance(block, TableBlock)]
    return [[cell.text for cell in row] for table in tables if table.caption == caption for row in table.rows]


# ---- languages ----------------------------------------------------------------------------------


def test_languages_have_the_same_words() -> None:
    first, *others = [language(code) for code in LANGUAGES]
    for other in others:
        assert list(other.texts) == list(first.texts)
        for key, text in first.texts.items():
            fields = set(re.findall(r"{(\w+)}", text))
            assert set(re.findall(r"{(\w+)}", other.texts[key])) == fields, key
            assert other.texts[key].strip(), key


def test_portuguese_is_not_english() -> None:
    english, portuguese = language("en").texts, language("pt").texts
    same = {key for key, text in portuguese.items() if text == english[key]}
    # the parts that are signs and numbers only, and words both languages share
    shared = {"attacks.n", "harbor.look", "key.gain_text", "losses.panel", "origin.a_file", "origin.hashes"}
    shared |= {"federation.kept", "federation.short"}
    assert same <= shared, same - shared


def test_all_words_are_used() -> None:
    folder = Path(__file__).parents[2] / "fedanon" / "report" / "privacy"
    code = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    code += (folder.parents[1] / "cli" / "report.py").read_text(encoding="utf-8")
    dynamic = ("role", "type", "fate", "sign", "kind", "field", "signer", "signature", "promise", "attack", "doubt")
    dynamic += ("attack_meaning", "labels", "attacker", "number", "scope", "finding", "unit", "unit_title")
    dynamic += ("row_order", "change")
    code = code.replace("'", '"')
    named = re.findall(r'f"(\w+)\.{', code)
    for key in language("en").texts:
        section, _, name = key.partition(".")
        assert f'"{key}"' in code or section in dynamic or (section in named and f'"{name}"' in code), key


def test_numbers() -> None:
    en, pt = language("en"), language("pt")
    assert (en.number(1234.5), pt.number(1234.5)) == ("1,234", "1.234")
    assert (en.number(0.12345), pt.number(0.12345)) == ("0.1235", "0,1235")
    assert (en.share(0.125), pt.share(0.125), pt.share(1), pt.share(0)) == ("12.5 %", "12,5 %", "100 %", "0 %")
    assert (en.number(0.3), en.number(30.0), en.number(2.5)) == ("0.3", "30", "2.5")
    assert (en.share(0.0001), pt.share(0.000001), en.share(None)) == ("0.010 %", "< 0,001 %", NOTHING)
    assert pt.interval(0.1, 0.25) == "10 a 25 %"
    assert (en.share(0.9996), pt.share(0.99999), en.share(0.9994)) == ("> 99.9 %", "> 99,9 %", "99.9 %")


# ---- what is measured ---------------------------------------------------------------------------


def test_numbers_are_those_of_the_metrics(tmp_path: Path) -> None:
    found = evidence(tmp_path)
    assert found.table is not None
    assert found.release is not None
    measured = evaluate(
        found.table, found.release, ("k_reached", "prosecutor_risk", "marketer_risk", "ncp", "truthfulness")
    )
    risk = prosecutor(found)
    assert risk is not None
    assert found.released.smallest_class == measured["k_reached"]
    assert risk.highest == pytest.approx(measured["prosecutor_risk"])
    assert risk.average == pytest.approx(measured["marketer_risk"])
    losses = column_losses(found)
    assert np.mean([one.measured for one in losses]) == pytest.approx(measured["ncp"])
    assert np.mean([one.loss for one in losses]) == pytest.approx(measured["ncp"]), "the smallest cells are published"
    assert {one.true for one in losses} == {1.0}
    assert all(sum(one.by_bin) == pytest.approx(1) for one in losses)


def test_the_interval_of_the_average_is_that_of_drawing(tmp_path: Path) -> None:
    found = evidence(tmp_path)
    risk = prosecutor(found)
    assert risk is not None
    rng = np.random.default_rng(1)
    p = (1 / found.people)[found.released.classes.labels]
    shares = (rng.random((4000, len(p))) < p).mean(axis=1)
    inside = np.mean((shares >= risk.low) & (shares <= risk.high))
    assert 0.92 < inside < 0.98


def test_the_journalist_looks_among_the_population(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    ward_frame(600)[["age", "town"]].to_csv(people, index=False)
    found = evidence(tmp_path, population=Population.read(people, ward_schema()))
    known, drawn = prosecutor(found), journalist(found)
    assert known is not None
    assert drawn is not None
    assert drawn.highest < known.highest
    text = Page(render_html(release_report(found, language("en")))).text
    assert "Journalist" in text
    assert "No population is given" not in text


def test_homogeneous_classes_are_counted_by_hand(tmp_path: Path) -> None:
    found = evidence(tmp_path, frame=ward_frame(alike=True))
    frame = found.released.frame.assign(patient=ward_frame()["patient"])
    by_class = frame.groupby(["age", "town"])
    alike = by_class["diagnosis"].nunique() < 2
    [facts] = sensitive_facts(found)
    assert facts.homogeneous == alike.sum() > 0
    assert facts.exposed == pytest.approx(by_class.size()[alike].sum() / len(frame))
    assert facts.l == by_class["diagnosis"].nunique().min()
    assert facts.alpha == 1


def test_people_are_counted_not_rows(tmp_path: Path) -> None:
    found = evidence(tmp_path, frame=pd.concat([ward_frame(30)] * 2))
    assert found.n_people == 30
    blind = ReleaseEvidence.from_file(found.path, ward_schema())
    assert blind.released.smallest_class == 2 * found.released.smallest_class >= 10
    assert [verdict.doubt for verdict in blind.verdicts] == ["people"]
    text = Page(render_html(release_report(blind, language("en")))).text
    assert "left open: people are unknown without the original" in text
    assert "rows" in text


# ---- the page -----------------------------------------------------------------------------------


@pytest.mark.parametrize("original", [True, False])
def test_no_value_of_a_person_is_told(tmp_path: Path, say: Language, original: bool) -> None:
    found = evidence(tmp_path, original=original)
    attacks = AttackReport([attack("record_linkage", 0.2, 0.1)], {"minimality": "It needs more."})
    text = render_html(release_report(found, say, attacks=attacks))
    assert not [canary for canary in CANARIES if canary in text]
    assert f'<html lang="{say.code}">' in text
    assert not re.findall(r"{\w+}", Page(text).text), "all is filled in"


def test_every_section_is_there(tmp_path: Path, say: Language) -> None:
    found = evidence(tmp_path)
    page = Page(render_html(release_report(found, say, attacks=AttackReport([attack("homogeneity", 0.5, 0.2)], {}))))
    for name in ("claims", "risks", "attacks", "limits", "losses", "columns", "harbor", "impact", "origin"):
        assert say(f"{name}.title") in page.text
    assert page.text.count("☐") == 8, "seven fields, and the words that explain the sign"
    assert say("conclusion.kept_but") in page.text, "the e-mail is published"
    assert found.sha256 in page.text
    for word in ("compliant", "in compliance", "em conformidade"):
        assert word not in page.text


def test_decimal_commas_everywhere(tmp_path: Path) -> None:
    found = evidence(tmp_path)
    text = Page(
        render_html(
            release_report(found, language("pt"), attacks=AttackReport([attack("homogeneity", 0.512, 0.2)], {}))
        )
    ).text
    shown = re.sub(r"fedanon [\d.]+|164\.514|[0-9a-f]{64}|--\S+ \S+", "", text)
    assert not re.findall(r"\d\.\d{1,2}\b(?!\d)", shown)
    assert "51,2 %" in shown


def test_a_broken_claim_is_told_first_and_in_red(tmp_path: Path, say: Language) -> None:
    evidence(tmp_path)
    claim(tmp_path, model="combined", k=40, all_of=[{"model": "distinct l-diversity", "column": "diagnosis", "l": 9}])
    found = ReleaseEvidence.from_file(tmp_path / "ward.csv", ward_schema(), table=evidence_table())
    assert found.failed
    document = release_report(found, say)
    assert titles(document)[0] == say("conclusion.broken")
    rows = cells(document, say("claims.caption"))
    assert all("✗" in row[-1] for row in rows)
    assert [row[1] for row in rows] == ["40", "9"]
    html = render_html(document)
    assert html.count('<td class="bad">✗') == 2
    assert say("limits.failed") in Page(html).text


def evidence_table():
    from fedanon.data.table import Table as Rows

    return Rows.from_frame(ward_frame(), ward_schema())


def test_a_changed_file_is_told(tmp_path: Path) -> None:
    evidence(tmp_path)
    path = tmp_path / "ward.csv"
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    found = ReleaseEvidence.from_file(path, ward_schema())
    assert (found.is_as_written, found.failed) == (False, True)
    assert "The file was changed" in Page(render_html(release_report(found, language("en")))).text


def test_nothing_promised_and_what_is_asked(tmp_path: Path) -> None:
    path = evidence(tmp_path).path
    Path(f"{path}.manifest.json").unlink()
    plain = release_report(ReleaseEvidence.from_file(path, ward_schema()), language("en"))
    assert titles(plain)[:2] == ["! Nothing is promised", "No manifest"]
    asked = ReleaseEvidence.from_file(
        path, ward_schema(), table=evidence_table(), required=parse_requirements("k=3,t=1:diagnosis")
    )
    rows = cells(release_report(asked, language("en")), "Promises, and what the file keeps")
    assert [row[-1][0] for row in rows] == ["✓", "✓"]


@pytest.mark.parametrize(
    ("values", "original", "level", "look"),
    [
        ({"k": 40}, True, "broken", "alarm"),
        ({"k": 5}, False, "not_checked", "caution"),
        ({"k": 5}, True, "kept_but", "caution"),
        ({}, True, "nothing_promised", "caution"),
    ],
)
def test_the_headline_is_the_worst_finding(
    tmp_path: Path, say: Language, values: dict[str, int], original: bool, level: str, look: str
) -> None:
    evidence(tmp_path)
    claim(tmp_path, **({"model": "k-anonymity"} | values if values else {}))
    table = evidence_table() if original else None
    found = ReleaseEvidence.from_file(tmp_path / "ward.csv", ward_schema(), table=table)
    assert found.conclusion().level == level
    first = release_report(found, say).blocks[0]
    assert isinstance(first, Note)
    assert (first.title, first.kind, first.large) == (say(f"conclusion.{level}"), look, True)
    assert f'class="note {look} large"' in render_html(release_report(found, say))
    assert say("finding.suspected_identifier", columns="`e-mail`") in first.texts


def test_limits_only_where_they_apply(tmp_path: Path) -> None:
    say = language("en")
    alike = Page(render_html(release_report(evidence(tmp_path, frame=ward_frame(alike=True)), say))).text
    assert "classes all have the same value" in alike
    assert "k is counted over the federation" not in alike
    assert "look like an identifier are published: e-mail" in re.sub(r"\s+([.,:;])", r"\1", alike)
    claim(tmp_path, model="k-anonymity", k=50, scope="federation", k_local=2, count=None)
    federated = release_report(
        ReleaseEvidence.from_file(tmp_path / "ward.csv", ward_schema(), table=evidence_table()), say
    )
    text = Page(render_html(federated)).text
    assert "That is not enough wherever the node is known." in text
    assert "one node's file cannot show it" in text


def test_attacks_are_shown_with_their_guess(tmp_path: Path) -> None:
    found = AttackReport(
        [attack("homogeneity", 0.5, 0.2), attack("record_linkage", 0.3, 0.299)], {"lira": "It needs a model."}
    )
    gain = largest_gain(found)
    assert gain is not None
    assert gain.attack == "homogeneity"
    assert largest_gain(AttackReport([attack("homogeneity", 0.2, 0.2)], {})) is None, (
        "an interval about the guess is no gain"
    )
    document = release_report(evidence(tmp_path), language("en"), attacks=found)
    assert cells(document, "Attacks on the release")[0][:4] == ["Homogeneity", "50 %", "49 to 51 %", "20 %"]
    text = Page(render_html(document)).text
    assert "could not be run here: 1" in text
    assert "Membership, likelihood ratio: It needs a model." in text, "an attack without words here has its own"
    assert "Homogeneity: 50 %, by guessing 20 %" in render_html(document), "for those who do not see the figure"


def test_all_attacks_on_releases_run(tmp_path: Path) -> None:
    attacks = evidence(tmp_path).attacked()
    assert attacks is not None
    assert len(attacks.results) + len(attacks.not_tried) >= 1
    assert evidence(tmp_path, original=False).attacked() is None


def test_everything_suppressed(tmp_path: Path, say: Language) -> None:
    path = evidence(tmp_path).path
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *["*,*,,"] * 10]) + "\n")
    Path(f"{path}.manifest.json").unlink()
    text = Page(render_html(release_report(ReleaseEvidence.from_file(path, ward_schema()), say))).text
    assert say("risks.nothing") in text


def test_pdf_and_same_bytes(tmp_path: Path, say: Language) -> None:
    from fedanon.report.pdf import render_pdf

    document = release_report(evidence(tmp_path), say, attacks=AttackReport([attack("homogeneity", 0.5, 0.2)], {}))
    data = render_pdf(document)
    assert 4 <= pages(data) <= 8
    assert (
        render_pdf(release_report(evidence(tmp_path), say, attacks=AttackReport([attack("homogeneity", 0.5, 0.2)], {})))
        == data
    )
