# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
# ruff: noqa: PTH101, PTH116
"""changing or reading a file's metadata: modes, owners, times, attributes, locks, space"""

import os
from pathlib import Path

from functions.hand import ctypes, fcntl, raw


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
    os.setxattr(world["writable"], "user.knapper", b"x")


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
    """said: the file would have to be fixed by hand | namespaces landlock seccomp"""
    fcntl.ioctl(os.open(world["writable"], os.O_RDONLY), 0x40086602, (0).to_bytes(8, "little"))
    return world["mark"]


def space_in_a_file_of_the_host(self, world):
    """changed | namespaces landlock"""
    os.posix_fallocate(os.open(world["writable"], os.O_WRONLY), 0, 1 << 20)


def what_a_stat_tells(self, world):
    """said: sizes, times and owners | namespaces | core leaks: Landlock covers opening but not stat"""
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


def _lends(path, world):
    return world["mark"] if os.stat(path).st_mode & 0o6000 else "it does not"


def a_file_born_to_run_as_its_owner(self, world):
    """said: others may run it as this user | seccomp"""
    path = world["granted"] + "/born"
    os.umask(0)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755))
    return _lends(path, world)


def a_file_born_to_run_as_its_group(self, world):
    """said: others may run it as this user | seccomp"""
    folder = os.open(world["granted"], os.O_RDONLY)
    os.close(os.open("born", os.O_CREAT | os.O_WRONLY, 0o2775, dir_fd=folder))
    return _lends(world["granted"] + "/born", world)


def a_file_born_by_the_oldest_call(self, world):
    """said: others may run it as this user | seccomp"""
    path = world["granted"] + "/born"
    raw(85, path.encode(), 0o4755)
    return _lends(path, world)


def a_file_born_by_the_newest_call(self, world):
    """said: others may run it as this user | seccomp"""
    path = world["granted"] + "/born"
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0)
    raw(437, -100, path.encode(), ctypes.byref(how), 24)
    return _lends(path, world)


def a_file_born_as_a_node(self, world):
    """said: others may run it as this user | seccomp"""
    path = world["granted"] + "/born"
    raw(133, path.encode(), 0o104755, 0)
    return _lends(path, world)


def the_bit_that_lends_its_owner_by_a_descriptor(self, world):
    """said: others may run it as this user | seccomp"""
    path = world["granted"] + "/mine"
    raw(91, os.open(path, os.O_CREAT | os.O_WRONLY), 0o4755)
    return _lends(path, world)


def the_bit_that_lends_its_owner_by_a_folder(self, world):
    """said: others may run it as this user | seccomp"""
    Path(world["granted"], "mine").write_text("x")
    raw(268, os.open(world["granted"], os.O_RDONLY), b"mine", 0o6755)
    return _lends(world["granted"] + "/mine", world)


def a_folder_that_everybody_may_change(self, world):
    """changed | namespaces seccomp"""
    raw(268, -100, world["folder"].encode(), 0o777)


def the_times_in_seconds(self, world):
    """changed | namespaces seccomp"""
    raw(132, world["writable"].encode(), (ctypes.c_long * 2)(1, 1))


def the_times_in_smaller_parts(self, world):
    """changed | namespaces seccomp"""
    raw(235, world["writable"].encode(), (ctypes.c_long * 4)(1, 0, 1, 0))


def the_times_by_a_folder(self, world):
    """changed | namespaces seccomp"""
    raw(261, -100, world["writable"].encode(), (ctypes.c_long * 4)(1, 0, 1, 0))
