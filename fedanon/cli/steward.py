"""`fedanon app`: the steward's app, a local web page from a file to a verified release and its report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedanon.errors import ConfigError


def app(
    project: Annotated[
        Path, typer.Argument(help="Folder of the project, created if necessary; it can be copied.")
    ] = Path("fedanon-project"),
    port: Annotated[int, typer.Option(help="Port on this machine; a free one by default.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> None:
    """Open the app in the browser: a table in, roles, risk, a verified release, attacks, a report.

    It listens on this machine alone, at an address with a random token, and ends with Ctrl-C.
    """
    try:
        from fedanon.app.server import serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"The app needs {error.name}: pip install 'fedanon[app]'.") from None
    serve(project, port=port, browser=browser)
