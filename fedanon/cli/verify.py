"""`fedanon verify`: everything a manifest says, checked once more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_checks, print_conclusion, print_json
from fedanon.cli.series import Previous, known_series
from fedanon.errors import ConfigError, PrivacyViolationError

if TYPE_CHECKING:
    from fedanon.io.manifest import Manifest
    from fedanon.release.conclusion import Conclusion
    from fedanon.verification import Check


@options.takes_reading
def verify(
    reading: options.ReadOptions,
    manifest: Annotated[Path, typer.Argument(help="The manifest (RELEASE.manifest.json), or the released file.")],
    release: Annotated[Path | None, typer.Option(help="The released file, if it is not next to the manifest.")] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema of the original table, to compare its hash.")] = None,
    original: Annotated[
        str | None,
        typer.Option(help="The original, a file or a database: adds checks of people, data hash and truthfulness."),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the release again from --original and compare its rows or bytes.")
    ] = False,
    row_key: options.RowKey = None,
    key: options.PersonKeyFile = None,
    previous: Previous = None,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Verify a release by its manifest: hashes, sizes and every claim; exit code 4 if any check fails.

    The schema is taken from the manifest. What the file alone cannot show (people without --original, k over a
    federation) is reported as open.
    """
    from fedanon.data.schema import Schema
    from fedanon.io.person_key import read_person_key
    from fedanon.verification import Verification

    if rebuild and original is None:
        raise ConfigError("--rebuild needs --original.")
    with audited(audit, "verify") as entry:
        found = _manifest(manifest, release)
        entry |= {"manifest": found.path.name, "expected_sha256": found.expected_sha256}
        declared = None if schema is None else Schema.read(schema)
        table = reading.at(original)
        person_key = None if key is None else read_person_key(key)
        series = known_series(found.release, schema, previous)
        verification = Verification(found, declared, table.source if original else None, row_key, person_key, series)
        checks = list(verification.checks(rebuild=rebuild))
        conclusion = verification.conclude(checks)
        failed = [check.name for check in checks if check.outcome == "fail"]
        entry |= {"checks": {check.name: check.outcome for check in checks}, "outcome": "failed" if failed else "done"}
        entry["conclusion"] = conclusion.level
    if as_json:
        lines = [vars(check) for check in checks]
        said = {"verified": conclusion.level != "broken", "conclusion": conclusion.to_dict(), "checks": lines}
        print_json({"manifest": str(found.path), **said})
    else:
        _report(found, checks, failed, conclusion)
    if conclusion.level == "broken":
        raise typer.Exit(PrivacyViolationError.exit_code)


def _manifest(path: Path, release: Path | None) -> Manifest:
    from fedanon.io.manifest import Manifest
    from fedanon.io.outputs import MANIFEST

    beside = None if path.name.endswith(MANIFEST) or release is not None else Manifest.beside(path)
    return beside or Manifest.read(path, release)


def _report(manifest: Manifest, checks: list[Check], failed: list[str], conclusion: Conclusion) -> None:
    out = console()
    print_checks(checks)
    print_conclusion(conclusion)
    left = sum(check.outcome == "open" for check in checks)
    more = f"; {left} left open" if left else ""
    name = manifest.release.name
    if failed:
        out.print(f"{name} is NOT what its manifest says: {len(failed)} of {len(checks)} checks failed{more}.")
    else:
        out.print(f"{name} is what its manifest says: no check failed{more}.")
