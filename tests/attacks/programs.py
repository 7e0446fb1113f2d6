"""Unlikely programs: a grammar of hostile and broken Python, generated from a seed.

`program(seed)` is the text of a program; `module(seed)` is a whole file, which may not be valid Python.
"""

import random
from collections.abc import Callable
from typing import Final

HEAD: Final = "import ctypes, gc, json, os, signal, sys, threading, time\nLIBC = ctypes.CDLL(None, use_errno=True)\n"
_NUMBERS: Final = [
    "0",
    "1",
    "-1",
    "3",
    "2**31",
    "2**63",
    "10**400",
    "float('nan')",
    "1e308",
    "True",
    "os.getppid()",
]
_TEXTS: Final = [
    "''", "'/etc/passwd'", "'\\x1b[2J\\x07'", "'\\ud800'", "'x' * 100_000", "b'\\xff' * 9", "'../' * 40",
    "'{0}%s'",
]  # fmt: skip
_VALUES: Final = [
    *_NUMBERS, *_TEXTS, "object()", "(each for each in 'ab')", "{1: {2: {3: ()}}}",
    "{i * (2**61 - 1) for i in range(3000)}", "[[]] * 1000", "type('T', (dict,), {'__reduce__': 1})()",
    "lambda: 1", "sys", "10**5000", "type('R', (), {'__repr__': lambda self: 1 / 0})()",
]  # fmt: skip
_CALLS: Final = [
    "chmod",
    "kill",
    "unlink",
    "rename",
    "open",
    "truncate",
    "chown",
    "dup2",
    "close",
    "read",
]
_CALLS_OF_OS: Final = [
    *(
        f"os.{name}"
        for name in (
            "listdir",
            "stat",
            "unlink",
            "mkdir",
            "rmdir",
            "chdir",
            "open",
            "readlink",
            "system",
            "abort",
        )
    ),
    *(
        "os.fork",
        "os.getpid",
        "os.close",
        "os.pipe",
        "os.setsid",
        "os.cpu_count",
        "os.urandom",
        "os.nice",
        "os.umask",
    ),
    *(
        "signal.raise_signal",
        "signal.alarm",
        "sys.setrecursionlimit",
        "sys.exit",
        "gc.get_objects",
        "time.sleep",
    ),
]
_FRAMES: Final = [
    '{"kind":"returned","value":42,"shown":"42"}',
    '{"kind":"raised","type":"E","message":"\\u001b[2J","frames":[["functions/x.py",1,"f",[]]]}',
    '{"kind":"ready"}',
    '{"kind":"module","module":"../../x"}',
    '{"kind":"request","name":"call","arguments":{"function":"run","arguments":{"program":"1"}}}',
    '{"kind":"request","name":"fetch","arguments":{"url":"file:///etc/passwd"}}',
    '{"kind":"refused","reason":"\\u202e' + "x" * 3000 + '"}',
    '{"kind":"loaded"}',
    "[]",
    "{",
    "NaN",
]


