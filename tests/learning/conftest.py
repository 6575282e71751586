"""The same small federation as in the tests of Flower."""

from tests.federated.conftest import small_adult

__all__ = ["small_adult"]
