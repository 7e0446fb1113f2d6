"""Attacks on the server's surface: each is rejected with a clear error and leaves a line in the log."""

import asyncio
import gzip
import json
import socket
from collections.abc import Iterable
from itertools import product
from urllib.parse import urlsplit

import httpx2
import pytest

from agent_core.api.identity import SCOPES, Sessions
from agent_core.base.errors import UsageError
from agent_core.operations.operation import Scope
from knapper_ext.server import app, guard
from knapper_ext.server.app import OPERATIONS
from knapper_ext.server.guard import LINKS, MOST_BODY
from tests.kit import Say

from .conftest import Serve, Served, end_of, ends, port_of

AGENTS = "/api/v1/agents"
MESSAGES = f"{AGENTS}/main/messages"


def code(answer: httpx2.Response) -> str:
    """Return the code of an error, which always has the same shape."""
    error = answer.json()["error"]
    assert error.keys() == {"code", "message", "fix", "problems"}
    return str(error["code"])


async def test_only_who_has_a_valid_token_comes_in(served: Serve) -> None:
    server = await served([])
    token = await server.token("me", "read")
    wrong = [
        "x",
        "tw",
        "tw_",
        "tw__",
        "tw_00000000_",
        "tw_00000000_x",
        "x" * 5_000,
        "tw_' or 1=1 --_x",
        "tw_é_ü",
    ]
    wrong += [token[:-1] + ("a" if token[-1] != "a" else "b"), f"xx{token[2:]}"]
    async with httpx2.AsyncClient(base_url=server.url) as stranger:
        for path in (
            AGENTS,
            "/api/v1/status",
            "/openapi.json",
            "/api/v1/functions",
            "/nowhere",
            "/v1/models",
        ):
            answer = await stranger.get(path)
            assert (answer.status_code, code(answer)) == (401, "no-token")
        for given in wrong:
            answer = await stranger.get(
                AGENTS, headers=[(b"Authorization", f"Bearer {given}".encode())]
            )
            assert (given, answer.status_code, code(answer)) == (given, 401, "wrong-token")
        right = {"Authorization": f"Bearer {token}"}
        assert (await stranger.get(AGENTS, headers=right)).status_code == 200
        await server.workspace._store.revoke_token("me")
        assert code(await stranger.get(AGENTS, headers=right)) == "wrong-token"
    assert code(await server.client.get(f"{AGENTS}?Token=tw_1_2")) == "token-in-address"
    answer = await server.client.get(AGENTS, headers={"Host": "evil.example"})
    assert (answer.status_code, code(answer)) == (421, "wrong-host")
    for name in ("page", "login"):  # it would have the streams and conversations of those
        with pytest.raises(UsageError, match="cannot be the name of a token"):
            await server.token(name, "read")


async def test_the_log_and_the_state_have_no_secret_and_no_line_of_a_client(served: Serve) -> None:
    server = await served([])
    await server.client.get(f"{AGENTS}/a%0d%0a%7b%22who%22%3a%22root%22%7d")
    state = server.workspace.root / ".knapper"
    log, secret = state / "access.log", server.key.split("_", 2)[2]
    assert log.stat().st_mode & 0o077 == 0
    assert all(json.loads(line)["who"].startswith("all-") for line in log.read_text().splitlines())
    assert not any(
        secret.encode() in path.read_bytes() for path in state.iterdir() if path.is_file()
    )


