"""What a federation is doing, as its server's folder and, if it runs, its SuperLink tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedanon.federated.deployment import flower
from fedanon.federated.deployment.conduct import conduct
from fedanon.federated.deployment.link import Link
from fedanon.federated.deployment.server import Server
from fedanon.federated.deployment.serving import checkpoints_in, result_path


def status(folder: Path, *, insecure: bool = False) -> dict[str, Any]:
    """Registered nodes, those online, the run, its last checkpoint and its result, and days until keys expire."""
    server = Server(folder)
    settings = server.config.run
    last = checkpoints_in(server.folder).last(settings)
    link = Link(server.folder, server.config, insecure=insecure)
    up = link.is_up()
    return {
        "server": "running" if up else "stopped",
        "registered": server.roster.names(),
        "nodes": _ask(link, "nodes", "supernode", "list") if up else [],
        "runs": _ask(link, "runs", "list") if up else [],
        "rounds": settings.rounds,
        "checkpoint_round": last.round_number if last else 0,
        "rejected": last.rejected if last else [],
        "silent": last.silent if last else [],
        "conduct": conduct(last) if last else [],
        "finished": result_path(server.folder, settings).exists(),
        "days_left": server.days_left(),
    }


def _ask(link: Link, what: str, *command: str) -> list[dict[str, Any]]:
    done, said = flower.call([*command, link.NAME, "--format", "json"], link.environment)
    try:
        found = json.loads(said[said.index("{") :]) if done else {}
    except ValueError:
        return []
    return list(found.get(what, []))
