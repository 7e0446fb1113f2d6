# Function code as people write it; a worker runs it, so it is data here.
# mypy: ignore-errors
# ruff: noqa: B024, PTH123, SIM115
"""What honest functions use of the standard library; each returns 1 if it works."""

import abc
import asyncio
import contextlib
import datetime
import functools
import hashlib
import os
import secrets
import signal
import sqlite3
import sys
import tempfile
import threading
import unicodedata
import uuid
import xml.etree.ElementTree as E
import zipfile
import zoneinfo
from concurrent.futures import ThreadPoolExecutor as P


def threads():
    t = threading.Thread(target=print, args=("hi",))
    t.start()
    t.join()
    return 1


def a_pool_of_threads():
    with P() as p:
        return sum(p.map(abs, range(-50, 50))) and 1


async def _one_of_tasks(n):
    await asyncio.sleep(0.01)
    return n


async def tasks():
    return sum(await asyncio.gather(*map(_one_of_tasks, [0, 1])))


async def a_subprotocol_of_tasks():
    return await asyncio.to_thread(int, "1")


def a_database_in_memory():
    return sqlite3.connect(":memory:").execute("select 1").fetchone()[0]


def a_database_in_scratch():
    with sqlite3.connect("x.db") as c:
        c.execute("create table t(a)")
        c.execute("insert into t values (1)")
    return sqlite3.connect("x.db").execute("select a from t").fetchone()[0]


def temporary_files():
    with tempfile.TemporaryDirectory() as d:
        open(d + "/x", "w").write("1")
        return int(open(d + "/x").read())


def zones():
    return (
        datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")).utcoffset().seconds
        // 7200
    )


def hashes():
    return len(hashlib.sha3_256(b"x").hexdigest()) // 64


def archives():
    with zipfile.ZipFile("a.zip", "w") as z:
        z.writestr("x", "1")
    return int(zipfile.ZipFile("a.zip").read("x"))


def random_numbers():
    return int(
        len(os.urandom(4)) == 4 and bool(secrets.token_hex()) and (uuid.uuid4().version == 4)
    )


def markup():
    return int(E.fromstring("<a>1</a>").text)


def calendars_and_letters():
    return int(unicodedata.numeric("1"))


def nowhere_to_write():
    return open(os.devnull, "w").write("x")


def _g_of_deep_recursion(n):
    return n and _g_of_deep_recursion(n - 1)


def deep_recursion():
    sys.setrecursionlimit(20000)
    return 1 + _g_of_deep_recursion(15000)


def timers():
    signal.alarm(5)
    return 1 + signal.alarm(0) * 0


class _A_of_classes_of_every_kind(abc.ABC):
    @functools.cached_property
    def x(self):
        return 1


class _B_of_classes_of_every_kind(_A_of_classes_of_every_kind):
    pass


@contextlib.contextmanager
def _c_of_classes_of_every_kind():
    yield _B_of_classes_of_every_kind().x


def classes_of_every_kind():
    with _c_of_classes_of_every_kind() as x:
        return x