async def test_an_open_stream_ends_with_its_token(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_LOOK_S", 0.05)
    server = await served([Say("Hello.")])
    client = await server.as_("brief", "read")
    async with asyncio.timeout(30), client.stream("GET", f"{AGENTS}/main/events") as answer:
        await server.client.post(MESSAGES, json={"text": "hello"})
        lines = answer.aiter_lines()
        async for line in lines:
            if "turn_ended" in line:
                await server.workspace._store.revoke_token("brief")
                break
        assert [line async for line in lines if line.startswith("data")] == []


async def test_tokens_that_cannot_be_read_are_told_in_the_one_shape(served: Serve) -> None:
    server = await served([])
    await server.client.get(AGENTS)  # afterwards no other reader is active that could notice first
    (server.workspace.root / ".knapper" / "state.db").unlink()
    answer = await server.client.get(AGENTS)
    assert (answer.status_code, code(answer)) == (503, "storage")


NARROW: list[tuple[Scope, str, str]] = [  # a scope, and a request that it does not allow
    ("read", "POST", MESSAGES),
    ("chat", "PATCH", f"{AGENTS}/main/memory/human"),
    ("read", "PUT", "/api/v1/functions/f"),
    ("edit", "POST", "/api/v1/approvals/q"),
    ("approve", "DELETE", f"{AGENTS}/main"),
    ("admin", "POST", "/api/v1/approvals/q"),
    ("admin", "POST", MESSAGES),
]


async def test_no_operation_is_done_without_its_scope_and_no_scope_implies_another(
    served: Serve,
) -> None:
    server = await served([])
    asked: list[tuple[Iterable[Scope], str, str]] = [
        ((scope,), method, path) for scope, method, path in NARROW
    ]
    for row in OPERATIONS:
        others = [scope for scope in SCOPES if scope not in row.scopes]
        asked.append((others, row.method, row.path.format(**dict.fromkeys(row.names, "main"))))
    clients = dict[tuple[Scope, ...], httpx2.AsyncClient]()
    for scopes, method, path in asked:
        if (key := tuple(scopes)) not in clients:
            clients[key] = await server.as_(f"narrow-{len(clients)}", *key)
        answer = await clients[key].request(method, path, json={})
        assert (method, path, answer.status_code, code(answer)) == (
            method,
            path,
            403,
            "not-allowed",
        )
    assert (await server.client.get(f"{AGENTS}/main")).status_code == 200
    await server.client.post(AGENTS, json={"name": "secret"})
    client = await server.as_("narrow", "chat", "read", agents=("main",))
    hidden, missing = [await client.get(f"{AGENTS}/{name}") for name in ("secret", "nothing")]
    assert hidden.status_code == missing.status_code == 404
    assert hidden.text.replace("secret", "nothing") == missing.text
    assert [row["name"] for row in (await client.get(AGENTS)).json()["agents"]] == ["main"]
    assert (
        await client.post(f"{AGENTS}/secret/messages", json={"text": "hello"})
    ).status_code == 404


ORIGINS = (
    *(
        "null",
        "",
        "https://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://localhost.evil.example",
    ),
    *("http://{0}@evil.example", "http://{0}.evil.example", "{0}", "http://localhost:{1}"),
)


async def test_pages_of_other_sites_are_refused_and_a_page_needs_its_own_origin(
    served: Serve,
) -> None:
    server = await served([Say("hello")])
    browser, place = await server.logged_in(), urlsplit(server.url)
    for given in ORIGINS:
        origin = {"Origin": given.format(place.netloc, place.port)}
        for client in (browser, server.client):
            for path in (MESSAGES, LINKS, "/v1/chat/completions", "/mcp", "/login"):
                headers = {**origin, "Content-Type": "text/plain"}
                answer = await client.post(path, content=b'{"text": "forged"}', headers=headers)
                assert (given, path, answer.status_code, code(answer)) == (
                    given,
                    path,
                    403,
                    "wrong-origin",
                )
    assert code(await browser.post(MESSAGES, json={"text": "forged"})) == "no-token"
    own = await browser.post(MESSAGES, json={"text": "mine"}, headers={"Origin": server.url})
    assert own.status_code == 202
    frames = await server.frames(ends(1))
    assert "forged" not in server.model.requests[-1].text
    assert end_of(frames)["reply"] == "hello"


MALFORMED = (
    *(
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"text": 1e999}',
        b"\xff\xfe",
        b'{"text": ""}',
        b'{"text": "a", "text_": 1}',
    ),
    b'{"text": ' + b"[" * 90_000,
)


