"""What must hold: privacy models, judged on the published rows."""

from fedanon.registry import Registry

PRIVACY_MODELS: Registry[type] = Registry("privacy model", f"{__name__}.models", group="fedanon.privacy_models")
