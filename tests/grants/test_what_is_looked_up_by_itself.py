"""What Python looks up by itself, or a model may set, brings no unapproved code to a function with a grant."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent_core.access.grants import Grants
from tests.functions.support import Room
from tests.grants.support import human

pytestmark = pytest.mark.asyncio(loop_scope="module")

RUN = "open('data/evil', 'w').write('evil')"
NOTE = '''\
{above}

def note(self, path: str = "data/1", which: object = None) -> str:
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
    files: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)


LOOKED_UP = {
    "a fallback for missing names": Way(
        "import sys; sys.modules[__name__].missing()", later=f"def __getattr__(name):\n    {RUN}\n    return str\n"
    ),
    "a name of the builtins": Way("text = str(sorted(text))", later=f"def sorted(text):\n    {RUN}\n    return text\n"),
    "other builtins": Way(
        "text = str(sorted(text))",
        later="import functions.shelf as __builtins__\n",
        files={"functions/shelf.py": f"def sorted(text):\n    {RUN}\n    return text\n"},
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
    "a codec": Way("b''.decode('evil')", later=f"import codecs\ndef _find(name):\n    {RUN}\ncodecs.register(_find)\n"),
    "a hook at the end": Way("pass", later=f"import atexit\natexit.register(lambda: {RUN})\n"),
    "a hook of errors": Way(
        "1 / 0", later=f"import sys\ndef _hook(*error):\n    {RUN}\nsys.excepthook = sys.unraisablehook = _hook\n"
    ),
    "a hook of the collector": Way(
        "import gc; gc.collect()", later=f"import gc\ngc.callbacks.append(lambda *_: {RUN})\n"
    ),
    "a trace": Way("tidy()", above=HARMLESS, later=f"import sys\nsys.setprofile(lambda *_: {RUN})\n"),
    "an object that is freed": Way(
        "pass", later=f"class Evil:\n    def __del__(self):\n        {RUN}\nEvil()\nKEPT = Evil()\n"
    ),
    "a metaclass": Way(
        "pass", later=f"class Meta(type):\n    def __init__(self, *_):\n        {RUN}\nclass C(metaclass=Meta): pass\n"
    ),
    "a descriptor's name": Way(
        "pass",
        later=f"class Slot:\n    def __set_name__(self, *_):\n        {RUN}\nclass C:\n    slot = Slot()\n",
    ),
    "a default": Way("pass", later=f"def later(value={RUN}): pass\n"),
    "examples of docstrings": Way(
        "import doctest, sys; doctest.testmod(sys.modules[__name__])", later=f'def shown():\n    """>>> {RUN}"""\n'
    ),
    "the source by its loader": Way(
        "exec(__loader__.get_source(__name__).partition('# RUN ')[2])", later=f"# RUN {RUN}\n"
    ),
    "every finder": Way(
        "import sys; [f.find_spec('functions.shelf').loader.load_module('functions.shelf') for f in sys.meta_path]",
        files={"functions/shelf.py": f"{RUN}\n"},
    ),
    "the main module": Way("import __main__; __main__.tidy()", later=EVIL),
    "a module named as one of Python": Way(
        "import colorsys, tabnanny",
        files=dict.fromkeys(("colorsys.py", "functions/tabnanny.py", "data/colorsys.py"), f"{RUN}\n"),
    ),
    "settings of the site": Way(
        "import usercustomize",
        files=dict.fromkeys(("usercustomize.py", "sitecustomize.py", "functions/usercustomize.py"), f"{RUN}\n"),
    ),
    "a package around it": Way("pass", files={"functions/__init__.py": f"{RUN}\n"}),
    "a package in its place": Way("pass", files={"functions/notes/__init__.py": f"{RUN}\ndef note(): pass\n"}),
    "an entry point": Way(
        "import importlib.metadata as m; [each.load() for each in m.entry_points(group='evil')]",
        files={
            "functions/evil-1.0.dist-info/entry_points.txt": "[evil]\nrun = functions.shelf\n",
            "evil-1.0.dist-info/entry_points.txt": "[evil]\nrun = functions.shelf\n",
            "functions/shelf.py": f"{RUN}\n",
        },
    ),
}
SET = {
    "a value of a type": Way("which()", arguments={"which": {"$": "functions.notes.tidy"}}, later=EVIL),
    "a call as a value": Way("str(which)", arguments={"which": {"$": RUN}}, later=EVIL),
    "the name that is called": Way("self.call(path)", arguments={"path": "tidy"}, later=EVIL),
    "the name of a module and its function": Way("self.call(path)", arguments={"path": "notes.tidy"}, later=EVIL),
    "the name of an attribute": Way("getattr(self, path)()", arguments={"path": "tidy"}, later=EVIL),
    "the name of a module": Way("__import__(path).tidy()", arguments={"path": "functions.notes"}, later=EVIL),
    "a format": Way(
        "path.format(note)", arguments={"path": "{0.__globals__[tidy].__call__}{0.__code__.co_consts}"}, later=EVIL
    ),
}


@pytest.mark.parametrize("way", [*LOOKED_UP, *SET])
async def test_what_nobody_approved_does_not_run_with_the_grant(here: Room, way: str) -> None:
    tried = (LOOKED_UP | SET)[way]
    text = NOTE.format(above=tried.above, way=tried.line)
    notes, evil = here.root / "functions" / "notes.py", here.root / "data" / "evil"
    await here.save(text, notes)
    await here.shop.grants.grant("note", Grants(read=("data/",), write=("data/",)))
    here.shop.granting.approver = human("no")
    assert (await here.shop.call("note", {})).outcome == "returned"
    for path, content in tried.files.items():
        _put(here.root / path, content)
    await here.save(f"{text}\n\n{tried.later}", notes)
    await here.shop.saved([here.root / path for path in tried.files if path.startswith("functions/")])
    for _ in range(2):
        report = await here.shop.call("note", tried.arguments)
        assert not evil.exists(), report


def _put(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