async def test_a_body_that_is_too_large_compressed_or_malformed_is_refused(
    unchanged: Served,
) -> None:
    async def endless():  # type: ignore[no-untyped-def]  # an async generator of bytes
        for _ in range(200):
            yield b" " * 65_536

    for content in (b"{" + b" " * MOST_BODY, endless()):  # type: ignore[no-untyped-call]
        answer = await unchanged.client.post(MESSAGES, content=content)
        assert (answer.status_code, code(answer)) == (413, "too-large")
    bomb = gzip.compress(b" " * (32 << 20))
    answer = await unchanged.client.post(
        MESSAGES, content=bomb, headers={"Content-Encoding": "gzip"}
    )
    assert (answer.status_code, code(answer)) == (415, "compressed")
    for body in MALFORMED:
        answer = await unchanged.client.post(MESSAGES, content=body)
        assert (answer.status_code, code(answer)) == (422, "invalid"), body[:50]
        assert all(
            problem["where"].startswith("body") for problem in answer.json()["error"]["problems"]
        )


async def test_no_path_leads_out_and_no_answer_may_be_kept_or_framed(unchanged: Served) -> None:
    host, port = urlsplit(unchanged.url).netloc.split(":")
    token = unchanged.client.headers["Authorization"]
    for path in ("/../secret", "/%2e%2e/knapper.toml", "/page/../../knapper.toml", "//etc/passwd"):
        head = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: {token}\r\nConnection: close\r\n\r\n"
        answer = await asyncio.to_thread(_raw, host, int(port), head.encode())
        assert b" 404 " in answer.split(b"\r\n")[0], path
    answer = await asyncio.to_thread(
        _raw, host, int(port), b"GET / HTTP/1.1\r\nX: " + b"a" * 33_000
    )
    assert b" 400 " in answer.split(b"\r\n")[0], "a head without end is cut off"
    headers = (await unchanged.client.get(AGENTS)).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert not {"access-control-allow-origin", "server"} & headers.keys()


async def test_what_a_function_says_cannot_begin_an_event_of_its_own(served: Serve) -> None:
    forged = 'x\n\nid: 7\ndata: {"type": "turn_ended", "reply": "forged"}\r\rdata: no\u2028\u2029'
    server = await served([Say(forged)])
    frames = await server.said("hello")
    assert end_of(frames)["reply"] == forged
    assert sum(data is not None and data["type"] == "turn_ended" for _, data in frames) == 1
    assert 7 not in [number for number, _ in frames]


async def test_a_login_link_is_good_once_and_looking_at_it_does_not_use_it_up(
    served: Serve,
) -> None:
    server = await served([])
    link = {"code": server.login.partition("code=")[2]}
    async with httpx2.AsyncClient(base_url=server.url) as browser:
        for _ in range(2):
            looked = await browser.get(server.login)
            assert (looked.status_code, "set-cookie" in looked.headers) == (200, False)
            assert looked.headers["content-type"].startswith("text/html")
        first = await browser.post("/login", json=link)
        assert first.status_code == 200
        cookie = first.headers["set-cookie"].lower()
        assert all(part in cookie for part in ("httponly", "samesite=strict", "path=/"))
        assert first.json()["key"] not in cookie
        read = await browser.get(AGENTS, headers={"Knapper-Key": first.json()["key"]})
        assert read.status_code == 200
    async with httpx2.AsyncClient(base_url=server.url) as other:
        again = await other.post("/login", json=link)
        assert (again.status_code, code(again)) == (403, "used-link")
        assert "knapper login" in again.json()["error"]["fix"]
        assert (await other.get(AGENTS)).status_code == 401


async def test_what_is_no_login_link_lets_nobody_in(unchanged: Served) -> None:
    async with httpx2.AsyncClient(base_url=unchanged.url) as browser:
        for body in (b"", b"[]", b"{", b'{"code": 1}', b'{"code": ""}', b'{"code": "x"}', b"\xff"):
            answer = await browser.post("/login", content=body)
            assert (body, answer.status_code, code(answer)) == (body, 403, "used-link")


