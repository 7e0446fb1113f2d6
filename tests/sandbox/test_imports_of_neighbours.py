"""How function code finds other modules of its workspace, and which ones it does not find."""

from collections.abc import Iterator, Mapping

import pytest

from sandbox import Code, Evaluation, FunctionCall, Job, ModuleImport, Raised, Returned, Sandbox
from tests.kit.levels import require_root
from tests.sandbox.support import modules

WORLD = modules(
    top="""
    from functions.web import pages
    from functions.web.links import LINK as link
    import functions.web.links as same

    def both() -> list[str]:
        return [pages.title(), link, same.LINK]
    """,
    web__pages="""
    from . import links
    from .links import LINK
    from ..base import BASE

    def title() -> str:
        return LINK + BASE + links.LINK
    """,
    web__links="LINK = 'link'\n",
    base="BASE = 'base'\n",
    lazy="""
    import importlib

    def later() -> str:
        return importlib.import_module("functions.web.pages").title()

    def wrong() -> None:
        from functions import nothing
    """,
    leaning="import functions.broken\n",
    broken="def f(:\n",
    traced="""
    import traceback

    def trace() -> str:
        try:
            raise ValueError("here")
        except ValueError:
            return traceback.format_exc()
    """,
    outside="import agent_core\n",
    sandboxed="import sys\nNAMES = [name for name in sys.path if 'site-packages' in name or not name]\n",
)


async def test_modules_of_the_workspace_import_one_another(sandbox: Sandbox) -> None:
    for module, function, value in (
        ("top", "both", ["linkbaselink", "link", "link"]),
        ("web.pages", "title", "linkbaselink"),
        ("lazy", "later", "linkbaselink"),  # at run time
    ):
        outcome = await sandbox.run(Job(WORLD, module, FunctionCall(function, {})))
        assert isinstance(outcome, Returned), outcome
        assert outcome.value == value
    outcome = await sandbox.run(Job(WORLD, "sandboxed", Evaluation((), "NAMES")))
    assert isinstance(outcome, Returned)
    assert outcome.value == [], "neither workspace nor current folder is on the path"


@pytest.mark.parametrize(
    ("module", "function", "kind", "says"),
    [
        pytest.param(
            "lazy", "wrong", "ImportError", "cannot import name 'nothing'", id="no-such-module"
        ),
        pytest.param("outside", "f", "ModuleNotFoundError", "agent_core", id="the-host-program"),
        pytest.param("leaning", "f", "SyntaxError", "invalid syntax", id="a-broken-neighbour"),
    ],
)
async def test_what_cannot_be_imported_is_said_with_the_place(
    sandbox: Sandbox, module: str, function: str, kind: str, says: str
) -> None:
    outcome = await sandbox.run(Job(WORLD, module, FunctionCall(function, {})))
    assert isinstance(outcome, Raised), outcome
    assert (outcome.failure.type, says in outcome.failure.message) == (kind, True)
    assert outcome.failure.frames[0].path == f"functions/{module}.py"


async def test_tracebacks_inside_show_the_source(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(WORLD, "traced", FunctionCall("trace", {})))
    assert isinstance(outcome, Returned)
    assert (
        'File "functions/traced.py", line 5, in trace\n    raise ValueError("here")'
        in outcome.value
    )


class Untouchable(Mapping[str, Code]):
    """A workspace so large that it must never be iterated."""

    def __getitem__(self, name: str) -> Code:
        return WORLD[name]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("the modules were walked")

    def __len__(self) -> int:
        raise AssertionError("the modules were counted")


async def test_modules_are_looked_up_and_never_walked(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(Untouchable(), "web.pages", FunctionCall("title", {})))
    assert isinstance(outcome, Returned), outcome


async def test_a_package_of_the_list_can_be_imported_and_others_cannot(sandbox: Sandbox) -> None:
    listed = modules(listed="import pydantic, typing_extensions\nVERSION = pydantic.VERSION\n")
    other = modules(other="import click\n")
    assert isinstance(await sandbox.run(Job(listed, "listed", ModuleImport())), Returned)
    assert isinstance(await sandbox.run(Job(other, "other", ModuleImport())), Raised)


async def test_a_package_that_is_named_only_at_run_time_is_found_too(sandbox: Sandbox) -> None:
    require_root(sandbox, "no code that was not loaded ahead becomes executable")
    hidden = modules(hidden="def f() -> str:\n    return __import__('pydan' + 'tic').__name__\n")
    outcome = await sandbox.run(Job(hidden, "hidden", FunctionCall("f", {})))
    assert isinstance(outcome, Returned), outcome


async def test_the_package_around_a_module_is_loaded_first(sandbox: Sandbox) -> None:
    texts = {
        "shop": ("functions/shop/__init__.py", "from .first import ONE\n\nTWO = 2\n"),
        "shop.first": ("functions/shop/first.py", "ONE = 1\n\nfrom .second import sum_of\n"),
        "shop.second": (
            "functions/shop/second.py",
            "from .first import ONE\n\n\ndef sum_of() -> int:\n    from . import TWO\n\n    return ONE + TWO\n",
        ),
    }
    package = {name: Code(name, text, path, name) for name, (path, text) in texts.items()}
    outcome = await sandbox.run(Job(package, "shop.second", FunctionCall("sum_of", {})))
    assert getattr(outcome, "value", outcome) == 3


async def test_a_function_sees_nothing_of_the_rehearsals_before_it(sandbox: Sandbox) -> None:
    world = modules(
        look="""
        import sys

        def look() -> list[str]:
            finders = [type(one).__name__ for one in sys.meta_path if not isinstance(one, type)]
            return finders + sorted(name for name in sys.modules if name.startswith("functions"))
        """
    )
    outcome = await sandbox.run(Job(world, "look", FunctionCall("look", {})))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == ["_Finder", "PackageFinder", "Finder", "functions", "functions.look"]
