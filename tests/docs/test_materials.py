"""The list of licenses: what a package declares, else the title of its license file, else an error."""

from __future__ import annotations

import pytest
from materials import license_of


@pytest.mark.parametrize(
    ("declared", "shipped", "listed"),
    [
        ("MIT", "Apache License", "MIT"),
        ("MIT License\n\nPermission is hereby granted", "UNKNOWN", "MIT License"),
        ("UNKNOWN", "MIT License\n\nCopyright (c) 2020", "MIT License (title of its file)"),
        ("", "\n  The Unlicense \nThis is free", "The Unlicense (title of its file)"),
        ("UNKNOWN", "Copyright (c) 2020 somebody", "UNKNOWN"),
        ("UNKNOWN", "UNKNOWN", "UNKNOWN"),
        ("UNKNOWN", "", "UNKNOWN"),
    ],
)
def test_license_of_a_package(declared: str, shipped: str, listed: str) -> None:
    assert license_of({"License": declared, "LicenseText": shipped}) == listed
