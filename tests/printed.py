"""The Python code that the documentation prints."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def printed(document: str) -> list[str]:
    """Every block of Python in a document, in order."""
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)


def recipes() -> dict[str, str]:
    """The recipes for components, by the name of the file that their first line gives."""
    found = {}
    for code in (*printed("CONTRIBUTING.md"), *printed("docs/reference/privacy_models.md")):
        first, _, rest = code.partition("\n")
        if first.startswith("# fedanon/"):
            found[Path(first).name] = rest
    return found
