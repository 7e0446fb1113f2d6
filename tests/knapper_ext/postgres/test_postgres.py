"""What only PostgreSQL can do to a store: reject it, restart under it, miss an extension; it ranks as SQLite does."""

import asyncio
import hashlib
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from agent_core.base.clock import Clock
from agent_core.base.errors import AgentBusy, LostLease, StorageError
from agent_core.storage import (
    FUNCTIONS,
    WORK,
    Entry,
    JoinOwnSet,
    Post,
    RecordCall,
    ResumeAgent,
    SaveText,
    Store,
    content_hash,
    copy_store,
    open_store,
)
from tests.kit.postgres import Server, name_of
from tests.storage.memory_support import insert
from tests.storage.support import ManualClock, begin, saving, texts, user

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install '.[postgres]'")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(
            lambda url: url.replace("/base", "/nowhere_base"),
            r"is not there \(.*nowhere",
            id="no database",
        ),
        pytest.param(
            lambda url: url.replace("tw@", "nobody:hunter2@"),
            r"role .nobody. does not exist",
            id="no such user",
        ),
        pytest.param(lambda url: f"{url}x", r"no server listens", id="no server"),
        pytest.param(lambda url: f"{url}&sslmode=maybe", r"cannot be read", id="a wrong option"),
    ],
)
def test_an_address_to_nowhere_is_refused_with_a_reason(
    database: str, change: Callable[[str], str], told: str
) -> None:
    with pytest.raises(StorageError, match=told) as refusal:
        open_store(change(database), clock=Clock())
    assert refusal.value.fix
    assert "hunter2" not in f"{refusal.value}{refusal.value.fix}"


