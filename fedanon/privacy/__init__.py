"""What must hold: privacy models, judged on the published rows."""

from fedanon.registry import Registry

MODELS: Registry[type] = Registry("privacy model", __name__)
