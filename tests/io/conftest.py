"""Shared by the tests of fedanon.io."""

from tests.data.conftest import schema as schema
