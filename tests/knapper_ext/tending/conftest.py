"""The fixtures of functions, for tests of a library that is tended."""

from tests.functions.conftest import here, lent, sandbox, shop

__all__ = ["here", "lent", "sandbox", "shop"]
