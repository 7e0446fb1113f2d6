"""Texts of functions, in the form in which people write them."""

from textwrap import indent


def function_text(head: str, words: str, body: str, *examples: str) -> str:
    """Return a function: its head, its docstring with the examples (each `call → result`), and its body."""
    shown = "".join(f"\n>>> {one.replace(' → ', chr(10), 1)}" for one in examples)
    words += f"\n{shown}" if shown else ""
    docstring = f'"""{words}\n"""' if "\n" in words else f'"""{words}"""'
    kind = "async def " if head.startswith("async ") else "def "
    return (
        f"{kind}{head.removeprefix('async ')}:\n{indent(f'{docstring}{chr(10)}{body}', '    ')}\n"
    )
