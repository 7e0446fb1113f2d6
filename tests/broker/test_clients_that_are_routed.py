"""HTTP clients of the standard library and of packages: the host fetches what they request."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pip

from agent_core.access.broker import Broker
from sandbox import Raised, Returned, Sandbox
from tests.broker.reach import Names, Reach, value
from tests.broker.servers import Certificate, Request, redirect, reply, serving
from tests.kit.levels import require_root

SITE = str(Path(pip.__file__).parents[1])
PIP = (("pip", SITE),)
HTTPX_NEEDS = (
    "httpx2",
    "httpcore2",
    "h11",
    "idna",
    "truststore",
    "anyio",
    "sniffio",
    "typing_extensions",
)
HTTPX = tuple((name, SITE) for name in HTTPX_NEEDS)
# A package looks up its own version on import, and a function's packages have no metadata.
UNVERSIONED = "import importlib.metadata\nimportlib.metadata.version = lambda name: '0'\n"


def echo(request: Request) -> bytes:
    if request.path.startswith("/from"):
        return redirect("/to")
    told = {
        "line": request.line,
        "host": request.headers["host"],
        "body": request.body.decode("latin-1"),
    }
    return reply(json.dumps(told).encode(), Content_Type="application/json")


Packages: TypeAlias = Sequence[tuple[str, str]]
REQUESTS = "from pip._vendor import requests\n"
URLLIB = "import urllib.request as u\n"
CLIENTS: list[tuple[str, Packages, str]] = [
    (f"{URLLIB}return u.urlopen(URL + 'from').read()", (), "GET /to"),
    (
        f"{URLLIB}with u.urlopen(u.Request(URL, b'a=b', {{'X': 'y'}}), timeout=5) as r: return r.read()",
        (),
        "POST /",
    ),
    (f"{URLLIB}return u.build_opener(u.HTTPCookieProcessor()).open(URL).read()", (), "GET /"),
    (f"{URLLIB}return open(u.urlretrieve(URL + 'file')[0], 'rb').read()", (), "GET /file"),
    (
        "import http.client as h\nc = h.HTTPConnection('localhost', PORT)\n"
        "c.request('PUT', '/a', body=iter([b'x'] * 3), encode_chunked=True)\nr = c.getresponse()\n"
        "first = r.read()\nc.request('DELETE', '/b')\nreturn c.getresponse().read()",
        (),
        "DELETE /b",
    ),
    (f"{REQUESTS}return requests.get(URL + 'from').content", PIP, "GET /to"),
    (
        f"{REQUESTS}with requests.Session() as s:\n"
        "  s.post(URL, json={'a': 1}, timeout=5)\n  return b''.join(s.get(URL, stream=True).iter_content(3))",
        PIP,
        "GET /",
    ),
    (
        "from pip._vendor import urllib3\nreturn urllib3.PoolManager().request('PATCH', URL, body=b'x').data",
        PIP,
        "PATCH /",
    ),
    (
        UNVERSIONED
        + "import httpx2\nreturn httpx2.put(URL, content=b'x' * 9, verify=False).content",
        HTTPX,
        "PUT /",
    ),
]


async def test_a_client_meets_the_host_in_the_place_of_the_network(reach: Reach) -> None:
    async with serving(echo) as server:
        for body, packages, line in CLIENTS:
            text = f"PORT = {server.port}\nURL = 'http://localhost:{server.port}/'\n{body}"
            told = json.loads(
                value(await reach(text, f"localhost:{server.port}", packages=packages))
            )
            assert (told["line"], told["host"]) == (
                f"{line} HTTP/1.1",
                f"localhost:{server.port}",
            ), body


SECURE: list[tuple[str, Packages]] = [
    (f"{URLLIB}return u.urlopen(URL).read()", ()),
    (f"{REQUESTS}return requests.get(URL, verify=False).content", PIP),
    (UNVERSIONED + "import httpx2\nreturn httpx2.get(URL, verify=False).content", HTTPX),
]


async def test_tls_of_a_client_happens_in_the_host(reach: Reach, trusted: Certificate) -> None:
    async with serving(echo, tls=trusted.server()) as server:
        hosts = (f"api.example.org:{server.port}", f"127.0.0.1:{server.port}")
        for body, packages in SECURE:
            broker = Broker(resolve=Names(["127.0.0.1"]), tls=trusted.client)
            text = f"URL = 'https://api.example.org:{server.port}/'\n{body}"
            outcome = await reach(text, *hosts, broker=broker, packages=packages)
            assert json.loads(value(outcome))["host"] == f"api.example.org:{server.port}", body
            assert isinstance(outcome, Returned)
            assert outcome.output == "", body  # urllib3 would warn of an unverified connection


ASYNC = "clients on asyncio have no network here"
REFUSED: list[tuple[str, Packages, str]] = [
    (
        "import urllib.request, urllib.error\ntry: urllib.request.urlopen('http://127.0.0.1/')\n"
        "except urllib.error.URLError as error: return type(error.reason).__name__ + str(error.reason)",
        (),
        "PermissionError`weather` may not reach 127.0.0.1",
    ),
    (
        "import urllib.request, urllib.error\ntry: urllib.request.urlopen('http://gone.invalid/')\n"
        "except urllib.error.URLError as error: return type(error.reason).__name__",
        (),
        "gaierror",
    ),
    (
        f"{REQUESTS}try: requests.get('http://127.0.0.1/')\n"
        "except requests.ConnectionError as error: return str(error)",
        PIP,
        "may not reach 127.0.0.1",
    ),
    (
        f"import os\n{URLLIB}os.environ['http_proxy'] = 'http://gone.invalid:80'\n"
        "try: u.urlopen('http://127.0.0.1/')\nexcept OSError as error: return str(error)",
        (),
        "there are no proxies here",
    ),
    (
        "import http.client\nc = http.client.HTTPConnection('gone.invalid', 80)\nc.set_tunnel('127.0.0.1', 22)\n"
        "try: c.request('GET', '/')\nexcept PermissionError as error: return str(error)",
        (),
        "there are no proxies here",
    ),
    (
        "import asyncio\ntry: asyncio.run(asyncio.open_connection('127.0.0.1', 80))\n"
        "except PermissionError as error: return str(error)",
        (),
        ASYNC,
    ),
    (
        f"{UNVERSIONED}import asyncio, httpx2\nasync def go():\n"
        "  async with httpx2.AsyncClient(verify=False) as c: await c.get('http://gone.invalid')\n"
        "try: asyncio.run(go())\nexcept Exception as error: return str(error)",
        HTTPX,
        ASYNC,
    ),
]


async def test_a_client_is_told_why_it_is_refused(reach: Reach) -> None:
    for body, packages, words in REFUSED:
        assert words in value(await reach(body, "gone.invalid", packages=packages)), body


async def test_a_function_that_fetches_nothing_imports_nothing_for_it(
    sandbox: Sandbox, reach: Reach
) -> None:
    require_root(sandbox, "all extension modules are preloaded, `_ssl` among them")
    body = "import sys\nreturn sorted({'http.client', 'ssl', 'email', 'urllib.request'} & set(sys.modules))"
    assert value(await reach(body)) == []


async def test_a_socket_of_its_own_still_leads_nowhere(reach: Reach) -> None:
    outcome = await reach(
        "import socket\nsocket.create_connection(('127.0.0.1', 80), 1)", "127.0.0.1"
    )
    assert isinstance(outcome, Raised)
    assert outcome.failure.type == "PermissionError"
