"""What mkdocs does not check of the built site: it loads nothing from another host, and the files at the root link to
what is there.

Links inside docs/ and their anchors are checked by `mkdocs build` itself, with warnings as errors.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: what a browser fetches by itself when it opens a page
_LOADED = re.compile(
    r'<(?:script|img|iframe|source|video|audio)[^>]*\ssrc="(?:https?:)?//[^"]*"|<link[^>]*href="(?:https?:)?//[^"]*"'
)
_LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)")
AT_ROOT = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "GOVERNANCE.md",
    "CODE_OF_CONDUCT.md",
    "experiments/README.md",
    "examples/README.md",
)


def loads_from_elsewhere(site: Path) -> list[str]:
    """Pages that make a browser ask another host for something."""
    found = []
    for page in sorted(site.rglob("*.html")):
        found += [
            f"{page.relative_to(site)}: {match[:120]}" for match in _LOADED.findall(page.read_text(encoding="utf-8"))
        ]
    for sheet in sorted(site.rglob("*.css")):
        if re.search(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")):
            found.append(f"{sheet.relative_to(site)}: loads from another host")
    return found


def broken_links(root: Path) -> list[str]:
    """Links of the files at the root that lead nowhere."""
    found = []
    for name in AT_ROOT:
        path = root / name
        text = re.sub(r"(?ms)^ *```.*?^ *```$", "", path.read_text(encoding="utf-8")) if path.exists() else ""
        found += [f"{name}: {link}" for link in _LINK.findall(text) if not (path.parent / link).exists()]
    return found


if __name__ == "__main__":
    problems = [*loads_from_elsewhere(ROOT / "build" / "site"), *broken_links(ROOT)]
    print("\n".join(problems) or "links and pages: nothing to complain about")
    sys.exit(bool(problems))
