"""Portuguese throughout: every page, what fails, and what the library says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import fedanon
from fedanon.app.language import sentences, translate
from tests.app.conftest import Visitor

ROOT = Path(fedanon.__file__).parent
#: the rooms whose errors a steward may meet
ROOMS = ("data", "io", "datasets", "privacy", "release", "anonymizers", "app", "fields.py")
#: the least share of their errors that are known in Portuguese; what is missing is shown as English
LEAST_KNOWN = 0.8
#: words that every English sentence of the app or the library has one of, and no Portuguese one
ENGLISH = re.compile(r"\b(the|and|of|is|are|was|with|not|cannot|which|this|that|has|it|its|from|by|for|to|be)\b", re.I)


class Reader(HTMLParser):
    """The texts of a page that are in its language: none inside code, options of names, or a part in another one."""

    SKIPPED = ("script", "style", "code", "pre", "option", "textarea", "title")

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.texts += [given[name] or "" for name in ("aria-label", "placeholder") if name in given]
        if tag not in ("input", "meta", "link", "br", "path", "rect", "use"):
            foreign = tag in self.SKIPPED or given.get("lang") == "en"
            self._open.append((tag, foreign))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            continue

    def handle_data(self, data: str) -> None:
        if not any(foreign for _, foreign in self._open):
            self.texts.append(data)


def english_texts(page: str) -> list[str]:
    reader = Reader()
    reader.feed(page)
    texts = (re.sub(r"\S*/\S*", "", text) for text in reader.texts)  # the names of files are what they are
    return [text.strip() for text in texts if ENGLISH.search(text)]


def foreign_parts(page: str) -> list[str]:
    """What is marked as English though the page is Portuguese."""
    return re.findall(r'<span lang="en">(.*?)</span>', page)


TABLE = "prontuario,idade,sexo,cep,diagnostico,nota\n" + "".join(
    f"P{i:03},{20 + i % 50},{'FM'[i % 2]},30{i % 9}10-000,{('gripe', 'dengue', 'asma')[i % 3]},{i % 7}\n"
    for i in range(90)
)


def test_every_page_and_what_fails_is_portuguese(visitor: Visitor, tmp_path: Path) -> None:
    """All pages of a project with a release; forms that are refused, by the app and by the library."""
    visitor.enter()
    visitor.post("/settings", {"language": "pt"})
    pages = {"first": visitor.client.get("/open").text}
    visitor.post("/open/upload", files={"file": ("internações.csv", TABLE.encode(), "text/csv")})
    visitor.post("/columns/propose")
    pages["undecided"] = visitor.post("/columns", {"next": "1"}).text
    wrong = {f"role_{i}": role for i, role in enumerate(("identifying", *["quasi_identifying"] * 5))}
    pages["no people"] = visitor.post("/columns", {**wrong, "person": "records", "shift": "x"}).text
    roles = ("identifying", "quasi_identifying", "quasi_identifying", "quasi_identifying", "sensitive", "insensitive")
    form = {f"role_{i}": role for i, role in enumerate(roles)} | {"person": "column:prontuario"}
    assert visitor.post("/columns", {**form, "next": "1"}).status_code == 303
    assert visitor.post("/protect", {"method": "mondrian", "k": "5", "l": "2", "column": "0"}).status_code == 303
    job = visitor.state.jobs.last("release")
    assert job is not None
    while job.state == "running":
        pages["running"] = visitor.client.get(f"/job/{job.id}").text
    assert job.state == "done", job.message
    for path in ("/open", "/columns", "/risk", "/protect", "/steps", "/result/001", "/attacks/001", "/report/001"):
        pages[path] = visitor.client.get(path).text
    for path in ("/columns/1", "/columns/2", "/columns/3", "/federation", "/experiments", "/result/999"):
        pages[path] = visitor.client.get(path).text
    pages["rows"] = visitor.post("/result/001/rows", {"start": "1"}).text
    pages["bad step"] = visitor.post("/steps", {"step": "nada"}).text
    pages["bad method"] = visitor.post("/protect", {"method": "nada", "k": "5"}).text
    pages["bad place"] = visitor.post("/open/place", {"place": str(tmp_path / "nada.csv")}).text
    pages["bad query"] = visitor.post(
        "/open/place", {"place": f"sqlite:///{tmp_path}/nada.db", "query": "SELECT 1"}
    ).text
    pages["bad rule"] = visitor.post("/columns/1", {"type": "numeric", "low": "30", "high": "40"}).text
    pages["misfit"] = visitor.post("/columns", {**form, "next": "1"}).text
    pages["bad server"] = visitor.post("/federation/watch", {"folder": str(tmp_path)}).text
    for name, page in pages.items():
        assert english_texts(page) == [], name
        assert foreign_parts(page) == [], name


def test_the_test_sees_english() -> None:
    page = '<p>A tabela</p><p>The file is empty.</p><p lang="en">The end of it</p><code>the</code>'
    assert english_texts(page) == ["The file is empty."]


def raised_templates() -> Iterator[str]:
    """The sentences of the errors that are raised, with a word in place of what is filled in."""
    for room in ROOMS:
        place = ROOT / room
        for file in sorted(place.rglob("*.py") if place.is_dir() else [place]):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                    told = node.exc.args[0]
                    parts = told.values if isinstance(told, ast.JoinedStr) else [told]
                    texts = [str(one.value) if isinstance(one, ast.Constant) else "7" for one in parts]
                    if not isinstance(told, (ast.JoinedStr, ast.Constant)) or " " not in "".join(texts):
                        continue
                    yield "".join(texts)


def test_most_errors_a_steward_may_meet_are_known_in_portuguese() -> None:
    templates = set(raised_templates())
    unknown = sorted(text for text in templates if translate(text, "pt") is None)
    known = 1 - len(unknown) / len(templates)
    assert len(templates) > 250
    assert known >= LEAST_KNOWN, unknown


@pytest.mark.parametrize(
    ("english", "portuguese"),
    [
        ("The file a b.csv does not exist.", "O arquivo a b.csv não existe."),
        ("The column 'x': {y} must be a number.", "A coluna 'x': {y} deve ser um número."),
        (
            "nearly every row has its own value (1,858 values on 1,900 rows), as a record number has",
            "quase toda linha tem um valor só seu (1.858 valores em 1.900 linhas), como um número de registro",
        ),
        ("The table has no rows. The file a.csv is empty.", "A tabela não tem linhas. O arquivo a.csv está vazio."),
        ("Nobody wrote this sentence.", None),
    ],
)
def test_sentences_are_translated_with_what_stands_in_them(english: str, portuguese: str | None) -> None:
    assert translate(english, "pt") == portuguese
    assert translate(english, "en") == english


def test_every_translation_fills_in_what_its_sentence_holds() -> None:
    for pattern, text in sentences("pt"):
        assert set(re.findall(r"{(\w+)}", text)) <= set(pattern.groupindex), text
