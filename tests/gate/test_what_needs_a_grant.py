"""The stage "capability": uses that require a human's grant, named with that grant."""

import pytest

from .support import codes, function, on_text, warnings


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param("import socket\nreturn socket.socket().fileno() + a + b", "needs-network", id="socket"),
        pytest.param(
            "from urllib.request import urlopen\nreturn len(urlopen('http://a.example/').read()) + a + b",
            "needs-network",
            id="urllib",
        ),
        pytest.param("import websockets\nreturn len(str(websockets)) + a + b", "needs-network", id="websockets"),
        pytest.param("return len(open('data/' + 'x').read()) + a + b", "needs-files", id="open"),
        pytest.param("return len(Path('data/x').read_text()) + a + b", "needs-files", id="path-read"),
        pytest.param("import os\nos.remove('data/x')\nreturn a + b", "needs-files", id="remove"),
        pytest.param("import shutil\nshutil.rmtree('data/x')\nreturn a + b", "needs-files", id="shutil"),
        pytest.param("import subprocess\nreturn subprocess.call([str(a)]) + b", "needs-processes", id="subprocess"),
        pytest.param("import os\nreturn os.system(str(a)) + b", "needs-processes", id="system"),
        pytest.param("import os\nreturn len(os.environ) + a + b", "needs-secrets", id="environment"),
        pytest.param("from os import getenv\nreturn len(getenv(str(a))) + b", "needs-secrets", id="getenv"),
        pytest.param("import numpy\nreturn numpy.add(a, b)", "needs-packages", id="package"),
        pytest.param("return eval(f'{a}+{b}')", "dynamic-code", id="eval"),
        pytest.param("return __import__('os').getpid() + a + b", "dynamic-code", id="import-by-name"),
        pytest.param("import ctypes\nreturn ctypes.sizeof(ctypes.c_int) + a + b", "native-code", id="ctypes"),
        pytest.param("return int(input('more?')) + a + b", "needs-terminal", id="input"),
        pytest.param("return len(self.fetch('http://a.example/').text) + a + b", "needs-network", id="fetch"),
        pytest.param("return len(self.secret('key')) + a + b", "needs-secrets", id="secret"),
    ],
)
def test_a_use_that_needs_a_grant_is_refused_by_its_name(body: str, code: str) -> None:
    assert codes(on_text(function(body))) == {code}


@pytest.mark.parametrize(
    ("body", "host"),
    [
        ("from urllib.request import urlopen\nreturn len(urlopen('http://a.example/x').read())", "a.example"),
        ("from http.client import HTTPSConnection\nreturn len(str(HTTPSConnection('a.example')))", "a.example"),
        ("import http.client as h\nreturn len(str(h.HTTPConnection('a.example', 8080)))", "a.example:8080"),
    ],
)
def test_the_host_that_a_text_names_is_what_is_asked_for(body: str, host: str) -> None:
    assert on_text(function(f"{body} + a + b")).needs.network == (host,)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("(self.scratch / 'x').write_text(str(a))\nreturn b", id="write-below-scratch"),
        pytest.param("return len(open(str(a)).read()) + b", id="a-file-that-a-call-asks-for"),
        pytest.param("return len(Path(str(a)).read_text()) + b", id="a-path-that-a-call-asks-for"),
        pytest.param("return len(self.fetch(str(a)).text) + b", id="a-host-that-a-call-asks-for"),
        pytest.param("from urllib.request import urlopen\nreturn len(urlopen(str(a)).read()) + b", id="by-urllib"),
        pytest.param(
            "path = self.scratch / 'x'\npath.write_text(str(a))\nreturn len(path.read_text()) + b", id="by-name"
        ),
        pytest.param(
            "with open(self.scratch / 'x', 'w') as file:\n    file.write(str(a))\nreturn b", id="open-below-scratch"
        ),
        pytest.param("import io\nreturn len(io.StringIO(str(a)).read()) + b", id="string-io"),
        pytest.param("from urllib.parse import quote\nreturn len(quote(str(a))) + b", id="urllib-parse"),
        pytest.param("import os.path\nreturn len(os.path.join(str(a), str(b)))", id="path-arithmetic"),
        pytest.param("return len(str(a).replace('1', '2')) + b", id="replace-of-a-text"),
        pytest.param(
            "from pydantic import TypeAdapter\nreturn TypeAdapter(int).validate_python(a) + b", id="allowed-package"
        ),
        pytest.param("import ast\nreturn ast.literal_eval(str(a)) + b", id="literal-eval"),
        pytest.param("return self.call('other', a=a) + b", id="another-function"),
    ],
)
def test_what_needs_no_grant_passes(body: str) -> None:
    assert codes(on_text(function(body))) == set()


def test_a_library_that_evaluates_code_is_only_warned_of() -> None:
    draft = on_text(function("return eval(f'{a}+{b}')"), policy="import")
    assert (codes(draft), warnings(draft)) == (set(), {"dynamic-code"})


def test_a_problem_says_the_grant_and_what_to_do_without_it() -> None:
    (problem,) = on_text(function("return len(open('data/x').read()) + a + b")).problems
    assert "the grant `files`" in problem.message
    assert problem.fix is not None
    assert problem.fix.startswith("take the content as a parameter")
