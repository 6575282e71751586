"""A Ray cluster for the length of a piece of work: the one RAY_ADDRESS names, or one on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fedanon.errors import ConfigError


@contextmanager
def ray_cluster(workers: int) -> Iterator[Any]:
    """Ray, with a cluster that is left as it was found; one that is started here has ``workers`` processes."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # no warning about accelerators there are not
    try:
        import ray
    except ModuleNotFoundError:
        raise ConfigError("The ray engine needs Ray: pip install 'fedanon[simulation]'.") from None
    started = not ray.is_initialized()
    if started:
        here = {"num_cpus": workers, "include_dashboard": False}
        limits: dict[str, Any] = {} if os.environ.get("RAY_ADDRESS") else here
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **limits)
        except ConnectionError:
            raise ConfigError("No Ray cluster answers at the address in RAY_ADDRESS.") from None
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()
