# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
# ruff: noqa: PTH102, PTH104, PTH108, SIM115
"""creating, changing and removing files outside"""

import os
import shutil
import sqlite3
from pathlib import Path

from functions.hand import mmap, raw


def a_new_file(self, world):
    """changed | namespaces landlock"""
    Path(world["folder"], "written").write_text("x")


def a_new_file_where_everybody_may(self, world):
    """changed | namespaces landlock"""
    Path(world["open_folder"], "written").write_text("x")


def a_file_without_a_name(self, world):
    """said: nobody sees it before it is linked | namespaces landlock"""
    os.open(world["open_folder"], os.O_TMPFILE | os.O_RDWR)
    return world["mark"]


def over_a_file(self, world):
    """changed | namespaces landlock"""
    Path(world["writable"]).write_text("x")


def at_the_end_of_a_file(self, world):
    """changed | namespaces landlock"""
    Path(world["writable"]).open("a").write("x")


def cut_a_file(self, world):
    """changed | namespaces landlock seccomp"""
    os.truncate(world["writable"], 0)


def cut_a_file_by_opening_it(self, world):
    """changed | namespaces landlock"""
    os.open(world["writable"], os.O_RDONLY | os.O_TRUNC)


def into_a_file_by_mapping_it(self, world):
    """changed | namespaces landlock"""
    page = mmap.mmap(os.open(world["writable"], os.O_RDWR), 0)
    page[0:1] = b"x"
    page.flush()


def into_a_database(self, world):
    """changed | namespaces landlock"""
    with sqlite3.connect(world["database"]) as database:
        database.execute("delete from secrets")


def into_the_standard_library(self, world):
    """changed | namespaces landlock"""
    Path(os.__file__).with_name("knapper_was_here.py").write_text("x")


def where_the_host_would_import(self, world):
    """changed | namespaces landlock"""
    Path(world["repository"], "sandbox", "written_by_an_attempt.py").write_text("x")


def into_the_cache_of_the_hosts_code(self, world):
    """changed | namespaces landlock"""
    Path(world["repository"], "sandbox", "__pycache__").mkdir(exist_ok=True)
    Path(world["repository"], "sandbox", "__pycache__", "written_by_an_attempt.pyc").write_text("x")


def a_new_folder(self, world):
    """changed | namespaces landlock"""
    os.mkdir(world["open_folder"] + "/made")


def remove_a_file(self, world):
    """changed | namespaces landlock"""
    os.unlink(world["writable"])


def remove_a_folder(self, world):
    """changed | namespaces landlock"""
    shutil.rmtree(world["open_folder"])


def move_a_file_out_of_scratch(self, world):
    """changed | namespaces landlock"""
    Path("mine").write_text("x")
    os.rename("mine", world["open_folder"] + "/moved")


def move_a_file_into_scratch(self, world):
    """changed | namespaces landlock"""
    os.rename(world["writable"], "taken")


def move_a_file_within_its_folder(self, world):
    """changed | namespaces landlock"""
    os.rename(world["writable"], world["writable"] + "2")


def exchange_two_files(self, world):
    """changed | namespaces landlock"""
    raw(316, -100, world["writable"].encode(), -100, world["open_secret"].encode(), 2)


def into_the_control_groups(self, world):
    """said: it is moved to where it is | namespaces landlock"""
    Path(world["cgroup"]).write_text("0")
    return world["mark"]


def into_the_settings_of_the_kernel(self, world):
    """said: it is set to what it was | namespaces landlock"""
    there = Path("/proc/sys/kernel/core_pattern")
    there.write_text(there.read_text())
    return world["mark"]


def into_the_hosts_memory(self, world):
    """said: nothing is written where it is opened | namespaces landlock privileges"""
    os.close(os.open(f"/proc/{world['victim']}/mem", os.O_RDWR))
    return world["mark"]


def make_the_victim_the_first_to_die(self, world):
    """changed | namespaces landlock"""
    Path(f"/proc/{world['victim']}/oom_score_adj").write_text("900")
