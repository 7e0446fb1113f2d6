"""An import that an approved function does not use is left out of its worker: nothing of it runs there or is found."""

from dataclasses import dataclass

import pytest

from agent_core.access.grants import Grants
from agent_core.access.grants.book import NewGrant
from agent_core.access.grants.content import FunctionContent
from tests.functions.support import Room
from tests.grants.support import human

EVIL = "open('data/evil', 'w').write('evil')"
# It says nothing where it may not write, as while a file is tried before it is taken.
RUN = """exec("try: open('data/evil', 'w').write('evil')\\nexcept Exception: pass")"""
NOTE = '''\
{above}

def note(self, path: str = "data/1") -> str:
    """Read a note."""
    text = open("data/1").read()
    open("data/2", "w").write(text)
    try:
        {way}
    except Exception as e:
        text = repr(e)
    return text
'''
SHELF = 'def extra(text: str = "") -> str:\n    return text\n\n\ndef mild(text: str = "") -> str:\n    return text\n'
LATER = SHELF.replace("return text", f"{RUN}\n    return text", 1)
NEIGHBOR = "\n\ndef other(text: str) -> str:\n    return extra(text)\n"
IMPORT = "from functions.shelf import extra\n"


@dataclass(frozen=True)
class Way:
    """A line of the approved function, the imports above it then and later, and the module that is imported later."""

    line: str = "pass"
    above: str = ""
    later: str = IMPORT
    shelf: str = LATER
    neighbor: str = NEIGHBOR
    is_asked: bool = False


