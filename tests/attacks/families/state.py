# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""leaving something for the next call"""

import atexit
import builtins
import gc
import json
import os
import random
import signal
import sys
import threading
import time
import types
from pathlib import Path

from functions.hand import state as _state  # noqa: F401 - looked at by the next call


def a_builtin(self, world):
    """next | worker"""
    builtins.sum = lambda _items: 666


def what_writes_json(self, world):
    """next | worker"""
    json.dumps = lambda _value: "forged"


def a_file(self, world):
    """next | worker"""
    Path("left").write_text("x")


def a_hidden_file(self, world):
    """next | worker"""
    Path(".left").write_text("x")


def a_thread(self, world):
    """next | worker"""
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()


def the_environment(self, world):
    """next | worker"""
    os.environ["LEFT"] = "x"


def a_module(self, world):
    """next | worker"""
    sys.modules["left"] = types.ModuleType("left")


def a_finder(self, world):
    """next | worker"""
    sys.meta_path.insert(0, type("Finder", (), {"find_spec": staticmethod(lambda *_names: None)}))


def the_path_of_imports(self, world):
    """next | worker"""
    sys.path.insert(0, ".")


def the_depth_of_recursion(self, world):
    """next | worker"""
    sys.setrecursionlimit(5000)


def a_handler_of_signals(self, world):
    """next | worker"""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def an_alarm(self, world):
    """next | worker"""
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.alarm(100)


def the_mask_of_modes(self, world):
    """next | worker"""
    os.umask(0)


def the_current_folder(self, world):
    """next | worker"""
    os.mkdir("elsewhere")  # noqa: PTH102
    os.chdir("elsewhere")


def the_luck_of_the_draw(self, world):
    """next | worker"""
    random.seed(1)


def the_collector(self, world):
    """next | worker"""
    gc.disable()


def who_looks_on(self, world):
    """next | worker"""
    sys.settrace(lambda *_what: None)


def an_open_descriptor(self, world):
    """next | worker"""
    os.dup(0)


def a_last_word(self, world):
    """apart: the process ends without last words"""
    atexit.register(lambda: Path(world["open_folder"], "late").write_text("x"))
