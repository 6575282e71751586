"""`fedanon audit`: look at an audit log; and how commands write to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json
from fedanon.errors import FedanonError, PrivacyViolationError

app = typer.Typer(help="Inspect an audit log written by --audit FILE or FEDANON_AUDIT.", no_args_is_help=True)

Log = Annotated[Path, typer.Argument(help="The audit log.")]
AuditFile = Annotated[
    Path | None, typer.Option("--audit", help="Append a line to this audit log; by default the one in FEDANON_AUDIT.")
]


@contextmanager
def audited(path: Path | None, event: str) -> Iterator[dict[str, Any]]:
    """Log what happens in the block: the facts it adds, whether it was done or refused, and why.

    A log that cannot be written stops the block before it begins.
    """
    from fedanon.io.audit import AuditLog

    log, facts = AuditLog.wanted(path), dict[str, Any]()
    if log is not None:
        log.check_ready()
    try:
        yield facts
    except FedanonError as error:
        if log is not None:
            log.append(event, {**facts, "outcome": "refused", "reason": str(error)})
        raise
    if log is not None:
        log.append(event, {"outcome": "done", **facts})


@app.command()
def verify(
    log: Log,
    head: Annotated[
        str | None, typer.Option(help="A hash that `fedanon audit head` printed earlier for this log.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Follow the chain of hashes and name the first line that was changed, removed, added or moved.

    That lines are missing at the end, or that the whole log was written anew, shows only against a hash of an earlier
    `fedanon audit head` that was kept elsewhere: give it with --head. Exit code 4 if anything does not fit.
    """
    from fedanon.io.audit import read_chain

    chain, hashes = read_chain(log)
    if chain.broken is not None:
        raise PrivacyViolationError(f"Line {chain.broken} of {log.name} breaks the chain: {chain.reason}.")
    if head is not None and head.lower() not in hashes:
        raise PrivacyViolationError(
            f"No line of {log.name} has the hash given by --head: the end is missing, or the log was written anew."
        )
    since = None if head is None else chain.lines - 1 - hashes.index(head.lower())
    if as_json:
        print_json({"log": str(log), "lines": chain.lines, "head": chain.head, "lines_since": since})
        return
    out = console()
    out.print(f"{chain.lines} lines follow one from another; the last has the hash {chain.head}.")
    if since is None:
        out.print("Whether lines are missing at the end shows only against an earlier head: --head HASH.")
    else:
        out.print(f"The head that was given is there, with {since} lines after it.")


@app.command()
def head(log: Log) -> None:
    """Print the hash of the last line. Keep it elsewhere: it is what a shortened log cannot show."""
    from fedanon.io.audit import read_chain

    chain, _ = read_chain(log)
    if chain.broken is not None:
        raise PrivacyViolationError(f"Line {chain.broken} of {log.name} breaks the chain: {chain.reason}.")
    typer.echo(chain.head)