@pytest.fixture
def with_tls() -> Iterator[int]:
    """Yield the port of a TLS server that goes no further: the client must read its certificates then."""

    class Accepting(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(8)
            self.request.sendall(b"S")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Accepting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize(
    "what", ["sslmode=verify-ca&sslrootcert=/nowhere/ca.pem", "sslmode=require&sslcert=/etc/hosts"]
)
def test_a_missing_certificate_is_not_taken_for_a_missing_database(
    with_tls: int, what: str
) -> None:
    with pytest.raises(StorageError, match="needs a certificate that cannot be read") as refusal:
        open_store(f"postgresql://tw@127.0.0.1:{with_tls}/base?{what}", clock=Clock())
    assert "sslrootcert" in refusal.value.fix


def test_tables_of_a_newer_program_are_left_alone(database: str, postgres: Server) -> None:
    postgres.execute("insert into knapper.migration (number) values (9999)", name_of(database))
    with pytest.raises(
        StorageError, match=r"has schema 9999, and this program knows schemas up to \d+\."
    ):
        open_store(database, clock=Clock())


def test_tables_older_than_the_first_migration_are_left_alone_and_say_who_upgrades_them(
    database: str, postgres: Server
) -> None:
    postgres.execute("update knapper.migration set number = number - 6", name_of(database))
    older = (
        r"has schema 12, and this program knows schemas from 13 on\. Open it once with an earlier"
    )
    with pytest.raises(StorageError, match=older):
        open_store(database, clock=Clock())
    numbers = postgres.execute("select number from knapper.migration order by 1", name_of(database))
    assert numbers == [(7,), (8,), (9,), (10,), (11,), (12,)]


async def test_tables_of_the_first_migration_get_what_they_lack(
    database: str, postgres: Server, clock: ManualClock
) -> None:
    name = name_of(database)
    folder = Path(__file__).parents[3] / "knapper_ext/postgres/migrations"
    first = min(folder.glob("*.sql")).read_text("utf-8")
    postgres.execute("drop schema knapper cascade; create schema knapper", name)
    tables = "create table migration (number bigint primary key, at timestamptz default now())"
    old = (
        "insert into event (id, agent, kind, payload, due, timed, at)"
        " values ('e', 'main', 'note', '{}', 0, false, 0)"
    )
    turn = (
        "insert into turn (id, agent, event, state, attempt, n, owner, started)"
        " values ('t', 'main', 1, 'done', 1, 1, '', 0)"
    )
    entry = (
        "insert into entry (seq, kind, payload, attempt, at)"
        " values (1 << 20, 'user', '{\"text\": \"hello\"}', 1, 0)"
    )
    said = "insert into said values (1 << 20, 'main', 0, 'hello', 'hello', 0, 'user', 0, 1, false, false, 't')"
    rows = f"{old}; {turn}; update event set turn = 1; {entry}; {said}; insert into migration values (13)"
    postgres.execute(f"set search_path to knapper; {tables}; {first}; {rows}", name)
    async with open_store(database, clock=clock) as store:
        line = (await store.begin_conversation("main")).line
        for each in ("main", line):
            await store.post(Post(each, "note", {"text": "hello"}))
        found = [row.payload["text"] for row in await store.history("main")]
        branch = await store.begin_branch("main", 1 << 20)
        assert (found, await store.history(branch.line)) == (
            ["hello"],
            await store.history("main"),
        )
        last = await store.last_message("main")
        assert last is not None
        assert (last.text, last.line) == ("hello", "main")
        assert sorted(due.line for due in await store.due()) == ["main", line]
    assert postgres.execute("select count(*) from knapper.made", name) == [(0,)]


async def test_a_database_that_takes_no_writes_says_so(
    database: str, postgres: Server, clock: ManualClock
) -> None:
    postgres.execute(f"alter database {name_of(database)} set default_transaction_read_only = on")
    async with open_store(database, clock=clock) as store:
        with pytest.raises(StorageError, match="is read-only"):
            await store.post(Post("main", "user", {"text": "hello"}))


def test_a_server_without_a_free_connection_says_so(database: str, postgres: Server) -> None:
    postgres.execute("create role guest login")
    postgres.execute(f"alter database {name_of(database)} connection limit 0")
    try:
        with pytest.raises(StorageError, match="as many connections as it takes"):
            open_store(database.replace("tw@", "guest@"), clock=Clock())
    finally:
        postgres.execute("drop role guest")


async def test_without_pgvector_texts_are_found_by_words(
    database: str, postgres: Server, clock: ManualClock
) -> None:
    postgres.execute("drop extension if exists vector", name_of(database))
    async with open_store(database, clock=clock) as store:
        await insert(store, "pie oven", "rain")
        assert len(await store.search_words("archival", "main", ["oven"], 5)) == 1
        assert "create extension vector" in await store.vector_trouble()


async def test_every_text_comes_back_as_it_was(store: Store) -> None:
    turn = await begin(store)
    odd = ["a\0b", "\ufdd0", "\ufdd0\ufdd2\0", "\\u0000", "\N{PILE OF POO}", "\\"]
    for n, text in enumerate(odd):
        await store.apply([SaveText(text), *saving(f"odd{n}.py", f"# {text}")])
        await store.append(turn.id, 1, n, [Entry("user", {"text": text, "thread": "t"})])
        assert await store.text(content_hash(text)) == text
        assert [row.text for row in await store.module_history(f"odd{n}.py")] == [f"# {text}"]
    assert texts(await store.load(turn.id)) == odd


async def test_an_odd_word_or_a_pasted_file_in_one_word_is_kept_and_found(store: Store) -> None:
    pasted = hashlib.shake_256(b"file").hexdigest(8_000)
    await insert(store, f"oven {pasted}", f"rain {pasted[:600]} {pasted[:700]}")
    assert len(await store.search_words("archival", "main", [pasted], 5)) == 2
    assert len(await store.search_words("archival", "main", ["oven"], 5)) == 1
    for n, word in enumerate(("ich mag d\0en Ofen und die Suppe", "a\0b", "\ufdd0")):
        await insert(store, f"kiln{n} {word}", prefix=str(n))
        assert len(await store.search_words("archival", "main", [f"kiln{n}", word], 5)) == 1


async def test_writers_at_the_same_rows_all_get_through(
    store: Store, open_again: Callable[[], Store]
) -> None:
    stores = (store, open_again())
    call = RecordCall("count", "v", "returned", 0.1)
    await asyncio.gather(*(stores[number % 2].apply([call]) for number in range(20)))
    [stats] = await store.call_stats("count")
    assert (stats.calls, stats.holding, len(await store.recent_calls("count"))) == (20, 20, 20)


async def test_a_commit_that_breaks_is_made_once(
    database: str, postgres: Server, clock: ManualClock
) -> None:
    async with open_store(database, clock=clock) as store:
        once(postgres, database, "call", "pg_terminate_backend(pg_backend_pid())", "after insert")
        await store.apply([RecordCall("count", "v", "returned", 0.1)])
        [stats] = await store.call_stats("count")
        assert stats.calls == 1


async def test_a_transaction_that_stood_still_is_done_again(
    database: str, postgres: Server, clock: ManualClock
) -> None:
    stand_still = "set_config('idle_in_transaction_session_timeout', '1', true)"
    async with open_store(database, clock=clock) as store:
        once(postgres, database, "passage", stand_still, "before insert")
        await insert(
            store, " ".join(f"word{number}" for number in range(20_000))
        )  # stemmed in the transaction
        assert len(await store.search_words("archival", "main", ["word7"], 5)) == 1


async def test_a_step_that_posts_what_others_post_is_written(
    store: Store, open_again: Callable[[], Store]
) -> None:
    """A post is not serializable in PostgreSQL: it may come between a step's lookup of a key and its insert."""
    turn, other = await begin(store), open_again()
    for n in range(12):
        post = Post("other", "user", {}, key=str(n))
        await asyncio.gather(
            other.post(post),
            store.append(turn.id, 1, n, [user("hello")], posts=[post]),
            other.post(post),
        )
    assert len(await store.waiting("other")) == 12


async def test_functions_in_public_are_never_called(
    database: str, postgres: Server, clock: ManualClock
) -> None:
    async with open_store(database, clock=clock) as store:
        trap = "create function public.max(bigint, integer) returns bigint language sql as 'select (1 / 0)::bigint'"
        postgres.execute(trap, name_of(database))
        turn = await begin(store)
        await store.append(turn.id, 1, 0, [user("hello")])
        assert texts(await store.history("main")) == ["hello"]


def test_a_database_that_another_workspace_takes_at_this_moment_is_refused(
    database: str, postgres: Server
) -> None:
    with ThreadPoolExecutor() as threads, psycopg.connect(database) as other:
        other.execute("insert into knapper.home values ('theirs')")
        opening = threads.submit(open_store, database, clock=Clock(), workspace="ours")
        while not opening.done() and not postgres.execute(
            "select 1 from pg_locks where not granted"
        ):
            time.sleep(0.01)
        other.commit()
        with pytest.raises(StorageError, match="another folder"):
            opening.result()


@pytest.mark.slow
@pytest.mark.usefixtures("postgres")  # skips it where no server starts
async def test_a_restart_of_the_database_is_waited_for(clock: ManualClock, tmp_path: Path) -> None:
    server = Server.make()
    try:
        async with open_store(server.url(), clock=clock) as store:
            turn = await begin(store)
            stop = threading.Thread(target=restart, args=(server,))
            stop.start()
            for place in range(200):
                await store.append(turn.id, 1, place, [user(str(place))])
                if not stop.is_alive() and place > 20:
                    break
            stop.join()
            written = texts(await store.load(turn.id))
            assert written == [str(number) for number in range(len(written))]
            assert len(written) > 20
    finally:
        server.remove()


@pytest.mark.slow
@pytest.mark.usefixtures("postgres")  # skips it where no server starts
async def test_who_comes_back_after_a_restart_keeps_what_is_theirs_and_who_died_meanwhile_does_not(
    tmp_path: Path,
) -> None:
    server = Server.make()
    children = []
    try:
        async with open_store(server.url(), clock=Clock()) as store:
            await store.agents()
            children = [
                held_by_another_process(server.url(), tmp_path, agent) for agent in ("late", "dead")
            ]
            late, dead = children
            late.send_signal(signal.SIGSTOP)
            dead.kill()
            server.stop()
            await asyncio.sleep(3.5)  # longer than the silence after which a process counts as dead
            server.start()
            asyncio.get_running_loop().call_later(0.5, late.send_signal, signal.SIGCONT)
            with pytest.raises(AgentBusy):
                async with store.hold(tmp_path, "late"):
                    pass
            async with store.hold(tmp_path, "dead"):
                assert store.leases_taken == 1
    finally:
        for child in children:
            child.kill()
            child.communicate()
        server.remove()


async def test_a_copy_is_whole_in_both_directions_and_resumes(
    database: str, tmp_path: Path, clock: ManualClock
) -> None:
    async with (
        open_store(tmp_path / "state.db", clock=clock) as first,
        open_store(database, clock=clock) as middle,
        open_store(tmp_path / "back.db", clock=clock) as last,
    ):
        await fill(first)
        counts = await copy_store(first, middle)
        assert counts["entry"] == 2
        with pytest.raises(StorageError, match="not empty"):
            await copy_store(first, middle)
        assert await copy_store(first, middle, resume=True) == counts
        assert await copy_store(middle, last) == counts
        whole = await first.read_agent("main")
        for store in (first, middle, last):
            assert await store.read_agent("main") == whole
            assert len(await store.search_words("archival", "main", ["pie"], 5)) == 1
            await begin(store)  # numbers continue after the restored ones


def once(server: Server, url: str, table: str, action: str, moment: str) -> None:
    """Run an action at the first change of a table only: a sequence keeps counting after a rollback."""
    server.execute("create sequence knapper.times", name_of(url))
    body = f"begin if nextval('knapper.times') = 1 then perform {action}; end if; return new; end"
    server.execute(
        f"create function knapper.act() returns trigger language plpgsql as $act$ {body} $act$",
        name_of(url),
    )
    trigger = f"constraint trigger act {moment} on knapper.{table} deferrable initially deferred"
    if moment.startswith("before"):
        trigger = f"trigger act {moment} on knapper.{table}"
    server.execute(f"create {trigger} for each row execute function knapper.act()", name_of(url))


def restart(server: Server) -> None:
    server.stop("immediate")
    server.start()


_HOLDER = """
import asyncio, sys
from pathlib import Path
from agent_core.base.clock import Clock
from agent_core.storage import open_store

async def hold(url, folder, agent):
    async with open_store(url, clock=Clock()) as store, store.hold(Path(folder), agent):
        print("held", flush=True)
        await asyncio.sleep(600)

asyncio.run(hold(*sys.argv[1:]))
"""


def held_by_another_process(url: str, folder: Path, agent: str) -> subprocess.Popen[str]:
    """Return a process that has claimed an agent."""
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, url, folder, agent], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


