"""Who may talk to the app, and what a hostile page, file or name can do: nothing."""

from __future__ import annotations

import asyncio
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fedanon.app.charts import without_styles
from fedanon.app.project import Project
from fedanon.app.security import MAX_FORM, Session
from fedanon.app.server import build_app
from fedanon.errors import ConfigError, DataError
from fedanon.federated.deployment.server import Server
from fedanon.federated.deployment.server_folder import checkpoints_in
from fedanon.learning.checkpoints import Checkpoint
from fedanon.learning.suspicion import MIN_ROUNDS, Suspicion
from tests.app.conftest import Visitor


def test_nothing_is_shown_without_the_cookie(visitor: Visitor) -> None:
    for path in ("/", "/open", "/columns", "/job/0", "/report/001/file/release.csv", "/experiments", "/nowhere"):
        assert visitor.client.get(path).status_code == 403, path


@pytest.mark.parametrize("token", ["", "wrong", "é", "a" * 5000])
def test_a_wrong_token_opens_nothing(visitor: Visitor, token: str) -> None:
    answer = visitor.client.get("/start", params={"token": token})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_the_token_becomes_a_cookie_that_no_other_site_can_send(visitor: Visitor) -> None:
    answer = visitor.client.get("/start", params={"token": visitor.session.token})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert visitor.session.token not in answer.text
    assert visitor.client.get("/job/0").status_code == 404  # known now


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "[::1]:PORT", "127.0.0.1.evil.example:PORT"],
)
def test_another_host_is_refused_whatever_it_knows(visitor: Visitor, host: str) -> None:
    visitor.enter()
    host = host.replace("PORT", str(visitor.session.port))
    assert visitor.client.get("/job/0", headers={"Host": host}).status_code == 421
    assert (
        visitor.client.get("/start", params={"token": visitor.session.token}, headers={"Host": host}).status_code == 421
    )


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:PORT", "http://localhost:PORT", None]
)
def test_a_form_of_another_origin_is_refused(visitor: Visitor, origin: str | None) -> None:
    visitor.enter()
    headers = {} if origin is None else {"Origin": origin.replace("PORT", str(visitor.session.port))}
    form = {"csrf": visitor.session.csrf, "language": "pt"}
    assert visitor.client.post("/settings", data=form, headers=headers).status_code == 403
    assert visitor.state.project.settings["look"]["language"] == "en"


def test_a_page_of_another_site_can_neither_embed_nor_fetch(visitor: Visitor) -> None:
    visitor.enter()
    for site in ("cross-site", "same-site"):
        assert visitor.client.get("/job/0", headers={"Sec-Fetch-Site": site}).status_code == 403
    policy = visitor.client.get("/job/0").headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("csrf", ["", "0" * 64, "é"])
def test_a_form_without_our_token_is_refused(visitor: Visitor, csrf: str) -> None:
    visitor.enter()
    assert visitor.post("/settings", {"csrf": csrf, "theme": "dark"}).status_code == 403
    assert visitor.state.project.settings["look"]["theme"] == "auto"
    assert visitor.post("/settings", {"theme": "dark"}).status_code == 303
    assert visitor.state.project.settings["look"]["theme"] == "dark"


@pytest.mark.parametrize("back", ["//evil.example", "http://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_no_form_leads_elsewhere(visitor: Visitor, back: str) -> None:
    visitor.enter()
    assert visitor.post("/settings", {"theme": "dark", "back": back}).headers["location"] == "/open"


def test_a_form_that_is_too_large_is_refused(visitor: Visitor) -> None:
    visitor.enter()
    assert visitor.post("/settings", {"theme": "x" * MAX_FORM}).status_code == 413


@pytest.mark.parametrize(
    "name", ["../project.toml", "..%2fproject.toml", "release.json", ".release.csv", "schema.toml"]
)
def test_only_files_that_may_be_handed_on_can_be_fetched(visitor: Visitor, name: str) -> None:
    visitor.enter()
    release = visitor.state.project.new_release()
    release.write("release", {"file": "release.csv", "source": {"data": ["a.csv"]}, "missing": "error"})
    for file in ("release.csv", ".release.csv", "schema.toml"):
        (release.path / file).write_text("secret", encoding="utf-8")
    assert visitor.client.get("/report/001/file/release.csv").text == "secret"
    answer = visitor.client.get(f"/report/001/file/{name}")
    assert answer.status_code in (404, 422)
    assert "secret" not in answer.text.replace("/secret", "")


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd.csv", "passwd.csv"),
        ("C:\\Users\\ana\\pacientes.csv", "pacientes.csv"),
        ("<img src=x onerror=alert(1)>.csv", "img src-x onerror-alert(1).csv"),
        ("-o.csv", "o.csv"),
        ("..csv.csv", "csv.csv"),
        ("internações março.CSV", "internações março.csv"),
    ],
)
def test_a_file_keeps_the_harmless_part_of_its_name(tmp_path: Path, name: str, kept: str) -> None:
    project = Project.open(tmp_path / "project")
    place = project.new_data_file(name)
    assert place.parent == tmp_path / "project" / "data"
    assert place.name == kept
    place.touch()
    assert project.new_data_file(name) != place


