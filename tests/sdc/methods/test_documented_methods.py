"""Every method for numbers and for categories is on its page."""

from __future__ import annotations

import re
from pathlib import Path

from fedanon.anonymizers import ANONYMIZERS
from fedanon.sdc.methods.base import Perturbative

DOCS = Path(__file__).parents[3] / "docs"


def test_every_method_is_on_a_page() -> None:
    text = "".join(
        (DOCS / page).read_text(encoding="utf-8")
        for page in ("explanation/numeric_methods.md", "how-to/disclosure_control_steps.md")
    )
    named = set(re.findall(r"`([a-z0-9_]+)`", text))
    methods = {name for name, method in ANONYMIZERS.items() if issubclass(method, Perturbative)}
    assert len(methods) > 25
    assert methods <= named
