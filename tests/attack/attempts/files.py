# Attackers write neither types nor paths by the book; these modules are data that workers run.
# mypy: ignore-errors
# ruff: noqa: PTH101, PTH104, PTH108, PTH115, PTH208, PTH211, SIM115
"""Attempts on files: read, list, change, create, link and remove what is outside."""

import fcntl
import os
import shutil
import socket
import sys
from pathlib import Path


def read_a_secret_by_path(world: dict) -> str:
    return Path(world["secret"]).read_text()


def read_a_secret_of_everybody(world: dict) -> str:
    return Path(world["open_secret"]).read_text()


def read_a_secret_by_descriptor_of_its_folder(world: dict) -> str:
    folder = os.open(world["folder"], os.O_RDONLY)
    return os.read(os.open("secret", os.O_RDONLY, dir_fd=folder), 100).decode()


def read_a_secret_by_climbing(world: dict) -> str:
    return Path("../" * 20 + world["secret"]).read_text()


def read_the_password_file(world: dict) -> str:
    return Path("/etc/passwd").read_text() + world["mark"]


def read_the_victims_environment(world: dict) -> bytes:
    return Path(f"/proc/{world['victim']}/environ").read_bytes()


def read_the_hosts_environment(world: dict) -> bytes:
    return Path(f"/proc/{world['host']}/environ").read_bytes()


def read_the_parents_environment(world: dict) -> bytes:
    return Path(f"/proc/{os.getppid()}/environ").read_bytes()


def read_ones_own_environment(world: dict) -> dict:
    return dict(os.environ)


def read_the_hosts_memory(world: dict) -> str:
    return Path(f"/proc/{world['host']}/mem").open("rb").read(10).hex() + world["mark"]


def read_the_hosts_descriptors(world: dict) -> list:
    return [os.readlink(f"/proc/{world['host']}/fd/{number}") for number in range(20)] + [world["mark"]]


def list_the_processes(world: dict) -> str:
    return world["mark"] if str(world["victim"]) in os.listdir("/proc") else "not seen"


def list_the_folder(world: dict) -> str:
    return world["mark"] if "secret" in os.listdir(world["folder"]) else "empty"


def see_who_the_victim_is(world: dict) -> str:
    return os.readlink(f"/proc/{world['victim']}/exe") + world["mark"]


def read_through_a_link_in_scratch(world: dict) -> str:
    os.symlink(world["secret"], "link")
    return Path("link").read_text()


def read_through_a_hard_link(world: dict) -> str:
    os.link(world["open_secret"], "hard")
    return Path("hard").read_text()


def import_what_lies_outside(world: dict) -> str:
    sys.path.insert(0, world["folder"])
    return __import__("outside").SECRET


def read_the_workspace(world: dict) -> str:
    return Path(world["repository"], "pyproject.toml").read_text() + world["mark"]


def read_what_is_installed_for_others(world: dict) -> str:
    import pytest

    return pytest.__file__ + world["mark"]


def write_outside(world: dict) -> None:
    Path(world["folder"], "written").write_text("x")


def write_into_a_folder_of_everybody(world: dict) -> None:
    Path(world["open_folder"], "written").write_text("x")


def overwrite_a_file(world: dict) -> None:
    Path(world["writable"]).write_text("x")


def append_to_a_file(world: dict) -> None:
    Path(world["writable"]).open("a").write("x")


def truncate_a_file(world: dict) -> None:
    os.truncate(world["writable"], 0)


def open_a_file_for_truncation(world: dict) -> None:
    os.open(world["writable"], os.O_RDONLY | os.O_TRUNC)


def write_into_the_standard_library(world: dict) -> str:
    target = Path(os.__file__).with_name("toolwright_was_here.py")
    target.write_text("x")
    return world["mark"]


def write_where_the_host_would_import(world: dict) -> None:
    Path(world["repository"], "sandbox", "written_by_an_attempt.py").write_text("x")


def change_the_mode(world: dict) -> None:
    os.chmod(world["writable"], 0o777)


def change_the_owner(world: dict) -> None:
    os.chown(world["writable"], 1, 1)


def change_the_times(world: dict) -> None:
    os.utime(world["writable"], (1, 1))


def set_an_attribute(world: dict) -> None:
    os.setxattr(world["writable"], "user.toolwright", b"x")


def remove_a_file(world: dict) -> None:
    os.unlink(world["writable"])


def remove_the_folder(world: dict) -> None:
    shutil.rmtree(world["open_folder"])


def move_a_file_out_of_scratch(world: dict) -> None:
    Path("mine").write_text("x")
    os.rename("mine", world["open_folder"] + "/moved")


def move_a_file_into_scratch(world: dict) -> str:
    os.rename(world["writable"], "taken")
    return Path("taken").read_text()


def lock_a_file_of_the_host(world: dict) -> str:
    fcntl.flock(os.open(world["open_secret"], os.O_RDONLY), fcntl.LOCK_EX)
    return world["mark"]


def leave_a_link_for_the_host(world: dict) -> str:
    os.symlink("/etc/passwd", "innocent")
    return world["mark"]


def leave_a_pipe_for_the_host(world: dict) -> str:
    os.mkfifo("pipe")
    return world["mark"]


def leave_a_socket_for_the_host(world: dict) -> str:
    socket.socket(socket.AF_UNIX).bind("socket")
    return world["mark"]


def make_a_device(world: dict) -> str:
    os.mknod("disk", 0o60666, os.makedev(254, 0))
    return world["mark"]


def write_into_the_control_groups(world: dict) -> str:
    Path("/sys/fs/cgroup/cgroup.procs").write_text("0")
    return world["mark"]


def reach_out_through_an_inherited_descriptor(world: dict) -> str:
    for number in range(5, 256):
        try:
            os.fstat(number)
        except OSError:
            continue
        return world["mark"]
    return "none"
