"""Compute the generated parts of the pages again: what stands between `<!-- fedanon ... -->` and `<!-- end -->`.

python experiments/refresh_pages.py        from the root of the repository, after experiments were run or checked
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from fedanon.cli.app import app

PAGES = (Path("README.md"), Path("experiments/README.md"), *sorted(Path("docs").rglob("*.md")))
BLOCK = re.compile(r"(<!-- (fedanon experiment (?:show|summary) .*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def compute(block: re.Match[str]) -> str:
    """The block with what its command prints now."""
    done = CliRunner().invoke(app, shlex.split(block[2])[1:], catch_exceptions=False)
    if done.exit_code:
        raise SystemExit(f"{block[2]} ends with code {done.exit_code}:\n{done.output}")
    return f"{block[1]}{done.stdout}{block[4]}"


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        fresh = BLOCK.sub(compute, text)
        page.write_text(fresh, encoding="utf-8")
        print(f"{page}: {'changed' if fresh != text else 'as it was'}")