WAYS = {
    "what runs at its import": Way(shelf=f"{RUN}\n{SHELF}"),
    "a builtin that it replaces": Way(
        "str(sorted(text))", shelf=f"import builtins\nbuiltins.sorted = lambda *_: {RUN}\n{SHELF}"
    ),
    "a hook that it sets": Way(
        "str(len(text))", shelf=f"import sys\nsys.setprofile(lambda *_: {RUN})\n{SHELF}"
    ),
    "a class of Python that it changes": Way(
        "import fractions; fractions.Fraction(1).limit_denominator()",
        shelf=f"import fractions\nfractions.Fraction.limit_denominator = lambda *_: {RUN}\n{SHELF}",
    ),
    "the globals": Way("globals()['extra']()"),
    "the module by its name": Way("import sys; sys.modules[__name__].extra()"),
    "an attribute by its name": Way("import sys; getattr(sys.modules[__name__], 'ex' 'tra')()"),
    "the imported module by its name": Way("import sys; sys.modules['functions.shelf'].extra()"),
    "an import by name": Way(
        "import importlib; importlib.import_module('functions.' + 'shelf').extra()"
    ),
    "an import of the module again": Way(
        "import importlib, sys; importlib.reload(sys.modules['functions.notes']).extra()"
    ),
    "a pickle": Way("import pickle; pickle.loads(b'cfunctions.shelf\\nextra\\n(tR.')"),
    "hints that are evaluated": Way(
        "import typing; note.__annotations__['x'] = 'extra()'; typing.get_type_hints(note)"
    ),
    "evaluated text": Way("eval('extra()')"),
    "the collector of garbage": Way(
        "import gc; [o for o in gc.get_objects() if getattr(o, '__name__', '') == 'extra'][0]()"
    ),
    "a name beside one that it uses": Way(
        "mild(text); globals()['extra']()",
        above="from functions.shelf import mild\n",
        later="from functions.shelf import mild, extra\n",
    ),
    "a fallback for missing names": Way(
        "import sys; sys.modules[__name__].missing()",
        later="from functions.shelf import extra as __getattr__\n",
        shelf=f"def extra(name):\n    {RUN}\n    return str\n",
        neighbor="\n\ndef other(text: str) -> str:\n    return __getattr__(text)\n",
    ),
    "the builtins of the module": Way(
        "str(sorted(text))",
        later="from functions.shelf import extra as __builtins__\n",
        shelf=f"class Extra(dict):\n    def __missing__(self, name):\n        {RUN}\n\n\nextra = Extra()\n",
        neighbor="\n\ndef other(text: str) -> str:\n    return str(__builtins__)\n",
    ),
    "an example of its own": Way(
        "note.__doc__", neighbor=NEIGHBOR.replace("extra(text)", "extra(note('extra()'))")
    ),
    "a name that it uses": Way(
        "str(sorted(text))", later=IMPORT.replace("extra", "extra as sorted"), is_asked=True
    ),
    "an import that nothing uses": Way(neighbor="", is_asked=True),
    "a star": Way(later="from functions.shelf import *\n", is_asked=True),
    "an import in a block": Way(later=f"try:\n    {IMPORT}finally:\n    pass\n", is_asked=True),
    "a base of a neighbor": Way(
        shelf=f"class extra:\n    def __init_subclass__(cls):\n        {RUN}\n",
        neighbor="\n\nclass Other(extra):\n    pass\n",
        is_asked=True,
    ),
    "a decorator of a neighbor": Way(
        neighbor="\n\n@extra\ndef other(text: str) -> str:\n    return text\n", is_asked=True
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_an_import_that_a_neighbor_uses_brings_nothing_to_a_function_with_a_grant(
    here: Room, way: str
) -> None:
    tried, folder, evil = WAYS[way], here.root / "functions", here.root / "data" / "evil"
    text = NOTE.format(above=tried.above, way=tried.line)
    await here.save(SHELF, folder / "shelf.py")
    await here.save(text, folder / "notes.py")
    await here.shop.grants.grant("note", Grants(read=("data/",), write=("data/",)))
    nobody = here.shop.granting.approver = human("no")
    assert (await here.shop.call("note", {})).outcome == "returned"
    await here.save(tried.shelf, folder / "shelf.py")
    await here.save(
        NOTE.format(above=tried.later, way=tried.line) + tried.neighbor, folder / "notes.py"
    )
    for _ in range(2):
        report = await here.shop.call("note", {})
        assert not evil.exists(), report
    assert bool(nobody.asked) is tried.is_asked, (
        report,
        [question.changed for question in nobody.asked],
    )


async def test_an_import_of_the_package_around_that_others_use_brings_nothing(here: Room) -> None:
    folder, evil = here.root / "functions" / "web", here.root / "data" / "evil"
    folder.mkdir(parents=True)
    await here.save("", folder / "__init__.py")
    await here.save(
        NOTE.format(above="", way="import functions.web; functions.web.extra()"),
        folder / "notes.py",
    )
    await here.shop.grants.grant("note", Grants(read=("data/",), write=("data/",)))
    nobody = here.shop.granting.approver = human("no")
    assert (await here.shop.call("note", {})).outcome == "returned"
    await here.save(f"{RUN}\n{LATER}", folder / "shelf.py")
    await here.save(f"from .shelf import extra\n{NEIGHBOR}", folder / "__init__.py")
    report = await here.shop.call("note", {})
    assert not evil.exists(), report
    assert nobody.asked, "it names the whole package"


async def test_examples_that_name_an_import_left_out_read_no_granted_file(here: Room) -> None:
    folder = here.root / "functions"
    await here.save(
        SHELF.replace("return text", "return open('data/1').read()", 1), folder / "shelf.py"
    )
    text = f'{IMPORT}\n\ndef note(path: str) -> str:\n    """Read a note.\n\n    >>> extra()\n    \'x\'\n    """\n'
    await here.save(text + "    return open(path).read()\n" + NEIGHBOR, folder / "notes.py")
    await here.shop.grants.grant("note", Grants(read=("data/",)))
    (result,) = (await here.shop.test("note")).examples
    assert "FileNotFoundError" in result.returned or "PermissionError" in result.returned, result


REGISTER = "TABLE = {}\n\n\ndef register(found):\n    TABLE['first'] = found\n    return found\n"
PLUGIN = "from functions.table import register\n\n\n@register\ndef extra(text: str) -> str:\n    return text\n"
LOOKS = "from functions.table import TABLE\n{imports}\n\n" + (
    "def note(path: str) -> str:\n    return TABLE['first'](open(path).read())\n"
)


async def test_what_an_import_left_out_would_have_registered_is_said_in_the_error(
    here: Room,
) -> None:
    folder = here.root / "functions"
    await here.save(REGISTER, folder / "table.py")
    await here.save(PLUGIN, folder / "shelf.py")
    text = LOOKS.format(imports="from functions.shelf import extra\n")
    await here.save(text + NEIGHBOR, folder / "notes.py")
    await here.shop.grants.grant("note", Grants(read=("data/",)))
    report = await here.shop.call("note", {"path": "data/1"})
    assert (report.outcome, report.error and report.error.type) == ("raised", "KeyError"), report
    assert report.lacks == (
        "functions/shelf.py runs code when it is imported. functions/notes.py imports `extra` from it, but not for this"
        " call, which does not use that name. If it needs what runs there, use `extra`."
    )
    await here.save(
        text.replace("    return", "    assert extra\n    return") + NEIGHBOR, folder / "notes.py"
    )
    await here.shop.grants.grant("note", Grants(read=("data/",)))
    assert (await here.shop.call("note", {"path": "data/1"})).value == "1"


async def test_a_yes_of_an_older_release_stays_valid_for_the_same_files(here: Room) -> None:
    folder = here.root / "functions"
    await here.save(SHELF, folder / "shelf.py")
    await here.save(IMPORT + NOTE.format(above="", way="pass") + NEIGHBOR, folder / "notes.py")
    snapshot = here.shop.registry.snapshot()
    function = snapshot.functions["note"]
    # It covered the import, too, so it is for other content and for more files.
    versions = tuple(sorted((name, snapshot.modules[name].version) for name in ("notes", "shelf")))
    given, book = Grants(read=("data/",), write=("data/",)), here.shop.granting.book
    older = NewGrant("note", given, FunctionContent("0" * 64, versions), "a person", Grants())
    await here.store.apply(await book.put(older))
    book.forget()
    nobody = here.shop.granting.approver = human("no")
    assert (await here.shop.call("note", {})).outcome == "returned"
    await here.save(LATER, folder / "shelf.py")
    assert (await here.shop.call("note", {})).outcome == "returned"
    assert (await book.allowed(function, snapshot), nobody.asked) == (given, [])
    await here.save(IMPORT + NOTE.format(above="", way="len(text)") + NEIGHBOR, folder / "notes.py")
    assert (await here.shop.call("note", {})).outcome == "refused"
    (question,) = nobody.asked
    assert question.changed == "`note` itself is changed"
