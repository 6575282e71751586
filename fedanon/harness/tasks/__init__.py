"""What one cell of an experiment computes: one file per task, registered under the name a TOML file uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon.registry import Registry

if TYPE_CHECKING:
    from fedanon.harness.tasks.base import Task

TASKS: Registry[type[Task]] = Registry("task", __name__, group="fedanon.tasks")
