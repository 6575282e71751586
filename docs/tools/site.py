"""Hooks of mkdocs: pages generated from the code, pages of the repository, links that leave docs/, and formulas.

Nothing here reaches the network: formulas become MathML when the site is built.
"""

from __future__ import annotations

import html
import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from latex2mathml.converter import convert

sys.path.insert(0, str(Path(__file__).parent))

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from reference import generated_pages

ROOT = Path(__file__).parents[2]
#: files at the root of the repository that are pages of the site too
PROJECT = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "GOVERNANCE.md": "project/governance.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "experiments/README.md": "project/experiments.md",
    "examples/README.md": "project/examples.md",
}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is generated, what lies at the root, and the pictures that pages show from experiments/."""
    for path, content in generated_pages().items():
        files.append(File.generated(config, path, content=content))
    for source, path in PROJECT.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text(encoding="utf-8")))
    for picture in sorted((ROOT / "experiments").glob("results/*.png")):
        files.append(File.generated(config, f"pictures/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/ to what the site has of the repository; those it does not have become plain text."""
    uri = page.file.src_uri
    home = next((source for source, path in PROJECT.items() if path == uri), f"docs/{uri}")

    def moved(match: re.Match[str]) -> str:
        mark, text, link, anchor = match[1], match[2], match[3], match[4] or ""
        target = os.path.normpath(PurePosixPath(home).parent / link)
        if target.startswith("docs/"):
            place = target.removeprefix("docs/")
        elif target in PROJECT:
            place = PROJECT[target]
        elif mark and files.get_file_from_path(f"pictures/{PurePosixPath(target).name}"):
            place = f"pictures/{PurePosixPath(target).name}"
        elif (ROOT / target).exists():
            return f"{text} (`{target}`)" if text.strip("`") != target else f"`{target}`"
        else:
            return match[0]
        return f"{mark}[{text}]({os.path.relpath(place, PurePosixPath(uri).parent)}{anchor})"

    parts = re.split(r"(?ms)(^ *```.*?^ *```$)", markdown)
    parts[::2] = [_LINK.sub(moved, part) for part in parts[::2]]
    return "".join(parts)


def on_page_content(page_html: str, /, **_: Any) -> str:
    """Turn formulas into MathML."""
    return re.sub(
        r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>',
        lambda m: convert(html.unescape(m[2]), display="block" if m[1] == "div" else "inline"),
        page_html,
        flags=re.DOTALL,
    )
