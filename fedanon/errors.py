"""Every exception fedanon raises on purpose.

    FedanonError
    ├── SchemaError                  a schema, hierarchy or table does not fit its declaration
    ├── DataError                    a file cannot be read, is damaged, or is missing
    ├── ConfigError                  a parameter or option is wrong
    │   └── UnknownComponentError    no component of that name is registered
    ├── InfeasibleError              the request is sound, but cannot be met on this table
    ├── PrivacyViolationError        a release does not keep what it claims
    │   └── RefusedError             a node's own policy forbids what a server asks for
    ├── UpdateRejectedError          a node's update failed validation
    └── NotApplicableError           an attack cannot be tried here

Messages name the column, count or parameter, never the value of a cell, since the text of an exception may be logged or
travel to another machine; and they say what to do next.
"""

from __future__ import annotations


class FedanonError(Exception):
    """Base of every error raised on purpose; the command line prints its message and exits with code 2."""


class SchemaError(FedanonError):
    """A schema, hierarchy or table does not fit its declaration: mend the schema or the table."""


class DataError(FedanonError):
    """A file cannot be read, is damaged, or is missing."""


class ConfigError(FedanonError):
    """A parameter or option is wrong; the message names it and what it accepts."""


class UnknownComponentError(ConfigError):
    """No component of that name is registered; the message lists the names that are."""


class InfeasibleError(FedanonError):
    """The request is sound, but cannot be met on this table, such as k=10 on nine people."""


class PrivacyViolationError(FedanonError):
    """A release does not keep what it claims; nothing may be written or sent."""


class RefusedError(PrivacyViolationError):
    """A node's own policy forbids what a server asks for.

    Parameters
    ----------
    kind : one word, all that the server is told.
    reason : for the people of the node.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class UpdateRejectedError(FedanonError):
    """A node's update failed validation and is left out of the round."""


class NotApplicableError(FedanonError):
    """The attack cannot be tried here; the message says what it would need."""
