"""The same small federation as in the tests of Flower: whether nodes agree does not depend on their number of rows."""

from tests.federated.conftest import small_adult

__all__ = ["small_adult"]
