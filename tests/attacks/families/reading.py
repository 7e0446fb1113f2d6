# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
# ruff: noqa: PTH115, PTH208, PTH211, SIM115
"""reading files, memory and environments of others"""

import os
import sqlite3
import sys
from pathlib import Path

from functions.hand import LIBC, ctypes, mmap, raw


def a_secret_of_its_owner(self, world):
    """secret | namespaces landlock"""
    return Path(world["secret"]).read_text()


def a_secret_of_everybody(self, world):
    """secret | namespaces landlock"""
    return Path(world["open_secret"]).read_text()


def by_the_old_call(self, world):
    """secret | namespaces landlock"""
    return os.read(
        raw(2, world["open_secret"].encode(), 0, 0), 100
    )  # a mode too: what lies there else may be refused


def by_the_newest_call(self, world):
    """secret | namespaces landlock seccomp"""
    how = (ctypes.c_uint64 * 3)(0, 0, 0)
    return os.read(raw(437, -100, world["open_secret"].encode(), ctypes.byref(how), 24), 100)


def by_a_descriptor_of_its_folder(self, world):
    """secret | namespaces landlock"""
    folder = os.open(world["folder"], os.O_RDONLY)
    return os.read(os.open("secret", os.O_RDONLY, dir_fd=folder), 100)


def by_a_folder_opened_for_its_path_only(self, world):
    """secret | namespaces landlock"""
    folder = os.open(world["folder"], os.O_PATH)
    return os.read(os.open("open_secret", os.O_RDONLY, dir_fd=folder), 100)


def by_climbing(self, world):
    """secret | namespaces landlock"""
    return Path("../" * 20 + world["secret"]).read_text()


def by_changing_the_folder(self, world):
    """secret | namespaces landlock"""
    os.chdir(world["folder"])
    return Path("open_secret").read_text()


def through_a_link_in_scratch(self, world):
    """secret | namespaces landlock seccomp"""
    os.symlink(world["open_secret"], "link")
    return Path("link").read_text()


def through_a_hard_link(self, world):
    """secret | namespaces landlock seccomp"""
    os.link(world["open_secret"], world["open_folder"] + "/hard")
    return Path(world["open_folder"], "hard").read_text()


def through_proc_root(self, world):
    """secret | namespaces landlock privileges"""
    return Path(f"/proc/{world['host']}/root{world['open_secret']}").read_text()


def through_the_hosts_folder(self, world):
    """secret | namespaces landlock privileges"""
    return Path(f"/proc/{world['victim']}/cwd/open_secret").read_text()


def by_mapping_it(self, world):
    """secret | namespaces landlock"""
    return mmap.mmap(os.open(world["open_secret"], os.O_RDONLY), 0, prot=mmap.PROT_READ)[:]


def by_sending_it_to_a_file_of_ones_own(self, world):
    """secret | namespaces landlock"""
    os.sendfile(
        os.open("mine", os.O_CREAT | os.O_WRONLY),
        os.open(world["open_secret"], os.O_RDONLY),
        0,
        100,
    )
    return Path("mine").read_text()


def by_copying_its_range(self, world):
    """secret | namespaces landlock"""
    os.copy_file_range(
        os.open(world["open_secret"], os.O_RDONLY), os.open("mine", os.O_CREAT | os.O_WRONLY), 100
    )
    return Path("mine").read_text()


def by_a_database_that_attaches_it(self, world):
    """secret | namespaces landlock"""
    database = sqlite3.connect(f"file:{world['database']}?mode=ro", uri=True)
    return database.execute("select * from secrets").fetchall()


def by_the_library_of_c(self, world):
    """secret | namespaces landlock"""
    LIBC.fopen.restype = ctypes.c_void_p
    file = LIBC.fopen(world["open_secret"].encode(), b"r")
    buffer = ctypes.create_string_buffer(200)
    if file:
        LIBC.fgets(buffer, 200, ctypes.c_void_p(file))
    return buffer.value


def by_a_handle(self, world):
    """secret | namespaces landlock seccomp privileges"""
    handle = ctypes.create_string_buffer((120).to_bytes(4, "little"), 128)
    raw(303, -100, world["open_secret"].encode(), handle, ctypes.create_string_buffer(8), 0)
    return os.read(raw(304, os.open(world["folder"], os.O_RDONLY), handle, 0), 100)


def the_password_file(self, world):
    """said: the text is this machine's own | namespaces landlock"""
    return Path("/etc/passwd").read_text()[:0] + world["mark"]


def the_victims_environment(self, world):
    """secret | namespaces landlock privileges"""
    return Path(f"/proc/{world['victim']}/environ").read_bytes()