async def fill(store: Store) -> None:
    """Store some of everything that is easily made."""
    turn = await begin(store)
    await store.append(
        turn.id, 1, 0, [user("a\0b"), user("later")], writes=saving("one.py", "x = 1")
    )
    await store.finish(turn.id, 1)
    await store.apply([RecordCall("count", "v", "raised", 0.25, turn.id, "ValueError")])
    await insert(store, "pie oven", "rain")
    await store.post(Post("main", "user", {"text": "waits"}, key="k", due=2e9))


async def test_of_four_who_want_an_agent_one_has_it(
    store: Store, open_again: Callable[[], Store], tmp_path: Path
) -> None:
    stores = (store, *(open_again() for _ in range(3)))
    held = refused = 0

    async def take(one: Store) -> None:
        nonlocal held, refused
        try:
            async with one.hold(tmp_path, "main"):
                held += 1
                while held + refused < len(stores):  # noqa: ASYNC110 - the others count
                    await asyncio.sleep(0.02)
        except AgentBusy:
            refused += 1

    await asyncio.gather(*map(take, stores))
    assert (held, refused) == (1, 3)
    async with stores[1].hold(tmp_path, "main"):
        pass


async def test_who_lost_an_agent_begins_no_turn(
    database: str, postgres: Server, clock: ManualClock, tmp_path: Path
) -> None:
    async with (
        open_store(database, clock=clock) as store,
        open_store(database, clock=clock) as other,
    ):
        await store.post(Post("main", "message", {"text": "hello"}))
        async with store.hold(tmp_path, "main"), other.hold(tmp_path, "another"):
            postgres.execute(
                f"update knapper.lease set owner = '{other.owner}' where line = 'main'",
                name_of(database),
            )
            with pytest.raises(LostLease):
                await store.next("main", store.owner)
        assert await store.next("main", store.owner)


