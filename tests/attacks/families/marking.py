# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
# ruff: noqa: PTH101, PTH116
"""what belongs to a file beside its content: modes, owners, times, attributes, locks, space"""

import fcntl
import os
from pathlib import Path

from functions.hand import raw


def the_mode(self, world):
    """changed | namespaces seccomp"""
    os.chmod(world["writable"], 0o777)


def the_mode_by_another_call(self, world):
    """changed | namespaces seccomp"""
    raw(452, -100, world["writable"].encode(), 0o777, 0)


def the_mode_of_scratch(self, world):
    """said: nobody else can look into it, and the mode would let them | seccomp"""
    os.chmod(".", 0o777)
    return world["mark"]


def the_bit_that_lends_its_owner(self, world):
    """said: a program of this user's that others may run as this user | seccomp"""
    Path("mine").write_text("x")
    os.chmod("mine", 0o4755)
    return world["mark"]


def the_owner(self, world):
    """changed | namespaces seccomp privileges"""
    os.chown(world["writable"], 1, 1)


def the_times(self, world):
    """changed | namespaces seccomp"""
    os.utime(world["writable"], (1, 1))


def an_attribute(self, world):
    """changed | namespaces seccomp"""
    os.setxattr(world["writable"], "user.toolwright", b"x")


def an_attribute_of_privilege(self, world):
    """changed | namespaces seccomp privileges"""
    os.setxattr(world["writable"], "security.capability", b"\1\0\0\2\xff\xff\xff\xff" + bytes(12))


def read_an_attribute(self, world):
    """said: there is none to be read | namespaces seccomp"""
    os.listxattr(world["open_secret"])
    return world["mark"]


def a_lock_on_a_file_of_the_host(self, world):
    """said: the host would wait for it | namespaces landlock seccomp"""
    fcntl.flock(os.open(world["open_secret"], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    return world["mark"]


def a_lease_on_a_file_of_the_host(self, world):
    """said: the host would wait for it | namespaces landlock seccomp"""
    fcntl.fcntl(os.open(world["open_secret"], os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)
    return world["mark"]


def the_flag_that_nobody_can_change_it(self, world):
    """said: the file would have to be mended by hand | namespaces landlock seccomp"""
    fcntl.ioctl(os.open(world["writable"], os.O_RDONLY), 0x40086602, (0).to_bytes(8, "little"))
    return world["mark"]


def space_in_a_file_of_the_host(self, world):
    """changed | namespaces landlock"""
    os.posix_fallocate(os.open(world["writable"], os.O_WRONLY), 0, 1 << 20)


def what_a_stat_tells(self, world):
    """said: sizes, times and owners | namespaces | core leaks: Landlock covers opening and not stat"""
    os.stat(world["secret"])
    return world["mark"]


def whether_a_path_is_there(self, world):
    """said: one bit for each name | namespaces | core leaks: as stat"""
    return world["mark"] if os.access(world["open_secret"], os.F_OK) else "not there"


def whether_a_process_is_there(self, world):
    """said: one bit for each number | namespaces | core leaks: as stat, below /proc"""
    return world["mark"] if os.access(f"/proc/{world['victim']}", os.F_OK) else "not there"


def where_a_link_leads(self, world):
    """said: a name | namespaces | core leaks: as stat"""
    return world["mark"] if os.readlink(world["link"]) else "nowhere"  # noqa: PTH115


def how_full_the_disk_is(self, world):
    """said: a number | namespaces | core leaks: as stat"""
    os.statvfs(world["folder"])
    return world["mark"]


def stand_in_a_folder(self, world):
    """said: standing there shows nothing | namespaces | core leaks: as stat"""
    os.chdir(world["folder"])
    return world["mark"]
