"""Settings of the property tests: no deadline, because the first call of a kernel compiles it."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
