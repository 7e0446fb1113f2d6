"""`functions export`: a package that works and tests itself without Knapper."""

import gzip
import subprocess
import sys
import threading
import tomllib
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_core.base.errors import UsageError
from knapper_ext.exchange.export import ExportRequest, export_functions
from knapper_ext.exchange.library_files import ImportMover
from tests.functions.support import Room
from tests.kit.desk import VOWELS
from tests.kit.sources import function_text

LETTERS = f'''{VOWELS}

def ratio(n: int, of: int) -> float:
    """Divide.

    Args:
        n: The part.
        of: The whole.

    >>> ratio(1, 3)
    0.3333333333
    >>> ratio(1, 0)
    Traceback (most recent call last):
        ...
    ZeroDivisionError: division by zero
    """
    return n / of
'''
PAGES = "\n\n".join(
    [
        "from functions.letters import count_vowels\nimport functions.letters as all_letters\n",
        function_text(
            "async told(self, texts: list[str]) -> dict[str, int]",
            "Count in each text.\n\nArgs:\n    texts: Where to count.",
            'self.progress(0, len(texts), "counting")\n(self.scratch / "seen").write_text("yes")\n'
            "assert all_letters.count_vowels is count_vowels\n"
            'return {text: self.call("count_vowels", text=text) for text in texts}',
            "told([\"queue\"]) → {'queue': 4}",
            "told([]) → {}",
        ),
    ]
)


async def a_workspace(here: Room) -> None:
    await here.save(LETTERS)
    (here.root / "functions" / "web").mkdir()
    await here.save(PAGES, here.root / "functions" / "web" / "pages.py")
    assert here.shop.names() == ["count_vowels", "ratio", "told"]


