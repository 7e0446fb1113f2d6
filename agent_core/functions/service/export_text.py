"""The constant files of an exported package: its context, tests and description."""

CONTEXT = '''"""What functions with `self` are given: progress on standard error, a scratch folder, calls."""

import asyncio
import importlib
import inspect
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class Context:
    """Pass one to a function with `self` as its first parameter: `f(Context(), …)`."""

    def __init__(self):
        self._folder = None

    @property
    def scratch(self):
        """A folder that is gone with this context."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory()
        return Path(self._folder.name)

    def progress(self, done, total=None, note=""):
        """Tell how far it is."""
        print(f"{done}/{total} {note}" if total else f"{done} {note}", file=sys.stderr)

    def call(self, function, /, **arguments):
        """What another function of this package gives for these arguments."""
        found = getattr(importlib.import_module(__package__), function)
        takes_self = next(iter(inspect.signature(found).parameters), "") == "self"
        value = found(self, **arguments) if takes_self else found(**arguments)
        if not inspect.isawaitable(value):
            return value
        with ThreadPoolExecutor(1) as apart:  # whoever calls may itself be in a loop
            return apart.submit(asyncio.run, value).result()
'''

TESTS = '''"""Every example in the docstrings, run and compared: `python -m unittest` or `python -m pytest`."""

import ast
import asyncio
import contextlib
import doctest
import functools
import importlib
import inspect
import io
import math
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
FUNCTIONS = {functions}
PARSER, CHECKER = doctest.DocTestParser(), doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Examples(unittest.TestCase):
    def test_every_example_gives_what_it_says(self):
        for place in FUNCTIONS:
            module, _, name = place.partition(":")
            names = namespace(importlib.import_module(module))
            for example in PARSER.get_examples(inspect.getdoc(names[name]) or ""):
                if example.options.get(doctest.SKIP):
                    continue
                with self.subTest(function=name, example=example.source.strip()):
                    self.assertTrue(*compared(example, names))


def namespace(module):
    names = dict(vars(module))
    for name, value in vars(module).items():
        if inspect.isfunction(value) and next(iter(inspect.signature(value).parameters), "") == "self":
            context = importlib.import_module("{package}._context").Context()
            names[name] = functools.wraps(value)(functools.partial(value, context))
    return names


def compared(example, names):
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            value = run(example.source, names)
    except Exception as error:
        got = f"{{type(error).__name__}}: {{error}}\\n"
        return example.exc_msg is not None and agrees(example.exc_msg, got), got
    got = printed.getvalue() + (f"{{value!r}}\\n" if value is not None else "")
    return example.exc_msg is None and (not example.want or agrees(example.want, got)), got


def run(source, names):
    try:
        code = compile(source.strip(), "<example>", "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        exec(compile(source, "<example>", "exec"), names)
        return None
    value = eval(code, names)
    return asyncio.run(awaited(value)) if inspect.isawaitable(value) else value


async def awaited(value):
    while inspect.isawaitable(value):
        value = await value
    return value


def agrees(want, got):
    if CHECKER.check_output(want, got, FLAGS):
        return True
    try:
        return same(ast.literal_eval(want.strip()), ast.literal_eval(got.strip()))
    except (ValueError, SyntaxError):
        return False


def same(one, other):
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or one != one and other != other
    if isinstance(one, (list, tuple)) and type(one) is type(other) and len(one) == len(other):
        return all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return all(same(value, other[key]) for key, value in one.items())
    return type(one) is type(other) and one == other


if __name__ == "__main__":
    unittest.main()
'''

PROJECT = """[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1.0"
description = "{count} functions, exported from a Knapper workspace."
readme = "README.md"
requires-python = ">=3.11"
dependencies = {dependencies}

[tool.setuptools.packages.find]
include = ["{package}*"]
"""

README = """# {package}

{count} functions, exported from a Knapper workspace. Plain Python: nothing of Knapper is needed.

```python
from {package} import {first}
```

The examples in the docstrings are the tests: `python -m unittest` (or `python -m pytest`) in this folder.
{context}
## Functions

{functions}
"""

WITH_CONTEXT = """
Functions with `self` as first parameter get a context, `{package}.Context()`: it shows progress, has a scratch
folder, and calls other functions of the package.
"""
