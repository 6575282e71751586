"""Every exception fedanon raises on purpose.

    FedanonError
    ├── SchemaError                3  a schema, hierarchy or table does not fit its declaration
    ├── DataError                  3  a file cannot be read, is damaged, or is missing
    ├── ConfigError                2  a parameter or option is wrong
    │   └── UnknownComponentError  2  no component of that name is registered
    ├── InfeasibleError            5  the request is sound, but cannot be met on this table
    ├── PrivacyViolationError      4  a release does not keep what it claims
    │   └── RefusedError           4  a node's own policy forbids what a server asks for
    ├── UpdateRejectedError        4  a node's update failed validation
    └── NotApplicableError         5  an attack cannot be tried here

The numbers are the exit codes of the command line; beside them 70 is an internal error and 130 an interrupt.

Messages name the column, count or parameter, never the value of a cell, since the text of an exception may be logged or
travel to another machine; and they say what to do next.
"""

from __future__ import annotations

from typing import ClassVar


class FedanonError(Exception):
    """Base of every error raised on purpose; the command line prints its message and exits with its code."""

    exit_code: ClassVar[int] = 2


class SchemaError(FedanonError):
    """A schema, hierarchy or table does not fit its declaration: mend the schema or the table."""

    exit_code = 3


class DataError(FedanonError):
    """A file cannot be read, is damaged, or is missing."""

    exit_code = 3


class ConfigError(FedanonError):
    """A parameter or option is wrong; the message names it and what it accepts."""


class UnknownComponentError(ConfigError):
    """No component of that name is registered; the message lists the names that are."""


class InfeasibleError(FedanonError):
    """The request is sound, but cannot be met on this table, such as k=10 on nine people."""

    exit_code = 5


class PrivacyViolationError(FedanonError):
    """A release does not keep what it claims; nothing may be written or sent."""

    exit_code = 4


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

    exit_code = 4


class NotApplicableError(FedanonError):
    """The attack cannot be tried here; the message says what it would need."""

    exit_code = 5