class Drawing:
    """The random choices of one program."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)

    def value(self) -> str:
        """Return an expression."""
        return self.luck.choice(_VALUES)

    def line(self) -> str:
        """Return a statement."""
        weights = [weight for weight, _make in _STATEMENTS]
        ((_weight, make),) = self.luck.choices(_STATEMENTS, weights)
        return make(self)

    def call(self) -> str:
        """Return a system call by a random number."""
        arguments = ", ".join(
            self.luck.choice(["0", "1", "3", "-1", "-100", "b'/etc/passwd'", "0x10000"])
            for _n in range(4)
        )
        return f"LIBC.syscall({self.luck.randrange(0, 470)}, {arguments})"

    def frame(self) -> str:
        """Return bytes for the channel, a well-formed answer or nearly one."""
        body = self.luck.choice(_FRAMES)
        size = (
            len(body)
            if self.luck.random() < 0.7
            else self.luck.randrange(1 << self.luck.choice([4, 16, 32]))
        )
        body = body if self.luck.random() < 0.8 else body[: self.luck.randrange(len(body) + 1)]
        return f"os.write(3, ({size}).to_bytes(4, 'big') + {body!r}.encode())"

    def block(self, head: str) -> str:
        """Return statements below a head."""
        inside = [self.line().replace("\n", "\n    ") for _line in range(self.luck.randint(1, 3))]
        return head + "\n    " + "\n    ".join(inside)


def _deep(drawing: Drawing) -> str:
    depth = drawing.luck.choice([50, 500, 5000, 100_000])
    around = drawing.luck.choice(["[result]", "{1: result}", "(result,)"])
    return f"result = None\nfor _ in range({depth}):\n    result = {around}"


def _thread(drawing: Drawing) -> str:
    count = drawing.luck.choice([1, 5, 200])
    return f"for _ in range({count}):\n    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"


_FLOODS: Final = (
    "print('x' * 1_000_000)",
    "while len(os.listdir('.')) < 300: open(str(time.monotonic_ns()), 'w').write('x' * 1000)",
    "sys.stderr.write('\\x1b]0;title\\x07' * 1000)",
    "result = ['x' * 1000] * 5000",
    "kept = bytearray(1 << 31)",
    "[os.open('/dev/null', 0) for _ in range(100)]",
    "raise Exception('y' * 3_000_000)",
)
_ENDS: Final = (
    "os._exit(0)",
    "os._exit(7)",
    "ctypes.string_at(0)",
    "os.close(3)",
    "os.abort()",
    "while True: pass",
)
_STATEMENTS: Final[list[tuple[int, Callable[[Drawing], str]]]] = [
    (30, Drawing.call),
    (
        20,
        lambda drawing: (
            f"{drawing.luck.choice(_CALLS_OF_OS)}({drawing.luck.choice(['', drawing.value()])})"
        ),
    ),
    (10, lambda drawing: f"LIBC.{drawing.luck.choice(_CALLS)}({drawing.luck.randrange(9)}, 0, 0)"),
    (12, Drawing.frame),
    (12, lambda drawing: f"result = {drawing.value()}"),
    (6, lambda drawing: f"raise ValueError({drawing.value()})"),
    (5, _deep),
    (5, lambda drawing: drawing.luck.choice(_FLOODS)),
    (3, _thread),
    (1, lambda drawing: drawing.luck.choice(_ENDS)),
    (8, lambda drawing: drawing.block("try:") + "\nexcept BaseException:\n    pass"),
    (6, lambda drawing: drawing.block("for _ in range(3):")),
    (3, lambda drawing: drawing.block("def later():") + "\nlater()"),
    (3, lambda drawing: drawing.block("class Made:")),
    (
        2,
        lambda drawing: (
            f"setattr(__import__('builtins'), {drawing.luck.choice(['sum', 'print', 'open'])!r}, None)"
        ),
    ),
    (2, lambda _drawing: "sys.modules.clear()"),
    (2, lambda _drawing: "sys.meta_path[:] = []"),
]


def program(seed: int) -> str:
    """Return one program; it leaves its result in `result`."""
    drawing = Drawing(seed)
    text = HEAD + "\n".join(drawing.line() for _line in range(drawing.luck.randint(1, 7)))
    return text if drawing.luck.random() < 0.9 else _broken(text, drawing.luck)


def module(seed: int) -> bytes:
    """Return one file of a workspace; more than half of the files have a function `made_<seed>`."""
    drawing = Drawing(seed)
    lines = [drawing.line() for _line in range(drawing.luck.randint(1, 3))]
    body = "\n".join([*lines, "return result"]).replace("\n", "\n    ")
    text = f'{HEAD}\ndef made_{seed}() -> object:\n    """Do what was drawn."""\n    result = None\n    {body}\n'
    if drawing.luck.random() < 0.3:
        text = _broken(text, drawing.luck)
    data = text.encode("utf-8", "surrogatepass")
    return (
        data
        if drawing.luck.random() < 0.9
        else data[:50] + bytes(drawing.luck.randrange(256) for _n in range(20)) + data[50:]
    )


def _broken(text: str, luck: random.Random) -> str:
    letters = list(text)
    for _change in range(luck.randint(1, 20)):
        letters[luck.randrange(len(letters))] = luck.choice("()[]{}:=\\'\"\n\t#\0é@")
    return "".join(letters)