async def test_a_login_link_and_a_login_end_with_their_time(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = 0.0
    monkeypatch.setattr(app, "Sessions", lambda now, port: Sessions(lambda: now() + later, port))
    server = await served([])
    browser = await server.logged_in()
    links = [(await server.client.post(LINKS)).json()["login"] for _ in range(2)]
    later = 599
    assert (
        await browser.post("/login", json={"code": links[0].partition("code=")[2]})
    ).status_code == 200
    later = 601
    late = await browser.post("/login", json={"code": links[1].partition("code=")[2]})
    assert code(late) == "used-link"
    later = 12 * 3600 + 1
    assert (await browser.get(AGENTS)).status_code == 401


async def test_neither_a_cookie_nor_a_key_alone_is_worth_anything(served: Serve) -> None:
    """A server at another port of the host gets the cookie with each request, and may send anything."""
    server = await served([])
    browser = await server.logged_in()
    (cookie,) = browser.cookies.jar
    assert cookie.name == f"knapper_session_{port_of(server.url)}"
    stolen = f"{cookie.name}={cookie.value}"
    forged = {
        "Cookie": stolen,
        "Origin": server.url,
        "Sec-Fetch-Site": "same-origin",
        "Referer": f"{server.url}/",
    }
    wrong = ("", "x", browser.headers["Knapper-Key"][:-1], stolen.partition("=")[2])
    async with httpx2.AsyncClient(base_url=server.url, headers=forged) as thief:
        for key in wrong:
            sent = {"Knapper-Key": key} if key else {}
            for method, path in (
                ("GET", AGENTS),
                ("GET", "/openapi.json"),
                ("POST", MESSAGES),
                ("POST", LINKS),
            ):
                body = {"text": "forged"} if path == MESSAGES else None
                answer = await thief.request(method, path, json=body, headers=sent)
                assert (path, key, answer.status_code, code(answer)) == (path, key, 401, "no-token")
            assert (await thief.get(f"{AGENTS}/main/events", headers=sent)).status_code == 401
        for path in ("/", "/login", "/page/app.js", "/login?code="):
            page = await thief.get(path)
            assert browser.headers["Knapper-Key"] not in page.text
        assert code(await thief.post("/login", json={"code": ""})) == "used-link"
    server.login = (await server.client.post(LINKS)).json()["login"]
    second = await server.logged_in()
    first_key = {"Knapper-Key": browser.headers["Knapper-Key"]}
    async with httpx2.AsyncClient(base_url=server.url, headers=first_key) as other:
        assert (await other.get(AGENTS)).status_code == 401
    assert (await second.get(AGENTS, headers=first_key)).status_code == 401
    assert [(await one.get(AGENTS)).status_code for one in (browser, second)] == [200, 200]
    assert (
        await browser.get(AGENTS, headers={"Cookie": f"{cookie.name}=fixed"})
    ).status_code == 401
    browser.cookies.clear()
    for others in (
        'a={"b": [1]}; ',
        "a b; =; ;",
        f"{cookie.name}=theirs; ",
        f'x="\\"; {cookie.name}="; ',
    ):
        for row in (
            f"{others}{stolen}",
            f"{stolen}; {others}",
        ):  # cookies of other servers log nobody out
            assert (
                await browser.get(AGENTS, headers={"Cookie": row.strip("; ")})
            ).status_code == 200, row


async def test_a_key_counts_in_its_header_only(served: Serve) -> None:
    """A key in a place that a link, a form or an image's address can set is not accepted."""
    server = await served([])
    browser = await server.logged_in()
    key = browser.headers.pop("Knapper-Key")
    (cookie,) = browser.cookies.jar
    form = {"Origin": server.url, "Content-Type": "application/x-www-form-urlencoded"}
    for path, headers in (
        (f"{AGENTS}?Knapper-Key={key}&key={key}&access_token={key}", {}),
        (f"{AGENTS};Knapper-Key={key}", {}),
        (AGENTS, {"Cookie": f"{cookie.name}={cookie.value}; Knapper-Key={key}"}),
        (AGENTS, {"Authorization": f"Bearer {key}"}),
        (AGENTS, {"Authorization": f"Basic {key}"}),
        (AGENTS, {"Knapper-Key": f"{key}, {key}"}),
        (AGENTS, {"Knapper_Key": key, "X-Knapper-Key": key}),
    ):
        answer = await browser.get(path, headers=headers)
        assert answer.status_code in (400, 401), (path, headers)
    answer = await browser.post(AGENTS, headers=form, content=f"Knapper-Key={key}".encode())
    assert answer.status_code in (400, 401)
    assert (await browser.get(AGENTS, headers={"Knapper-Key": key})).status_code == 200


async def test_a_key_counts_in_its_time_only_and_not_at_another_start_of_the_server(
    served: Serve,
) -> None:
    server = await served([])
    browser = await server.logged_in()
    other = await served([])
    (cookie,) = browser.cookies.jar
    for name in (cookie.name, f"knapper_session_{port_of(other.url)}"):
        stale = {"Cookie": f"{name}={cookie.value}", "Knapper-Key": browser.headers["Knapper-Key"]}
        async with httpx2.AsyncClient(base_url=other.url, headers=stale) as elsewhere:
            assert code(await elsewhere.get(AGENTS)) == "no-token"


EMBEDDED = [  # a request, and how a page makes it
    (("GET", AGENTS), "no-cors", "script"),
    (("GET", f"{AGENTS}/main/events"), "cors", "empty"),
    (("GET", f"{AGENTS}?key=x"), "navigate", "document"),
    (("GET", "/page/app.js"), "same-origin", "serviceworker"),
    (("GET", "/"), "navigate", "iframe"),
    (("GET", "/"), "websocket", "empty"),
    (("GET", "/"), "no-cors", "document"),
    (("GET", "/login"), "no-cors", "image"),
    (("POST", "/login"), "navigate", "document"),
    (("POST", MESSAGES), "navigate", "document"),
    (("POST", "/v1/chat/completions"), "no-cors", "empty"),
    (("POST", "/mcp"), "cors", "empty"),
    (("OPTIONS", AGENTS), "cors", "empty"),
    (("HEAD", AGENTS), "no-cors", "empty"),
    (("GET", "/metrics"), "no-cors", "audio"),
]
SITES = ("same-site", "cross-site", "Same-Site", "same-origin, cross-site", "unheard-of")


async def test_a_page_of_another_port_reads_and_embeds_nothing_and_a_link_leads_to_the_page(
    unchanged: Served,
) -> None:
    for (asked, mode, dest), site in product(EMBEDDED, SITES):
        sent = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
        answer = await unchanged.client.request(*asked, headers=sent)
        assert answer.status_code == 403, (asked, sent)
        assert asked[0] == "HEAD" or code(answer) == "wrong-origin"
    visit = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    async with httpx2.AsyncClient(base_url=unchanged.url, headers=visit) as browser:
        for path in ("/", "/login?code=x"):
            answer = await browser.get(path)
            assert answer.status_code == 200
            assert answer.headers["cross-origin-opener-policy"] == "same-origin"
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"


async def test_only_who_can_do_everything_and_knapper_login_make_login_links(served: Serve) -> None:
    server = await served([])
    own = (await server.client.post(LINKS)).json()["login"]
    assert own.startswith(f"{server.url}/login?code=")
    for scopes, agents in ((("admin",), ()), (SCOPES[:-1], ()), (SCOPES, ("main",))):
        client = await server.as_(f"narrow-{len(server.clients)}", *scopes, agents=agents)
        answer = await client.post(LINKS)
        assert (answer.status_code, code(answer)) == (403, "not-allowed")
    async with httpx2.AsyncClient(base_url=server.url) as stranger:
        assert code(await stranger.post(LINKS)) == "no-token"
    told = server.workspace.root / ".knapper" / "serving.json"
    assert told.stat().st_mode & 0o077 == 0
    token = json.loads(told.read_text())["token"]
    async with httpx2.AsyncClient(
        base_url=server.url, headers={"Authorization": f"Bearer {token}"}
    ) as client:
        assert (await client.post(LINKS)).status_code == 200
        for path in (
            AGENTS,
            "/openapi.json",
            "/v1/models",
            "/metrics",
            f"{AGENTS}/main/events",
            "/mcp",
        ):
            answer = await client.get(path)
            assert (path, answer.status_code, code(answer)) == (path, 403, "not-allowed")
    assert token not in (server.workspace.root / ".knapper" / "access.log").read_text()


def _raw(host: str, port: int, data: bytes) -> bytes:
    with socket.create_connection((host, port), timeout=20) as connection:
        connection.sendall(data)
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
        return b"".join(parts)