def alone(
    folder: Path, code: str, python: str | Path = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run code in an environment without variables and, with another `python`, without installed packages."""
    return subprocess.run(
        [python, "-I", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"],
        cwd=folder, text=True, capture_output=True, timeout=50, check=False, env={},
    )  # fmt: skip


RUN = "import unittest; unittest.main(module=None, argv=['x', 'discover'])"


async def test_an_exported_package_works_without_us_and_its_tests_pass_or_fail(
    here: Room, tmp_path: Path
) -> None:
    await a_workspace(here)
    report = await export_functions(here.shop, ExportRequest(tmp_path / "my-package"))
    assert report.functions == ("count_vowels", "ratio", "told")
    ran = alone(tmp_path / "my-package", RUN)
    assert (ran.returncode, "Ran 1 test" in ran.stderr) == (0, True), ran.stderr
    use = (
        "import my_package as m, asyncio; print(asyncio.run(m.told(m.Context(), "
        "['ae'])), 'agent_core' in sys.modules)"
    )
    assert alone(tmp_path / "my-package", use).stdout == "{'ae': 2} False\n"
    project = tomllib.loads((tmp_path / "my-package" / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["dependencies"]) == ("my-package", [])
    module = tmp_path / "my-package" / "my_package" / "letters.py"
    module.write_text(module.read_text().replace("aeiou", "aei"))
    ran = alone(tmp_path / "my-package", RUN)
    assert ran.returncode != 0
    assert "function='count_vowels'" in ran.stderr


async def test_named_functions_come_with_what_they_need_and_nothing_else(
    here: Room, tmp_path: Path
) -> None:
    await a_workspace(here)
    report = await export_functions(here.shop, ExportRequest(tmp_path / "one", ("ratio",)))
    assert report.functions == ("ratio",)
    assert "count_vowels" not in (tmp_path / "one" / "one" / "letters.py").read_text()
    await export_functions(here.shop, ExportRequest(tmp_path / "two", ("told",)))
    assert alone(tmp_path / "two", RUN).returncode == 0
    for number, (names, package, held, said) in enumerate(
        (
            ((), "", "a.txt", "is not empty"),
            (("nothing",), "", "", "nothing"),
            ((), "json", "", "cannot be called"),
            ((), "no-name", "", "cannot be called"),
            ((), "tests", "", "cannot be called"),
            ((), "class", "", "cannot be called"),
            ((), "_context", "", "cannot be called"),
        )
    ):
        (folder := tmp_path / f"out{number}").mkdir()
        if held:
            (folder / held).write_text("mine")
        with pytest.raises(UsageError, match=said):
            await export_functions(here.shop, ExportRequest(folder, names, package))
        assert [path.name for path in folder.iterdir()] == ([held] if held else [])


async def test_imports_between_modules_are_written_for_the_package() -> None:
    places = {"functions": "", **{f"functions.{name}": name for name in ("a", "b", "w.a", "w.b")}}
    for module, line, becomes in (
        ("a", "from functions.b import c", "from .b import c"),
        ("a", "from functions import b", "from . import b"),
        ("w.a", "from functions.w.b import c", "from .b import c"),
        ("w.a", "import functions.w.b as b", "from . import b"),
        ("b", "import os, functions.w.b as c", "import os; from .w import b as c"),
        ("a", "import functions.w.b", "import p.w.b, p as functions"),
        ("a", "import functionsx.b", "import functionsx.b"),
        ("a", "from .b import c", "from .b import c"),
    ):
        mover = ImportMover(places, f"functions.{module}", module, "p", is_package=False)
        assert mover.moved(line + "\n") == becomes + "\n"


SELVES = "\n\n".join(
    [
        "from functions.letters import count_vowels\n",
        function_text("quiet(self, text: str) -> int", "Count.", "return count_vowels(text)"),
        function_text(
            "asks(self, text: str) -> int", "Ask.", 'return self.call("quiet", text=text)'
        ),
        function_text(
            "noted(self, text: str, times: int = 2) -> str",
            "Note.",
            'self.progress(1, 2)\nfile = self.scratch / "t"\nfile.write_text(text)\nreturn file.read_text() * times',
        ),
        function_text(
            "async later(self, text: str) -> int", "Wait.", 'return self.call("asks", text=text)'
        ),
        function_text(
            "counted(self) -> int",
            "Count calls.",
            'self.state["n"] = self.state.get("n", 0) + 1\nreturn self.state["n"]',
        ),
        function_text("keyed(self) -> str", "Show the key.", 'return self.secret("SHOP_KEY")'),
        function_text(
            "today(self) -> str", "Say the day.", "return self.now().tzname() and self.call_key"
        ),
        function_text(
            "page(self, url: str) -> list[object]",
            "Fetch a page.",
            'got = self.fetch(url, headers={"A": "b"})\nread = got.json()\n'
            'return [got.status, got.ok, got.headers.get("content-encoding", ""), read["n"], read["text"]]',
        ),
        function_text(
            "sent(self, url: str, body: str) -> str",
            "Send.",
            'key = self.secret("SHOP_KEY")\n'
            'return self.fetch(url, method="post", headers={"X-Key": key}, body=body).text()',
        ),
    ]
)
USES = """
import asyncio, inspect, os, sys
import out as m
print(m.quiet("aha"), m.quiet(text="aha"), m.asks("ee"), m.noted("x"), m.noted(text="x", times=1))
print(asyncio.run(m.later("uu")), m.counted(), m.counted(), len(m.today()), m.quiet(m.Context(), "a"))
print([str(inspect.signature(one)) for one in (m.noted, m.counted)], "agent_core" in sys.modules)
try:
    m.keyed()
except PermissionError as error:
    print(error)
os.environ["SHOP_KEY"] = "k1"
print(m.keyed(), m.page(URL), m.page(URL + "missing"), m.sent(URL, "hé"))
try:
    m.page("file:///etc/hostname")
except ValueError as error:
    print("refused")
"""


async def test_what_needs_self_runs_as_the_readme_says_in_a_clean_environment(
    here: Room, tmp_path: Path
) -> None:
    await here.save(LETTERS)
    await here.save(SELVES, here.root / "functions" / "selves.py")
    await export_functions(here.shop, ExportRequest(tmp_path / "out"))
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "Set `SHOP_KEY` before you call" in readme
    assert "- `noted(text, times)` Note." in readme
    venv.create(tmp_path / "clean", with_pip=False)
    with a_shop() as url:
        code = f"import sys; sys.path.insert(0, {str(tmp_path / 'out')!r})\nURL = {url!r}\n{USES}"
        ran = alone(tmp_path, code, tmp_path / "clean" / "bin" / "python")
    assert ran.stdout.splitlines() == [
        "2 2 2 xx x",
        "2 1 2 32 1",
        "['(text: str, times: int = 2) -> str', '() -> int'] False",
        "the secret SHOP_KEY is not set: put it into the environment variable SHOP_KEY",
        "k1 [200, True, 'gzip', 7, 'rés'] [404, False, '', 0, 'no'] POST k1 hé",
        "refused",
    ], ran.stderr
    assert "1/2" in ran.stderr


class Shop(BaseHTTPRequestHandler):
    """A server that packs what it answers, and repeats what it is sent."""

    def do_GET(self) -> None:
        is_there = self.path == "/"
        body = (
            gzip.compress('{"n": 7, "text": "rés"}'.encode())
            if is_there
            else b'{"n": 0, "text": "no"}'
        )
        self._give(200 if is_there else 404, body, {"Content-Encoding": "gzip"} if is_there else {})

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        self._give(200, f"POST {self.headers['X-Key']} ".encode() + sent, {})

    def _give(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def a_shop() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Shop) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