async def test_agents_that_others_have_are_no_work(
    database: str, clock: ManualClock, tmp_path: Path
) -> None:
    async with (
        open_store(database, clock=clock) as store,
        open_store(database, clock=clock) as other,
    ):
        await store.post(Post("main", "note", {"text": "hello"}))
        async with other.hold(tmp_path, "main"):
            assert await store.work() == []
            assert [due.line for due in await other.work()] == ["main"]
        assert [due.line for due in await store.work()] == ["main"]


async def test_those_who_listen_are_told_of_a_message_and_not_of_what_concerns_nobody(
    database: str, clock: ManualClock, tmp_path: Path
) -> None:
    told = asyncio.Queue[str]()
    async with (
        open_store(database, clock=clock) as store,
        open_store(database, clock=clock) as other,
        other.heard(told.put_nowait),
    ):
        assert await told.get() == ""  # earlier changes were not announced
        await store.apply([ResumeAgent("main")])  # it was not paused
        async with store.hold(
            tmp_path, "main"
        ):  # claiming starts by removing dead processes, and there are none
            await store.post(Post("main", "message", {"text": "hello"}))
            await store.apply(saving("odd.py", "x = 1"))
            async with asyncio.timeout(10):
                assert [await told.get(), await told.get()] == [WORK, FUNCTIONS]
        async with asyncio.timeout(10):
            assert await told.get() == WORK  # others may have the agent


