# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""making returned, raised and represented values act in the host"""

import math
import os

STRIKE = "open({!r}, 'w').write('x')"


class _Reduces:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return exec, (STRIKE.format(self.path),)


def a_pickle_in_a_tag(self, world):
    """changed | reader"""
    import json
    import pickle
    from base64 import b64encode

    text = b64encode(pickle.dumps(_Reduces(world["open_folder"] + "/struck"))).decode()
    body = json.dumps(
        {"kind": "returned", "shown": "", "value": {"$": "pickle", "v": text}}
    ).encode()
    os.write(3, len(body).to_bytes(4, "big") + body)
    os._exit(0)


def a_pickle_in_a_reply(self, world):
    """changed | reader"""
    import pickle

    body = pickle.dumps(_Reduces(world["open_folder"] + "/struck"))
    os.write(3, len(body).to_bytes(4, "big") + body)
    os._exit(0)


def a_program_in_a_representation(self, world):
    """changed | reader"""

    class Acts(str):
        def __repr__(self):
            return STRIKE.format(world["open_folder"] + "/struck")

    return Acts("x")


def a_template_in_the_text_of_an_error(self, world):
    """apart: nothing in the host formats what a worker says"""
    raise ValueError("{0.__class__.__init__.__globals__}")


def a_template_of_the_old_kind(self, world):
    """apart: nothing in the host formats what a worker says"""
    raise ValueError("%s%n%(x)s{}{x}$x")


def what_explodes_when_it_is_shown(self, world):
    """apart: it explodes in the worker, which tells of it"""

    class Explodes:
        def __repr__(self):
            raise SystemExit(3)

    return Explodes()


def what_explodes_when_it_is_raised(self, world):
    """apart: it explodes in the worker, which tells of it"""

    class Bad(BaseException):
        def __str__(self):
            raise KeyboardInterrupt

    raise Bad


def numbers_that_are_none(self, world):
    """apart: they cross as themselves, tagged"""
    return [math.nan, math.inf, -math.inf, 10**4000]


def leave_by_the_door(self, world):
    """apart: a process can always end itself; the host goes on"""
    raise SystemExit(world["mark"][:0])


def interrupt_as_if_by_hand(self, world):
    """apart: it interrupts the worker alone"""
    raise KeyboardInterrupt


def an_error_within_an_error_without_end(self, world):
    """apart: a chain is told as its last link"""
    error = ValueError("0")
    for number in range(10_000):
        following = ValueError(str(number))
        following.__cause__, error = error, following
    raise error