@pytest.mark.parametrize("name", ["a.exe", "a", "a.csv\x00.html", ".csv"])
def test_other_files_are_not_opened(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        Project.open(tmp_path / "project").new_data_file(name)


def test_a_project_of_someone_else_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "note.txt").touch()
    with pytest.raises(ConfigError, match="holds other files"):
        Project.open(tmp_path)
    (tmp_path / "project.toml").write_text("= broken", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read"):
        Project.open(tmp_path)


def test_what_says_whose_row_is_whose_is_closed_to_others(tmp_path: Path) -> None:
    project = Project.open(tmp_path / "project")
    project.new_release()
    assert stat.S_IMODE((project.folder / "secret").stat().st_mode) == 0o700


def test_the_keys_are_new_in_every_run_and_never_printed() -> None:
    one, other = Session(1), Session(1)
    assert one.token != other.token
    assert one.cookie != other.cookie
    assert one.token not in repr(one)
    assert one.cookie not in repr(one)


def test_figures_have_no_inline_style() -> None:
    assert without_styles('<path d="M 0 0" style="fill: none; stroke: var(--s0)"/>') == (
        '<path d="M 0 0" fill="none" stroke="var(--s0)"/>'
    )


def test_hostile_columns_and_cells_are_text(visitor: Visitor) -> None:
    """A table whose names and cells are markup is shown as text, and its file cannot leave the project."""
    visitor.enter()
    evil = "<script>alert(1)</script>"
    rows = "\n".join(f'"{i % 7}","<b>{i % 3}</b>","=1+1"' for i in range(60))
    table = f'"{evil}","\'"" onclick=alert(2) x=","c"\n{rows}\n'.encode()
    answer = visitor.post("/open/upload", files={"file": ("../<svg onload=alert(1)>.csv", table, "text/csv")})
    assert answer.status_code == 303, answer.text
    [kept] = (visitor.state.project.folder / "data").iterdir()
    assert kept.name == "svg onload-alert(1).csv"
    assert visitor.post("/columns/propose").status_code == 303
    for path in ("/open", "/columns", "/columns/0", "/columns/1"):
        text = visitor.client.get(path).text
        assert evil not in text
        assert "&lt;script&gt;alert(1)" in text or path == "/columns/1"
        assert '" onclick=alert' not in text
    assert not (visitor.state.project.folder.parent / "<svg onload=alert(1)>.csv").exists()


def test_nothing_is_published_while_a_column_is_undecided(visitor: Visitor) -> None:
    visitor.enter()
    rows = "\n".join(f"{20 + i % 50},{i % 3},{i % 2}" for i in range(60))
    visitor.post("/open/upload", files={"file": ("t.csv", f"age,zzz,qqq\n{rows}\n".encode(), "text/csv")})
    visitor.post("/columns/propose")
    answer = visitor.post("/columns", {"next": "1"})
    assert answer.status_code == 422
    assert "zzz" in answer.text
    assert visitor.client.get("/protect").headers["location"] == "/columns"
    answer = visitor.post("/protect", {"method": "mondrian", "k": "5"})
    assert answer.status_code == 422
    assert "undecided" in answer.text
    assert visitor.state.jobs.running is None
    assert visitor.state.project.releases() == []


def test_what_was_shown_is_gone_with_the_process(tmp_path: Path) -> None:
    app = build_app(Project.open(tmp_path / "project"), Session(1), warm=False)
    steward = app.state.steward

    async def live() -> None:
        async with app.router.lifespan_context(app):
            assert steward.folder.is_dir()

    with ThreadPoolExecutor(1) as pool:  # a browser's driver has a loop in this thread
        pool.submit(asyncio.run, live()).result()
    assert not steward.folder.exists()
    assert steward.desk.pid is None


def test_what_nodes_of_a_real_server_say_is_text_and_its_folder_stays_as_it_is(
    visitor: Visitor, tmp_path: Path
) -> None:
    """Names and reasons come from other hospitals; faults, suspects and days left are shown, nothing is written."""
    server = Server.init(tmp_path / "server", host="127.0.0.1", port=9443, nodes=2, days=20)
    evil = "<script>alert(1)</script>"
    suspicion, rng = Suspicion(), np.random.default_rng(0)
    for _ in range(MIN_ROUNDS):
        suspicion.look({i: rng.normal(size=20) + 50.0 * (i == 7) for i in range(9)}, dict.fromkeys(range(9), 100))
    rejected = [{"round": 2, "node": 1, "reason": f"it came twice {evil}"}]
    silent = [{"round": 1, "node": 4, "during": "train"}]
    rounds = [{"round": i, "accuracy": 0.7, "log_loss": 0.5} for i in (1, 2)]
    last = Checkpoint(2, [np.zeros(1)], rounds, rejected, silent, suspicion.to_keep(), {"1": evil, "7": "ufmg"})
    checkpoints_in(server.folder).save(server.config.run, last)
    before = {file: file.stat().st_mtime_ns for file in server.folder.rglob("*")}
    visitor.enter()
    assert visitor.post("/federation/watch", {"folder": str(tmp_path)}).status_code == 422
    assert visitor.post("/federation/watch", {"folder": str(server.folder)}).status_code == 303
    for path in ("/federation", "/federation/server"):
        text = visitor.client.get(path).text
        assert evil not in text
        assert "&lt;script&gt;alert(1)" in text
        assert "2 of 10" in text
        assert "19 (renew it)" in text
        assert re.search(r'ufmg</th>.*?class="bad">yes<', text)
    assert {file: file.stat().st_mtime_ns for file in server.folder.rglob("*")} == before