class Listener:
    """A process at the database that records the notifications to run turns."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.told: list[str] = []

    @asynccontextmanager
    async def at_work(self, slots: int) -> AsyncIterator["Listener"]:
        async with self.store.heard(self.told.append, to_run=True):
            await self.store.offer_slots(slots)
            await heard(lambda: bool(self.told))  # the first beat
            self.told.clear()
            yield self


async def heard(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110  (another process sends no notification)
            await asyncio.sleep(0.01)


async def test_of_several_workers_one_with_room_is_told(
    database: str, clock: ManualClock, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(open_store(database, clock=clock)) for _ in range(4)
        ]
        full, *others = [
            await stack.enter_async_context(Listener(store).at_work(slots))
            for store, slots in zip(stores, (1, 1, 1, 0), strict=True)
        ]
        await stack.enter_async_context(full.store.hold(tmp_path, "busy"))
        await full.store.post(Post("main", "message", {"text": "hello"}))
        client = others.pop()
        await heard(lambda: WORK in client.told)
        await heard(lambda: any(WORK in other.told for other in others))
        assert full.told == []
        assert sum(len(other.told) for other in others) == 1


async def test_a_message_to_a_dead_process_reaches_a_worker(
    database: str, clock: ManualClock, postgres: Server
) -> None:
    async with open_store(database, clock=clock) as store, Listener(store).at_work(1) as listener:
        row = "'dead', 'a dead one', 4, 0, clock_timestamp() - interval '10 s'"
        dead = f"insert into knapper.worker (id, name, slots, backend, beat) values ({row})"
        postgres.execute(dead, name_of(database))
        postgres.execute(
            "insert into knapper.lease (line, owner) values ('main', 'dead')", name_of(database)
        )
        await store.post(Post("main", "message", {"text": "hello"}))
        await heard(lambda: listener.told == [WORK])


async def test_who_runs_turns_and_shows_those_of_others_hears_that_another_let_an_agent_go(
    database: str, clock: ManualClock, tmp_path: Path
) -> None:
    shown: list[str] = []
    async with (
        open_store(database, clock=clock) as store,
        open_store(database, clock=clock) as other,
        Listener(other).at_work(1),
        Listener(store).at_work(1) as listener,
        store.heard(shown.append),
    ):
        async with other.hold(tmp_path, "main"):
            await other.post(Post("main", "message", {"text": "hello"}))
            await heard(lambda: shown == [WORK])
            assert listener.told == []  # the process that has the agent runs it
        await heard(lambda: shown == [WORK, WORK])
        await heard(lambda: listener.told == [WORK])  # it was released, and something waits


async def test_a_lent_agent_is_taken_back_as_it_was_or_not(
    database: str, clock: ManualClock, tmp_path: Path
) -> None:
    async with (
        open_store(database, clock=clock) as store,
        open_store(database, clock=clock) as other,
    ):
        async with store.hold(tmp_path, "main"):
            await store.lend("main")
            assert await store.take_back("main")
            with pytest.raises(AgentBusy):
                async with other.hold(tmp_path, "main"):
                    pass
            await store.lend("main")
            async with other.hold(tmp_path, "main"):
                with pytest.raises(AgentBusy):
                    await store.take_back("main")
            assert not await store.take_back("main")
        async with store.hold(tmp_path, "main"):
            await store.lend("main")
            async with other.hold(tmp_path, "main"):
                pass
            assert not await store.take_back("main")
        async with store.hold(tmp_path, "main"):
            await store.lend("main")
            await other.apply([JoinOwnSet("main", "count")])  # from a process that does not have it
            assert not await store.take_back("main")
        async with other.hold(tmp_path, "main"):
            pass


async def test_who_had_an_agent_last_is_told_of_messages(
    database: str, clock: ManualClock, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(open_store(database, clock=clock)) for _ in range(3)
        ]
        listeners = [
            await stack.enter_async_context(Listener(store).at_work(2)) for store in stores
        ]
        last = listeners[1]
        await stack.enter_async_context(last.store.hold(tmp_path, "main"))
        await last.store.lend("main")
        for _ in range(5):
            await stores[0].post(Post("main", "message", {"text": "hello"}))
        await heard(lambda: len(last.told) == 5)
        assert listeners[0].told + listeners[2].told == []
        for name in ("one", "two"):  # the last process has no free slot left
            await stack.enter_async_context(last.store.hold(tmp_path, name))
        await stores[0].post(Post("main", "message", {"text": "hello"}))
        await heard(lambda: listeners[0].told + listeners[2].told == [WORK])
