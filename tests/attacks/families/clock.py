# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""using time without end"""

import os
import re
import signal
import threading
import time


def spin(self, world):
    """stays | clock"""
    while True:
        pass


def compute_in_c(self, world):
    """stays | clock"""
    return len(str(7 ** (10**8)))


def match_for_ever(self, world):
    """stays | clock"""
    return re.match(r"(a+)+$", "a" * 60 + "b")


def ignore_every_signal(self, world):
    """stays | clock"""
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            continue
    while True:
        pass


def block_every_signal(self, world):
    """stays | clock"""
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        pass


def catch_every_end(self, world):
    """stays | clock"""
    while True:
        try:
            time.sleep(10)
        except BaseException:  # noqa: BLE001
            continue


def sleep_for_ever(self, world):
    """stays | clock"""
    time.sleep(10_000)


def wait_for_oneself(self, world):
    """stays | clock"""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def read_what_never_comes(self, world):
    """stays | clock"""
    return os.read(os.pipe()[0], 1)


def hash_without_end(self, world):
    """stays | clock"""
    import hashlib

    return hashlib.pbkdf2_hmac("sha256", b"x", b"y", 10**9)


def iterate_in_c(self, world):
    """stays | clock"""
    import itertools

    return sum(itertools.repeat(1))


def never_end_the_interpreter(self, world):
    """stays | clock"""

    class Late:
        def __del__(self):
            while True:
                pass

    late = Late()
    del late


def wait_in_a_representation(self, world):
    """stays | clock"""

    class Slow(str):
        def __repr__(self):
            while True:
                pass

    return Slow("x")


def wait_in_the_text_of_an_error(self, world):
    """stays | clock"""

    class Slow(Exception):
        def __str__(self):
            while True:
                pass

    raise Slow


def a_coroutine_that_never_ends(self, world):
    """stays | clock"""
    import asyncio

    return asyncio.run(asyncio.Event().wait())


def use_up_the_processor(self, world):
    """said: more of it than may be | limits

    | ahead leaks: an import has the start-up time of a zygote, and no limit of its own
    """
    from functions.hand import resource

    while resource.getrusage(resource.RUSAGE_SELF).ru_utime < 1.5:
        pass
    return world["mark"]
