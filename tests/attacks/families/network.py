# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""using the network and every other socket"""

import os
import socket
import urllib.request

from functions.hand import raw


def connect_by_tcp(self, world):
    """heard | namespaces landlock seccomp"""
    socket.create_connection(("127.0.0.1", world["tcp"]), 1).sendall(b"hello")


def connect_by_tcp_of_the_new_kind(self, world):
    """heard | namespaces landlock seccomp"""
    socket.create_connection(("::1", world["tcp6"]), 1).sendall(b"hello")


def connect_by_a_mapped_address(self, world):
    """heard | namespaces landlock seccomp"""
    socket.create_connection(("::ffff:127.0.0.1", world["tcp"]), 1).sendall(b"hello")


def connect_to_the_address_of_none(self, world):
    """heard | namespaces landlock seccomp"""
    socket.create_connection(("0.0.0.0", world["tcp"]), 1).sendall(b"hello")


def connect_fast(self, world):
    """heard | namespaces seccomp"""
    one = socket.socket()
    one.sendto(b"hello", 0x20000000, ("127.0.0.1", world["tcp"]))


def connect_by_several_paths(self, world):
    """heard | namespaces seccomp"""
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    one.connect(("127.0.0.1", world["tcp"]))


def send_by_udp(self, world):
    """heard | namespaces seccomp"""
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"hello", ("127.0.0.1", world["udp"]))


def send_by_udp_in_many(self, world):
    """heard | namespaces seccomp"""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.connect(("127.0.0.1", world["udp"]))
    one.sendmsg([b"hello"])


def connect_to_a_path(self, world):
    """heard | namespaces seccomp"""
    socket.socket(socket.AF_UNIX).connect(world["unix"])


def connect_to_an_abstract_name(self, world):
    """heard | namespaces landlock seccomp"""
    socket.socket(socket.AF_UNIX).connect("\0" + world["abstract"])


def send_from_a_pair_to_a_path(self, world):
    """heard | namespaces seccomp"""
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"hello", world["unix_datagram"])


def listen_by_tcp(self, world):
    """worker: it listens | landlock seccomp"""
    server = socket.create_server(("127.0.0.1", 0))
    self.call("look", at="net/tcp", has=f":{server.getsockname()[1]:04X} 00000000:0000 0A")


def listen_to_an_abstract_name(self, world):
    """worker: it listens | seccomp"""
    server = socket.socket(socket.AF_UNIX)
    server.bind("\0listens-" + world["mark"])
    self.call("look", at="net/unix", has="listens-" + world["mark"])


def a_raw_socket(self, world):
    """said: what it hears is not looked at | seccomp privileges"""
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
    return world["mark"]


def a_socket_that_hears_all(self, world):
    """said: what it hears is not looked at | seccomp privileges"""
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300)
    return world["mark"]


def netlink(self, world):
    """said: it is not used | seccomp"""
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    return world["mark"]


def the_kernels_cipher(self, world):
    """apart: kernels are built without it"""
    socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)
    return world["mark"]


def the_host_of_a_virtual_machine(self, world):
    """said: it is not used | seccomp"""
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    return world["mark"]


def ask_for_a_name(self, world):
    """heard | namespaces seccomp"""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # as a resolver would
    one.sendto(world["mark"].encode(), ("127.0.0.1", world["udp"]))
    socket.getaddrinfo(world["mark"] + ".example.org", 80)


def fetch_a_page(self, world):
    """apart: it goes to the host, which fetches only what is granted (tests/broker)"""
    urllib.request.urlopen(f"http://127.0.0.1:{world['tcp']}/", timeout=0.2)


def fetch_by_a_decimal_address(self, world):
    """apart: it goes to the host, which fetches only what is granted (tests/broker)"""
    urllib.request.urlopen(f"http://2130706433:{world['tcp']}/", timeout=0.2)


def fetch_by_asyncio(self, world):
    """apart: it is refused by word, in the worker; the sockets that lie below are other rows"""
    import asyncio

    asyncio.run(asyncio.wait_for(asyncio.open_connection("127.0.0.1", world["tcp"]), 9))


def pass_a_descriptor_to_the_host(self, world):
    """said: the host reads bytes and takes no descriptors | seccomp"""
    socket.send_fds(
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=os.dup(3)), [b""], [0]
    )
    return world["mark"]


def take_a_descriptor_from_another(self, world):
    """said: nobody sends one | seccomp"""
    one, other = socket.socketpair()
    one.send(b"x")
    other.recvmsg(10, 100)
    return world["mark"]


def by_the_raw_call(self, world):
    """said: it is not used | seccomp"""
    raw(41, 2, 1, 0)
    return world["mark"]


def type_into_the_hosts_terminal(self, world):
    """heard | namespaces landlock seccomp privileges"""
    from functions.hand import fcntl

    terminal = os.open(world["terminal"], os.O_RDWR | os.O_NOCTTY)
    for letter in b"x\n":
        fcntl.ioctl(terminal, 0x5412, bytes([letter]))


def print_on_the_hosts_terminal(self, world):
    """heard | namespaces landlock"""
    os.write(os.open(world["terminal"], os.O_WRONLY | os.O_NOCTTY), b"\x1b[2J")
