# Attackers write neither types nor paths by the book; these modules are data that workers run.
# mypy: ignore-errors
"""Attempts on the network: reach a listener of the host by every family of socket, or listen."""

import ctypes
import os
import socket
import urllib.request


def connect_by_tcp(world: dict) -> str:
    socket.create_connection(("127.0.0.1", world["tcp"]), 1).sendall(b"hello")
    return world["mark"]


def connect_by_tcp_in_the_new_family(world: dict) -> str:
    socket.create_connection(("::1", world["tcp"]), 1).sendall(b"hello")
    return world["mark"]


def send_by_udp(world: dict) -> str:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"hello", ("127.0.0.1", world["udp"]))
    return world["mark"]


def connect_to_a_path(world: dict) -> str:
    socket.socket(socket.AF_UNIX).connect(world["unix"])
    return world["mark"]


def connect_to_an_abstract_name(world: dict) -> str:
    socket.socket(socket.AF_UNIX).connect("\0" + world["abstract"])
    return world["mark"]


def send_from_a_pair_to_a_path(world: dict) -> str:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    pair[0].sendto(b"hello", world["unix_datagram"])
    return world["mark"]


def send_from_a_stream_pair_to_a_path(world: dict) -> str:
    pair = socket.socketpair()
    pair[0].sendto(b"hello", world["unix_datagram"])
    return world["mark"]


def listen_by_tcp(world: dict) -> str:
    socket.create_server(("127.0.0.1", 0))
    return world["mark"]


def open_a_raw_socket(world: dict) -> str:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
    return world["mark"]


def open_netlink(world: dict) -> str:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    return world["mark"]


def open_vsock(world: dict) -> str:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    return world["mark"]


def ask_for_a_name(world: dict) -> str:
    return str(socket.getaddrinfo(world["mark"] + ".example.org", 80)) + world["mark"]


def fetch_a_page(world: dict) -> str:
    return urllib.request.urlopen(f"http://127.0.0.1:{world['tcp']}/", timeout=1).read().decode() + world["mark"]


def fetch_the_clouds_metadata(world: dict) -> str:
    return urllib.request.urlopen("http://169.254.169.254/", timeout=1).read().decode() + world["mark"]


def pass_a_descriptor_to_the_host(world: dict) -> str:
    host = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=3)
    socket.send_fds(host, [b"x"], [0])
    return world["mark"]


def connect_by_the_raw_call(world: dict) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(41, 2, 1, 0) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return world["mark"]
