# Function code as people write it; a worker runs it, so it is data here.
# mypy: ignore-errors
# ruff: noqa: PTH103, PTH105, PTH116, PTH123
"""What honest functions do with the files granted to them; each returns True if it works."""

import csv
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path


def read_a_table(root):
    with open(f"{root}/in/deep/b.csv", newline="") as file:
        return list(csv.reader(file)) == [["1", "2"]]


def read_every_table(root):
    return sorted(path.name for path in Path(root, "in").rglob("*.csv")) == ["a.csv", "b.csv"]


def read_through_a_link_that_stays(root):
    return Path(root, "in/link_in").read_text() == "1,2"


def read_a_single_file(root):
    return Path(root, "one").read_text() == "1,2"


def write_a_single_file(root):
    Path(root, "two").write_text("new")
    return Path(root, "two").read_text() == "new"


def write_and_read_again(root):
    Path(root, "out/new").write_text("new")
    return Path(root, "out/new").read_text() == "new"


def replace_a_file_in_one_step(root):
    descriptor, name = tempfile.mkstemp(dir=f"{root}/out")
    with os.fdopen(descriptor, "w") as file:
        file.write("new")
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, f"{root}/out/kept")
    return Path(root, "out/kept").read_text() == "new"


def replace_across_folders(root):
    Path(root, "out/sub/new").write_text("new")
    os.replace(f"{root}/out/sub/new", f"{root}/out/kept")
    return Path(root, "out/kept").read_text() == "new" and not Path(root, "out/sub/new").exists()


def move_a_file_from_scratch(self, root):
    (self.scratch / "new").write_text("new")
    shutil.copyfile(self.scratch / "new", f"{root}/out/new")
    return Path(root, "out/new").read_text() == "new"


def make_and_remove_folders(root):
    os.makedirs(f"{root}/out/x/y")
    Path(root, "out/x/y/z").write_text("z")
    shutil.rmtree(f"{root}/out/x")
    return not Path(root, "out/x").exists()


def keep_a_database(root):
    with sqlite3.connect(f"{root}/out/x.db") as c:
        c.execute("create table t(a)")
        c.execute("insert into t values (1)")
    return sqlite3.connect(f"{root}/out/x.db").execute("select a from t").fetchone()[0] == 1


def what_it_writes_belongs_to_the_owner_of_the_folder(root):
    Path(root, "out/new").write_text("new")
    return os.stat(f"{root}/out/new").st_uid == os.stat(f"{root}/out").st_uid
