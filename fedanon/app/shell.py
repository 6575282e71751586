"""What all pages share: the state of the app, how a page is shown, and how a form is taken."""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from fedanon._version import __version__
from fedanon.app.desk import Desk
from fedanon.app.jobs import Jobs, latest, shown_command
from fedanon.app.language import app_language, translate
from fedanon.app.project import NO_TABLE, Project, ReleaseFolder
from fedanon.app.security import Session
from fedanon.errors import ConfigError, FedanonError
from fedanon.report.privacy.language import Language

#: the pages, in the order of the work
STEPS = ("open", "columns", "risk", "protect", "result", "attacks", "report", "federation", "experiments")
#: those of one release
OF_RELEASE = ("result", "attacks", "report")
#: columns of a form are many
MAX_FIELDS = 20_000


@dataclass
class State:
    """What the app knows while it runs.

    Parameters
    ----------
    project : the folder of the work.
    session : the keys of this run.
    desk : the helper process.
    jobs : the commands that run.
    folder : for what is gone with the process.
    opened : what is shown of the table, if it was read in this run.
    columns : what each column holds, if that was looked at.
    federation : what a real server's folder said last.
    settings : two settings to be seen side by side, measured on the sample.
    """

    project: Project
    session: Session
    desk: Desk
    jobs: Jobs
    folder: Path
    opened: dict[str, Any] | None = None
    columns: list[dict[str, Any]] | None = None
    federation: dict[str, Any] | None = None
    settings: list[dict[str, Any]] = field(default_factory=list)

    @property
    def say(self) -> Language:
        """The language of the pages."""
        return app_language(str(self.project.settings["look"]["language"]))

    def forget_table(self) -> None:
        """Forget what belongs to the table that was open."""
        self.opened = self.columns = None
        self.settings = []

    def source(self, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Where a table is, that which is open unless one is given, as the helper process reads it: from anywhere."""
        from_here = dict(self.project.source if given is None else given)
        if not from_here:
            raise ConfigError(NO_TABLE)
        places = [each if "://" in each else self.place(each) for each in from_here["data"]]
        views = [self.place(view) for view in from_here.get("views", ())]
        return {**from_here, "data": places, **({"views": views} if views else {})}

    def place(self, path: str) -> str:
        """A file of the project, or one elsewhere, as it can be opened from anywhere."""
        return str(self.project.folder / path)

    def table(self) -> dict[str, Any]:
        """The table with its schema and key, and what happens to missing cells."""
        key = {"key": self.place(self.project.key)} if self.project.needs_key else {}
        source = {**self.source(), "schema": str(self.project.schema), **key}
        return {"source": source, "missing": self.project.missing}

    def release_files(self, release: ReleaseFolder, made: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A release and what it was made from; ``made`` says it while the release is not complete."""
        known = release.made if made is None else made
        return {
            "release": str(release.path / known["file"]),
            "schema": self.place(known["schema"]),
            "source": self.source(known["source"]),
            "missing": known["missing"],
            "row_key": str(release.row_key),
            "key": known["key"] and self.place(known["key"]),
            "in_series": known["series"],
            "previous": [self.place(one) for one in known["previous"]],
        }


@dataclass(frozen=True)
class PageView:
    """A page, or a part of one: a template and what it shows."""

    template: str
    values: dict[str, Any]

    @property
    def step(self) -> str:
        """The step of the work it belongs to."""
        return str(self.values.get("step", self.template))


def view(template: str, /, **values: Any) -> PageView:
    """What a page shows; ``step`` says where it belongs if its template does not."""
    return PageView(template, values)


Page = Callable[[State, Request], PageView | Response]
Action = Callable[[State, Request, FormData], PageView | Response]


@lru_cache
def templates() -> Environment:
    """The templates, which escape whatever is put into them."""
    environment = Environment(
        loader=PackageLoader("fedanon.app"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["coded"] = _coded
    environment.filters["as_number"] = lambda value: f"{value:.15g}" if isinstance(value, float) else value
    environment.globals["shown_command"] = shown_command
    environment.globals["latest"] = latest
    return environment


def _coded(text: str) -> Markup:
    """A sentence of the report, in which names stand between backticks."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def render(state: State, shown: PageView, *, status: int = 200, error: str = "", back: str = "") -> HTMLResponse:
    """A page, or a part of one, with what failed, if anything did; ``back`` is its own address."""
    say, step = state.say, shown.step if shown.step in STEPS else ""
    shared = {
        "state": state,
        "project": state.project,
        "steps": _steps(state),
        "t": _Texts(say),
        "say": say,
        "language": say.code,
        "theme": state.project.settings["look"]["theme"],
        "csrf": state.session.csrf,
        "version": __version__,
        "running": state.jobs.running,
        "back": back or f"/{step or STEPS[0]}",
    }
    failed = {"error": error or shown.values.get("error", "")}
    text = templates().get_template(f"{shown.template}.html").render({**shared, **shown.values, **failed, "step": step})
    return HTMLResponse(text, status)


class _Texts:
    """The texts of the app by short keys, for templates."""

    def __init__(self, say: Language) -> None:
        self._say = say

    def __call__(self, key: str, /, **filled: Any) -> str:
        return self._say(f"app.{key}", **filled)

    def knows(self, key: str) -> bool:
        return self._say.knows(f"app.{key}")

    def tell(self, text: str) -> str:
        """A sentence of the library; one that is not known in the language is marked as English."""
        told = text if isinstance(text, OwnWords) else translate(text, self._say.code)
        return told if told is not None else Markup('<span lang="en">{}</span>').format(text)


def _steps(state: State) -> list[tuple[str, str]]:
    """The pages with their addresses; empty where there is nothing to show yet."""
    project = state.project
    newest = next(iter(project.releases()), None)
    found = []
    for name in STEPS:
        ready = name in ("open", "federation", "experiments") or (project.has_schema and name not in OF_RELEASE)
        if name in OF_RELEASE and newest is not None:
            found.append((name, f"/{name}/{newest.number}"))
        else:
            found.append((name, f"/{name}" if ready else ""))
    return found


def page(show: Page) -> Callable[[Request], Response]:
    """The endpoint of a page; what fails is said on a page of its own."""

    def endpoint(request: Request) -> Response:
        state: State = request.app.state.steward
        try:
            return _answer(state, show(state, request), back=request.url.path)
        except Exception as error:
            status, message = _told(error, state)
            return render(state, FAILED, status=status, error=message)

    return endpoint


def action(act: Action, show: Page) -> Callable[[Request], Any]:
    """The endpoint of a form; what fails is said on the page it came from."""

    async def endpoint(request: Request) -> Response:
        state: State = request.app.state.steward
        async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
            given = form.get("csrf") or request.headers.get("x-csrf", "")
            if not hmac.compare_digest(str(given).encode(), state.session.csrf.encode()):
                return PlainTextResponse("Forbidden.\n", 403)
            try:
                return await run_in_threadpool(lambda: _answer(state, act(state, request, form)))
            except Exception as error:
                return await run_in_threadpool(_shown_error, state, request, show, error)

    return endpoint


FAILED = view("failed")


def _answer(state: State, shown: PageView | Response, **how: Any) -> Response:
    return render(state, shown, **how) if isinstance(shown, PageView) else shown


def _shown_error(state: State, request: Request, show: Page, error: Exception) -> Response:
    status, message = _told(error, state)
    try:
        shown = show(state, request)
    except Exception:
        shown = FAILED
    # a page that leads elsewhere would lose the message
    return render(state, shown if isinstance(shown, PageView) else FAILED, status=status, error=message)


class OwnWords(str):
    """A sentence of the app, in the language of the page already."""


class FormError(ConfigError):
    """What a page does not take, in its own words.

    Parameters
    ----------
    state : says in which language.
    key : of the text.
    values : that are filled in.
    """

    def __init__(self, state: State, key: str, **values: Any) -> None:
        super().__init__(state.say(f"app.{key}", **values))


def _told(error: Exception, state: State) -> tuple[int, str]:
    """The status and the words of an error; those of a foreign one may quote a cell, so only its kind is told."""
    if isinstance(error, FormError):
        return 422, OwnWords(error)
    if isinstance(error, FedanonError):
        return 422, str(error)
    if os.environ.get("FEDANON_DEBUG"):
        raise error
    return 500, OwnWords(state.say("app.shell.internal", kind=type(error).__name__))


def go(path: str) -> RedirectResponse:
    """Go on to a page; the browser's back and reload then repeat no form."""
    return RedirectResponse(path, 303)


def text_of(form: Mapping[str, Any], name: str, usual: str = "") -> str:
    """A field of a form as text."""
    value = form.get(name, usual)
    return value.strip() if isinstance(value, str) else usual
