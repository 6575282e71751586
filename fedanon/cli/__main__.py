"""`fedanon` and `python -m fedanon.cli`: run a command; an error is one line and an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from functools import cache

import click

from fedanon.cli import INTERNAL_ERROR, INTERRUPTED
from fedanon.errors import FedanonError


def main() -> None:
    """Run the command line; every error fedanon raises on purpose is one line and an exit code of its kind."""
    # small matrices: threads cost more than they save, and their number would change the last bits of a sum
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        _command()()
    except FedanonError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("Interrupted; no partial output was written.", INTERRUPTED)
    except Exception as error:
        if os.environ.get("FEDANON_DEBUG"):
            raise
        # foreign messages and tracebacks may quote cells, so only the kind of error is shown
        _fail(f"Internal error ({type(error).__name__}). Set FEDANON_DEBUG=1 for the traceback.", INTERNAL_ERROR)


@cache
def _command() -> click.Command:
    """The command line; built once, since its options are read off the signatures of all commands."""
    from typer.main import get_command

    from fedanon.cli.app import app

    return get_command(app)


def _fail(message: str, code: int) -> None:
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
