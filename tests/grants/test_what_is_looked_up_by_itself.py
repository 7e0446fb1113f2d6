"""What Python looks up by itself, or a model may set, brings no unapproved code to a function with a grant."""

from dataclasses import dataclass

import pytest

from agent_core.access.grants import Grants
from tests.functions.support import Room
from tests.grants.support import human

PLAIN = "open('data/evil', 'w').write('evil')"
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
HARMLESS = '''

def tidy(text: str = "") -> str:
    """Tidy a text."""
    return text
'''
EVIL = HARMLESS.replace("return text", RUN + "\n    return 'evil'")


@dataclass(frozen=True)
class Way:
    """A line of the approved function, what stands above it, and what a model adds or says later, without a yes."""

    line: str
    above: str = ""
    later: str = ""
    path: str = "data/1"


WAYS = {
    "a fallback for missing names": Way(
        "import sys; sys.modules[__name__].missing()",
        later=f"def __getattr__(name):\n    {RUN}\n    return str\n",
    ),
    "a name of the builtins": Way(
        "text = str(sorted(text))", later=f"def sorted(text):\n    {RUN}\n    return text\n"
    ),
    "subclasses of a class": Way(
        "[each().run() for each in Plug.__subclasses__()]",
        above="class Plug:\n    pass\n",
        later=f"class Evil(Plug):\n    def run(self):\n        {RUN}\n",
    ),
    "subclasses of an error": Way(
        "[str(each()) for each in Exception.__subclasses__() if each.__module__ == __name__]",
        later=f"class Evil(Exception):\n    def __str__(self):\n        {RUN}\n        return ''\n",
    ),
    "subclasses of every class": Way(
        "[each().run() for each in object.__subclasses__() if each.__name__ == 'Evil']",
        later=f"class Evil:\n    def run(self):\n        {RUN}\n",
    ),
    "implementations by type": Way(
        "show(text)",
        above="import functools\n@functools.singledispatch\ndef show(value): return value\n",
        later=f"@show.register\ndef _(value: str):\n    {RUN}\n",
    ),
    "a hook of the collector": Way(
        "import gc; gc.collect()", later=f"import gc\ngc.callbacks.append(lambda *_: {RUN})\n"
    ),
    "a trace": Way(
        "tidy()", above=HARMLESS, later=f"import sys\nsys.setprofile(lambda *_: {RUN})\n"
    ),
    "an object that is freed": Way(
        "pass", later=f"class Evil:\n    def __del__(self):\n        {RUN}\nEvil()\nKEPT = Evil()\n"
    ),
    "a metaclass": Way(
        "pass",
        later=f"class Meta(type):\n    def __init__(self, *_):\n        {RUN}\nclass C(metaclass=Meta): pass\n",
    ),
    "a descriptor's name": Way(
        "pass",
        later=f"class Slot:\n    def __set_name__(self, *_):\n        {RUN}\nclass C:\n    slot = Slot()\n",
    ),
    "a default": Way("pass", later=f"def later(value={RUN}): pass\n"),
    "examples of docstrings": Way(
        "import doctest, sys; doctest.testmod(sys.modules[__name__])",
        later=f'def shown():\n    """>>> {PLAIN}"""\n',
    ),
    "the name that is called": Way("self.call(path)", path="tidy", later=EVIL),
}


@pytest.mark.parametrize("way", WAYS)
async def test_what_nobody_approved_does_not_run_with_the_grant(here: Room, way: str) -> None:
    tried = WAYS[way]
    text = NOTE.format(above=tried.above, way=tried.line)
    notes, evil = here.root / "functions" / "notes.py", here.root / "data" / "evil"
    await here.save(text, notes)
    await here.shop.grants.grant("note", Grants(read=("data/",), write=("data/",)))
    here.shop.granting.approver = human("no")
    assert (await here.shop.call("note", {})).outcome == "returned"
    await here.save(f"{text}\n\n{tried.later}", notes)
    for _ in range(2):
        report = await here.shop.call("note", {"path": tried.path})
        assert not evil.exists(), report
