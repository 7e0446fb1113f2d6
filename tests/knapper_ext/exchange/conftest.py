"""The fixtures of functions and of packages, for tests of what is imported and exported."""

from tests.functions.conftest import here, lent, sandbox, shop
from tests.packages.conftest import index, ready, root

__all__ = ["here", "index", "lent", "ready", "root", "sandbox", "shop"]
