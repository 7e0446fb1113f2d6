# Attackers write neither types nor paths by the book; these modules are data that workers run.
# mypy: ignore-errors
# ruff: noqa: PTH102, PTH103
"""Attempts to use up what others need: time, memory, disk, threads, the host's patience."""

import os
import re
import signal
import threading
import time
from pathlib import Path


def never_return(world: dict) -> None:
    while True:
        pass


def never_return_from_c(world: dict) -> int:
    return len(str(7 ** (10**8)))


def match_for_ever(world: dict) -> object:
    return re.match(r"(a+)+$", "a" * 60 + "b")


def ignore_every_signal(world: dict) -> None:
    for number in (signal.SIGTERM, signal.SIGXCPU, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


def sleep_for_ever(world: dict) -> None:
    time.sleep(10_000)


def take_all_memory_at_once(world: dict) -> str:
    bytearray(2 << 30)
    return world["mark"]


def take_all_memory_in_pieces(world: dict) -> str:
    kept = []
    while True:
        kept.append(bytearray(1 << 20))
        if len(kept) > 2048:
            return world["mark"]


def start_threads_without_end(world: dict) -> str:
    for _number in range(5000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return world["mark"]


def fill_the_disk_with_one_file(world: dict) -> str:
    with Path("large").open("wb") as file:
        for _piece in range(200):
            file.write(bytes(1 << 20))
    return world["mark"]


def fill_the_disk_with_many_files(world: dict) -> str:
    for number in range(50):
        Path(f"part{number}").write_bytes(bytes(4 << 20))
    return world["mark"] if world["level"] == "full" else "no cap without a root of our own"


def fill_the_table_of_files(world: dict) -> str:
    for number in range(20_000):
        Path(f"f{number}").touch()
    return world["mark"] if world["level"] == "full" else "no cap without a root of our own"


def nest_folders_without_end(world: dict) -> str:
    for _number in range(1500):
        os.mkdir("d")
        os.chdir("d")
    return "left for whoever cleans up"


def leave_folders_that_cannot_be_opened(world: dict) -> str:
    os.makedirs("a/b/c")
    os.mkdir("closed", 0)
    return "left for whoever cleans up"


def open_files_without_end(world: dict) -> str:
    for _number in range(1000):
        os.open("/dev/null", os.O_RDONLY)
    return world["mark"]


def print_without_end(world: dict) -> None:
    while True:
        print("x" * 100_000)


def return_too_much(world: dict) -> str:
    return "x" * (50 << 20)


def recurse_in_c(world: dict) -> str:
    nested: list = []
    for _depth in range(200_000):
        nested = [nested]
    return repr(nested)


def ask_without_end(self, world: dict) -> str:
    while True:
        self._channel.request("progress", {"done": 1, "total": 2, "note": ""})
