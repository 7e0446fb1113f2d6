"""Modules of function code from text, for these tests."""

import hashlib
from textwrap import dedent

from sandbox import Code


def code(module: str, text: str) -> Code:
    """Return one module."""
    text = dedent(text).lstrip("\n")
    return Code(
        module,
        text,
        f"functions/{module.replace('.', '/')}.py",
        hashlib.sha256(text.encode()).hexdigest(),
    )


def modules(**texts: str) -> dict[str, Code]:
    """Return modules by name; `__` in a name stands for the dot of a folder."""
    return {
        name: code(name, text)
        for name, text in ((key.replace("__", "."), each) for key, each in texts.items())
    }
