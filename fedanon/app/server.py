"""The server: routes, start and end. It listens on this machine alone and ends with the terminal it was started in."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from html import escape
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import FormData
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from fedanon.app.desk import Desk
from fedanon.app.jobs import Jobs
from fedanon.app.project import LANGUAGES, THEMES, Project
from fedanon.app.security import REFUSED, Guard, Session
from fedanon.app.shell import State, action, go, page, render, text_of, view
from fedanon.errors import FedanonError
from fedanon.report.html import page_css

TYPES = {".css": "text/css", ".js": "text/javascript"}


def build_app(project: Project, session: Session, *, warm: bool = True) -> Starlette:
    """The app of a project; its helper process, ``warm`` from the start, and its jobs end with it."""
    folder = Path(tempfile.mkdtemp(prefix="fedanon-app-"))
    steward = State(project, session, Desk(), Jobs(folder, lambda: project.folder), folder)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if warm:
            threading.Thread(target=_warm_up, args=(steward,), daemon=True).start()
        try:
            yield
        finally:
            steward.jobs.close()
            steward.desk.close()
            shutil.rmtree(folder, ignore_errors=True)

    app = Starlette(routes=_routes(), middleware=[Middleware(Guard, session=session)], lifespan=lifespan)
    app.state.steward = steward
    return app


def _warm_up(steward: State) -> None:
    """Begin the helper process; when that is ready, and the first page is there, have the others at hand too."""
    with contextlib.suppress(FedanonError):
        steward.desk.ask("examples")
    for name in PAGES.values():
        page_function(name)


#: addresses of pages, and the function of :mod:`fedanon.app.pages` that shows each
PAGES = {
    "/open": "opening.show",
    "/open/examples": "opening.examples",
    "/columns": "columns.show",
    "/columns/{index:int}": "rules.show",
    "/risk": "risk.show",
    "/protect": "protect.show",
    "/steps": "steps.show",
    "/result": "result.newest",
    "/result/{number}": "result.show",
    "/attacks/{number}": "attacks.show",
    "/report/{number}": "report.show",
    "/report/{number}/file/{name}": "report.file",
    "/federation": "federation.show",
    "/federation/live": "federation.live",
    "/federation/server": "federation.server",
    "/experiments": "experiments.show",
    "/experiments/{name}": "experiments.show",
    "/experiments/{name}/report": "experiments.file",
}
#: addresses of forms, the function that takes each, and the page that says what is wrong with it
FORMS = {
    "/open/upload": ("opening.upload", "opening.show"),
    "/open/place": ("opening.place", "opening.show"),
    "/open/reading": ("opening.reading", "opening.show"),
    "/open/example": ("opening.example", "opening.show"),
    "/columns": ("columns.save", "columns.show"),
    "/columns/propose": ("columns.propose", "opening.show"),
    "/columns/{index:int}": ("rules.save", "rules.show"),
    "/risk": ("risk.run", "risk.show"),
    "/protect": ("protect.run", "protect.show"),
    "/protect/preview": ("protect.preview", "protect.show"),
    "/protect/compare": ("protect.compare", "protect.show"),
    "/steps": ("steps.add", "steps.show"),
    "/steps/undo": ("steps.undo", "steps.show"),
    "/steps/run": ("steps.run", "steps.show"),
    "/result/{number}/rows": ("result.rows", "result.show"),
    "/attacks/{number}": ("attacks.run", "attacks.show"),
    "/report/{number}": ("report.make", "report.show"),
    "/federation": ("federation.run", "federation.show"),
    "/federation/watch": ("federation.watch", "federation.show"),
    "/federation/look": ("federation.look", "federation.show"),
    "/experiments": ("experiments.choose", "experiments.show"),
    "/experiments/{name}": ("experiments.make", "experiments.show"),
}


def _routes() -> list[Route]:
    return [
        Route("/start", start),
        Route("/static/{name}", static),
        Route("/", lambda request: RedirectResponse("/open", 303)),
        Route("/job/{id}", page(job)),
        Route("/settings", action(settings, _later("opening.show")), methods=["POST"]),
        Route("/job/{id}/cancel", action(cancel, _later("opening.show")), methods=["POST"]),
        *(Route(path, page(_later(show))) for path, show in PAGES.items()),
        *(Route(path, action(_later(act), _later(show)), methods=["POST"]) for path, (act, show) in FORMS.items()),
    ]


def _later(name: str) -> Callable[..., Any]:
    """A function of the pages that is imported when it is first called: the first page needs none of the others."""
    return lambda *given: page_function(name)(*given)


@lru_cache
def page_function(name: str) -> Callable[..., Any]:
    """The function of a page by the name of its module and its own."""
    module, _, function = name.partition(".")
    return getattr(import_module(f"fedanon.app.pages.{module}"), function)  # type: ignore[no-any-return]


# ---- what belongs to no page ---------------------------------------------------------------------


def start(request: Request) -> Response:
    """Exchange the token for a cookie.

    The page goes on by itself: a redirect would still count as coming from where the address was clicked, and the
    browser would not send the cookie along.
    """
    session: Session = request.app.state.steward.session
    if not session.is_token(request.query_params.get("token", "")):
        return PlainTextResponse(REFUSED, 403)
    response = HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/open">'
        '<title>fedanon</title><link rel="icon" href="data:,"></head>'
        '<body><p><a href="/open">fedanon</a></p></body></html>'
    )
    response.set_cookie(session.cookie_name, session.cookie, httponly=True, samesite="strict", path="/")
    return response


def static(request: Request) -> Response:
    """A file of the app itself."""
    text = _static(str(request.path_params["name"]))
    if text is None:
        return PlainTextResponse("Not found.\n", 404)
    kind = TYPES[Path(str(request.path_params["name"])).suffix]
    return Response(text, media_type=kind, headers={"Cache-Control": "no-cache"})


@lru_cache
def _static(name: str) -> str | None:
    if name == "page.css":
        return page_css()
    if name not in ("app.css", "app.js", "htmx.min.js"):
        return None
    return files("fedanon.app").joinpath("static", name).read_text(encoding="utf-8")


def settings(state: State, request: Request, form: FormData) -> Response:
    """Change the language or the theme, and stay on the page."""
    look = {}
    if text_of(form, "language") in LANGUAGES:
        look["language"] = text_of(form, "language")
    if text_of(form, "theme") in THEMES:
        look["theme"] = text_of(form, "theme")
    state.project.save("look", **look)
    return _go_back(form)


def job(state: State, request: Request) -> Response:
    """How far a job is: a part of a page, asked for again and again while it runs."""
    found = state.jobs.get(str(request.path_params["id"]))
    if found is None:
        return PlainTextResponse("Not found.\n", 404)
    response = render(state, view("job", job=found))
    if found.state == "done" and found.leads_to:
        response.headers["HX-Redirect"] = found.leads_to
    elif found.state != "running":
        response.headers["HX-Refresh"] = "true"
    return response


def cancel(state: State, request: Request, form: FormData) -> Response:
    """End a job."""
    state.jobs.cancel(str(request.path_params["id"]))
    return _go_back(form)


def _go_back(form: FormData) -> Response:
    """Go to the page a form came from, if it is one of ours."""
    back = text_of(form, "back", "/open")
    own = back.startswith("/") and not back.startswith("//") and "\\" not in back
    return go(back if own else "/open")


# ---- running -------------------------------------------------------------------------------------


def serve(folder: Path, *, port: int = 0, browser: bool = True) -> None:
    """Serve a project on this machine until interrupted; ``port`` 0 takes a free one."""
    import uvicorn

    project = Project.open(folder)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        session = Session(int(listener.getsockname()[1]))
        app = build_app(project, session)
        print(f"fedanon app: {session.address}\nProject: {project.folder}\nCtrl-C ends it.", flush=True)
        opener = _open_browser(session.address) if browser else None
        config = uvicorn.Config(
            app, log_level="critical", access_log=False, server_header=False, date_header=False, ws="none"
        )
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            if opener is not None:
                opener.unlink(missing_ok=True)


def _open_browser(address: str) -> Path:
    """Open the address by way of a file only this user can read: other users see the words of a command."""
    with tempfile.NamedTemporaryFile("w", prefix="fedanon-", suffix=".html", delete=False, encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(address)}"><title>fedanon</title>'
        )
    path = Path(file.name)
    threading.Thread(target=webbrowser.open, args=(path.as_uri(),), daemon=True).start()
    return path
