"""Every exception fedanon raises on purpose.

    FedanonError
    ├── SchemaError              a schema, hierarchy or table does not fit its declaration
    ├── DataError                a file cannot be read, is damaged, or is not at hand
    ├── ConfigError              a parameter or option is wrong
    │   └── UnknownComponentError    no component of that name is registered
    ├── InfeasibleError          the request is sound, but cannot be met on this table
    ├── PrivacyViolationError    a release does not keep what it claims
    └── UpdateRejectedError      a client's update failed validation

Messages name columns, counts and parameters, never a cell's value: the text of an exception
may be logged or travel to another machine.
"""

from __future__ import annotations


class FedanonError(Exception):
    """Base of every error raised on purpose; the CLI turns it into exit code 2."""


class SchemaError(FedanonError):
    """A schema, hierarchy or table does not fit its declaration."""


class DataError(FedanonError):
    """A file cannot be read, is damaged, or is not at hand."""


class ConfigError(FedanonError):
    """A parameter or option is wrong."""


class UnknownComponentError(ConfigError):
    """No component of that name is registered."""


class InfeasibleError(FedanonError):
    """The request is sound, but cannot be met on this table."""


class PrivacyViolationError(FedanonError):
    """A release does not keep what it claims; nothing may be written or sent."""


class UpdateRejectedError(FedanonError):
    """A client's update failed validation."""
