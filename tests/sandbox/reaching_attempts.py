# Function code that tries to exceed its grants; a worker runs it, so it is data here.
# mypy: ignore-errors
# ruff: noqa: PTH101, PTH103, PTH104, PTH105, PTH108, PTH116, PTH123, PTH208, PTH211, SIM115
"""`in` and `one` are granted for reading, `out` and `two` for writing; each attempt says "got in" if it worked."""

import ctypes
import mmap
import os
import shutil
import socket

_RENAMEAT2, _OPENAT2, _SYMLINKAT, _LINKAT = 316, 437, 266, 265


def read_by_dots(root):
    return open(f"{root}/in/../closed/secret").read()


def read_by_dots_from_a_descriptor(root):
    folder = os.open(f"{root}/in", os.O_RDONLY)
    return os.read(os.open("../closed/secret", os.O_RDONLY, dir_fd=folder), 100).decode()


def read_by_dots_from_the_current_folder(root):
    os.chdir(f"{root}/out")
    return open("../closed/secret").read()


def read_through_a_link_that_leaves(root):
    return open(f"{root}/in/link_out").read()


def read_through_a_linked_folder(root):
    return open(f"{root}/in/folder_out/secret").read()


def list_what_lies_around(root):
    return "got in" if "closed" in os.listdir(root) else ""


def read_beside_a_granted_file(root):
    return open(f"{root}/beside/kept").read()


def open_beneath_by_another_call(root):
    how = (ctypes.c_uint64 * 3)(0, 0, 0)
    number = ctypes.CDLL(None, use_errno=True).syscall(
        _OPENAT2, -100, f"{root}/closed/secret".encode(), how, 24
    )
    return os.read(number, 100).decode()


def write_where_only_reading_is_granted(root):
    open(f"{root}/in/a.csv", "w").write("x")


def write_a_file_that_may_only_be_read(root):
    open(f"{root}/one", "a").write("x")


def make_a_file_where_only_reading_is_granted(root):
    open(f"{root}/in/new", "x").write("x")


def delete_where_only_reading_is_granted(root):
    os.unlink(f"{root}/in/a.csv")


def truncate_where_only_reading_is_granted(root):
    os.truncate(f"{root}/in/a.csv", 0)


def write_beside(root):
    open(f"{root}/out/../beside/new", "w").write("x")


def write_through_a_link_that_leaves(root):
    open(f"{root}/out/link_out", "w").write("x")


def make_a_file_through_a_linked_folder(root):
    open(f"{root}/out/folder_out/new", "w").write("x")


def plant_a_link(root):
    os.symlink(f"{root}/closed/secret", f"{root}/out/planted")
    return open(f"{root}/out/planted").read()


def plant_a_link_by_another_call(root):
    ctypes.CDLL(None).syscall(
        _SYMLINKAT, f"{root}/closed/secret".encode(), -100, f"{root}/out/planted".encode()
    )
    return open(f"{root}/out/planted").read()


def plant_a_second_name_for_what_may_be_read(root):
    os.link(f"{root}/in/a.csv", f"{root}/out/second")
    open(f"{root}/out/second", "w").write("x")


def plant_a_second_name_for_a_secret(root):
    os.link(f"{root}/closed/secret", f"{root}/out/second")
    return open(f"{root}/out/second").read()


def plant_a_second_name_by_another_call(root):
    libc = ctypes.CDLL(None)
    libc.syscall(
        _LINKAT, -100, f"{root}/closed/secret".encode(), -100, f"{root}/out/second".encode(), 0
    )
    return open(f"{root}/out/second").read()


def move_a_secret_in(root):
    os.rename(f"{root}/closed/secret", f"{root}/out/secret")
    return open(f"{root}/out/secret").read()


def move_what_may_be_read_in(root):
    os.rename(f"{root}/in/a.csv", f"{root}/out/a.csv")


def move_something_out(root):
    os.rename(f"{root}/out/kept", f"{root}/beside/new")


def move_over_what_is_there(root):
    os.replace(f"{root}/out/kept", f"{root}/in/a.csv")


def exchange_two_files(root):
    one, other = f"{root}/out/kept".encode(), f"{root}/in/a.csv".encode()
    return "got in" if ctypes.CDLL(None).syscall(_RENAMEAT2, -100, one, -100, other, 2) == 0 else ""


def exchange_two_folders(root):
    one, other = f"{root}/out/sub".encode(), f"{root}/closed".encode()
    return "got in" if ctypes.CDLL(None).syscall(_RENAMEAT2, -100, one, -100, other, 2) == 0 else ""


def move_the_granted_folder_itself(root):
    os.rename(f"{root}/out", f"{root}/beside/out")


def remove_the_granted_folder_itself(root):
    shutil.rmtree(f"{root}/out")


def replace_a_granted_file_by_a_link(root):
    os.replace(f"{root}/out/link_out", f"{root}/two")
    return open(f"{root}/two").read()


def move_a_link_and_read_through_it(root):
    os.rename(f"{root}/out/link_out", f"{root}/out/moved_out")
    return open(f"{root}/out/moved_out").read()


def make_a_pipe(root):
    os.mkfifo(f"{root}/out/pipe")


def make_a_device(root):
    os.mknod(f"{root}/out/device", 0o020666, os.makedev(1, 1))


def make_a_socket(root):
    socket.socket(socket.AF_UNIX).bind(f"{root}/out/socket")


def make_a_program_that_runs_as_its_owner(root):
    os.close(os.open(f"{root}/out/program", os.O_CREAT | os.O_WRONLY, 0o6755))


def make_what_is_there_a_program_that_runs_as_its_owner(root):
    os.chmod(f"{root}/out/kept", 0o4755)


def give_a_file_away(root):
    os.chown(f"{root}/out/kept", 12345, 12345)
    return "got in" if os.stat(f"{root}/out/kept").st_uid == 12345 else ""


def run_what_was_written(root):
    with open(f"{root}/out/code", "wb") as file:
        file.write(b"\xc3" * 4096)
    with open(f"{root}/out/code", "rb") as file:
        mmap.mmap(file.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    return "got in"


def unmount_what_is_in_the_way(root):
    return "got in" if ctypes.CDLL(None).umount2(f"{root}/in".encode(), 2) == 0 else ""


def mount_something_else(root):
    done = ctypes.CDLL(None).mount(b"/", f"{root}/out".encode(), b"", 4096, None)
    return "got in" if done == 0 else ""


def change_the_mount(root):
    attributes = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
    done = ctypes.CDLL(None).syscall(442, -100, f"{root}/in".encode(), 0, attributes, 32)
    return "got in" if done == 0 else ""


def climb_out_of_a_moved_folder(root):
    os.makedirs(f"{root}/out/a/b")
    folder = os.open(f"{root}/out/a/b", os.O_RDONLY)
    os.rename(f"{root}/out/a/b", f"{root}/out/b")
    return os.read(os.open("../../closed/secret", os.O_RDONLY, dir_fd=folder), 100).decode()