def the_hosts_environment(self, world):
    """secret | namespaces landlock privileges"""
    return Path(f"/proc/{world['host']}/environ").read_bytes()


def the_parents_environment(self, world):
    """apart: the parent is started with an empty environment, so nothing is there to be read"""
    return Path(f"/proc/{os.getppid()}/environ").read_bytes()


def ones_own_environment(self, world):
    """apart: the process is started with an empty environment, so nothing is there to be read"""
    return dict(os.environ)


def the_victims_memory(self, world):
    """secret | namespaces landlock privileges"""
    return _memory_of(world["victim"], _read_by_proc)


def the_victims_memory_by_the_call_for_it(self, world):
    """secret | namespaces landlock seccomp privileges"""
    return _memory_of(world["victim"], _read_by_call)


def _memory_of(process, read):
    for line in Path(f"/proc/{process}/maps").read_text().splitlines():
        if "[stack]" in line:
            first, last = (int(each, 16) for each in line.split()[0].split("-"))
            text = read(process, first, last - first)
            at = text.find(b"ARENA_SECRET")
            return text[at : at + 100] if at >= 0 else b""
    return b""


def _read_by_proc(process, first, size):
    file = Path(f"/proc/{process}/mem").open("rb", buffering=0)
    file.seek(first)
    return file.read(size)


def _read_by_call(process, first, size):
    buffer = ctypes.create_string_buffer(size)
    here = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), size)
    there = (ctypes.c_void_p * 2)(first, size)
    raw(310, process, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return buffer.raw


def the_victims_memory_by_its_number_alone(self, world):
    """said: what stands at a guessed address is no secret | namespaces landlock seccomp privileges"""
    buffer = ctypes.create_string_buffer(8)
    here = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    there = (ctypes.c_void_p * 2)(world["address"], 8)
    raw(310, world["victim"], ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return world["mark"]


def the_hosts_descriptors(self, world):
    """said: a name among others | namespaces landlock privileges"""
    return (
        str([os.readlink(f"/proc/{world['host']}/fd/{number}") for number in range(3)])[:0]
        + world["mark"]
    )


def the_list_of_processes(self, world):
    """said: numbers are no secrets by themselves | namespaces landlock"""
    return world["mark"] if str(world["victim"]) in os.listdir("/proc") else "not seen"


def the_list_of_a_folder(self, world):
    """said: names are no secrets by themselves | namespaces landlock"""
    return world["mark"] if "secret" in os.listdir(world["folder"]) else "empty"


def which_program_the_victim_is(self, world):
    """said: a name is no secret by itself | namespaces landlock privileges"""
    return os.readlink(f"/proc/{world['victim']}/exe")[:0] + world["mark"]


def the_keys_that_the_kernel_holds(self, world):
    """said: this machine may hold none | namespaces landlock"""
    return Path("/proc/keys").read_text()[:0] + world["mark"]


def the_kernels_messages(self, world):
    """said: what the kernel logs is this machine's own | namespaces landlock privileges"""
    os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    return world["mark"]


def the_kernels_messages_by_the_call(self, world):
    """said: what the kernel logs is this machine's own | seccomp privileges"""
    raw(103, 3, ctypes.create_string_buffer(100), 100)
    return world["mark"]


def the_disk_beneath(self, world):
    """said: the disk is this machine's own | namespaces landlock"""
    name = next(name for name in sorted(os.listdir("/sys/block")) if os.path.exists(f"/dev/{name}"))  # noqa: PTH110
    os.close(os.open(f"/dev/{name}", os.O_RDONLY))
    return world["mark"]


def the_memory_of_the_machine(self, world):
    """apart: kernels are built without it"""
    os.close(os.open("/dev/mem" if os.path.exists("/dev/mem") else "/proc/kcore", os.O_RDONLY))  # noqa: PTH110
    return world["mark"]


def the_workspace(self, world):
    """said: it is this repository | namespaces landlock"""
    return Path(world["repository"], "pyproject.toml").read_text()[:0] + world["mark"]


def what_other_calls_have_in_scratch(self, world):
    """secret: one of its neighbours | landlock"""
    found = [os.open(name, os.O_RDONLY) for name in world["neighbours"] if os.access(name, os.R_OK)]
    if not found:
        raise PermissionError("none is seen")
    return [os.read(each, 100) for each in found]


def watch_what_happens_in_a_folder(self, world):
    """said: what it would be told are names | namespaces seccomp"""
    descriptor = raw(253)
    raw(254, descriptor, world["folder"].encode(), 0x20)
    self.call("touch")  # the host opens a file there
    return world["mark"] if os.read(descriptor, 100) else ""


def into_the_path_of_imports(self, world):
    """secret | namespaces landlock"""
    sys.path.insert(0, world["folder"])
    return __import__("outside").SECRET
