# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
# ruff: noqa: PTH102
"""filling scratch beyond its size"""

import os
from pathlib import Path


def one_large_file(self, world):
    """worker: its size | namespaces limits"""
    with Path("large").open("wb") as file:
        for _piece in range(100):
            file.write(bytes(1 << 20))
    self.call("look", at="size", has="large [1-9][0-9]{7}")


def one_large_file_with_holes(self, world):
    """worker: its size | limits"""
    with Path("large").open("wb") as file:
        file.truncate(1 << 34)
    self.call("look", at="size", has="large [1-9][0-9]{10}")


def one_large_file_by_asking_for_room(self, world):
    """worker: its size | limits"""
    os.posix_fallocate(os.open("large", os.O_CREAT | os.O_WRONLY), 0, 60 << 20)
    self.call("look", at="size", has="large [1-9][0-9]{7}")


def many_files(self, world):
    """worker: their sizes | namespaces | core leaks: only a separate file system limits the total size of all files"""
    for number in range(30):
        Path(f"part{number}").write_bytes(bytes(4 << 20))
    self.call("look", at="size", has="part29 4194304")


def many_names(self, world):
    """worker: their number | namespaces | core leaks: only a separate file system limits the number of files"""
    for number in range(4500):
        os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY))
    self.call("look", at="size", has="f4499 0")


def many_folders(self, world):
    """worker: their number | namespaces | core leaks: only a separate file system limits the number of files"""
    for number in range(4500):
        os.mkdir(os.path.abspath(f"d{number}"))  # noqa: PTH100 - one that is not absolute is asked of the host
    self.call("look", at="cwd", has="d4499")


def output_without_end(self, world):
    """amount: 20,000 bytes are kept | output | ahead: there is no call yet that reports or asks"""
    for _piece in range(40):
        os.write(1, b"x" * 50_000)


def output_faster_than_it_can_be_read(self, world):
    """amount: 64 times what is kept is a flood | output | ahead: there is no call yet that reports or asks"""
    for _piece in range(1600):
        os.write(2, b"x" * 4_096)  # as much as any system takes at once
    return world["mark"]


def a_result_of_fifty_megabytes(self, world):
    """amount: a megabyte is taken | result | ahead: there is no call yet that reports or asks"""
    return "x" * (50 << 20)


def a_result_of_many_small_things(self, world):
    """amount: a megabyte is taken | result | ahead: there is no call yet that reports or asks"""
    return [0] * 1_500_000


def an_error_of_fifty_megabytes(self, world):
    """amount: a megabyte is taken | reader | ahead: there is no call yet that reports or asks"""
    import json

    body = json.dumps(
        {"kind": "raised", "type": "E", "message": "x" * (50 << 20), "frames": []}
    ).encode()
    data = memoryview(len(body).to_bytes(4, "big") + body)
    while data:
        data = data[os.write(3, data) :]
    os._exit(0)


def questions_without_end(self, world):
    """said: 300 are answered | requests | ahead: there is no call yet that reports or asks"""
    for _number in range(400):
        self._channel.request("progress", {"done": 1, "total": 2, "note": ""})
    return world["mark"]


def imports_without_end(self, world):
    """said: 300 are answered | requests | ahead: there is no call yet that reports or asks"""
    for number in range(400):
        self._channel.ask({"kind": "module", "module": f"m{number}"})
    return world["mark"]
