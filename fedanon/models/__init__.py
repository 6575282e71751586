"""Is it still useful: models that learn from releases and are tested on raw or recoded rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.models.base import Model

MODELS: Registry[type[Model]] = Registry("model", __name__)
