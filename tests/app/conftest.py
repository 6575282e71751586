"""The app as a real process with a real browser; and the app in this process, for what needs no browser."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from fedanon.app.project import Project
from fedanon.app.security import Session
from fedanon.app.server import build_app
from fedanon.app.shell import State

CHROMIUM = shutil.which("chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


class Visitor:
    """A browser without a screen that knows the token, or does not."""

    def __init__(self, client: httpx.Client, session: Session, state: State) -> None:
        self.client, self.session, self.state = client, session, state

    def enter(self) -> None:
        assert self.client.get("/start", params={"token": self.session.token}).status_code == 200

    def post(self, path: str, data: dict[str, Any] | None = None, **more: Any) -> Any:
        """Send a form as our own page does."""
        origin = {"Origin": f"http://127.0.0.1:{self.session.port}"}
        filled = {"csrf": self.session.csrf, **(data or {})}
        return self.client.post(path, data=filled, headers=origin, **more)


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Visitor]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        session = Session(int(listener.getsockname()[1]))
        app = build_app(Project.open(tmp_path / "project"), session, warm=False)
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        with httpx.Client(base_url=f"http://127.0.0.1:{session.port}", timeout=240) as client:
            yield Visitor(client, session, app.state.steward)
        server.should_exit = True
        thread.join()


# ---- a real browser ------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    if find_spec("playwright") is None:
        pytest.skip("playwright is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Steward:
    """Someone who uses the app with a browser; counts the clicks."""

    def __init__(self, browser: Any, address: str, project: Path) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
        self.context.set_default_timeout(120_000)
        self.address, self.project, self.clicks = address, project, 0
        self.base = address.split("/start")[0]
        self.page = self.open_tab()
        self.page.goto(address)
        self.page.wait_for_url("**/open")

    def open_tab(self) -> Any:
        page = self.context.new_page()
        # no test ever expects one: a script of somebody else's would have run
        page.on("dialog", lambda _: pytest.fail("a script ran"))
        page.on("pageerror", lambda error: pytest.fail(f"our script failed: {error}"))
        return page

    def press(self, name: str, role: str = "button") -> None:
        self.clicks += 1
        self.page.get_by_role(role, name=name).first.click()

    def open_file(self, file: Path) -> None:
        """Choose a file, and go on to its columns."""
        self.page.set_input_files("input[type=file]", file)
        self.page.locator("form[action='/open/upload'] button").click()
        self.wait("#preview table")
        self.press("Continue to the columns")
        self.page.wait_for_url("**/columns")

    def heading(self) -> str:
        return str(self.page.locator("h1").inner_text())

    def wait(self, selector: str) -> None:
        self.page.wait_for_selector(selector)


Start = Callable[[], Steward]


@pytest.fixture
def start(browser: Any, tmp_path: Path) -> Iterator[Start]:
    """Starts the command and opens its address."""
    begun: list[tuple[subprocess.Popen[str], Steward]] = []

    def begin() -> Steward:
        words = [sys.executable, "-m", "fedanon.cli", "app", str(tmp_path / "project"), "--no-browser"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ), cwd=tmp_path)
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/start\?token=\S+", process.stdout.readline())
        assert found is not None
        begun.append((process, Steward(browser, found[0], tmp_path / "project")))
        return begun[-1][1]

    yield begin
    for process, steward in begun:
        steward.context.close()
        process.send_signal(signal.SIGINT)
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
