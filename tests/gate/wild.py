"""Random functions: small bodies of every kind of statement, with several layouts."""

from random import Random

_NAMES = ("a", "b", "c")
_BINARY = (
    "+",
    "-",
    "*",
    "//",
    "%",
    "**",
    "<<",
    "&",
    "|",
    "and",
    "or",
    "<",
    "<=",
    "==",
    "!=",
    "in",
    "is not",
    "not in",
)


def function(luck: Random, name: str = "f") -> str:
    """Return a function of two parameters that soon ends or fails."""
    doc = luck.choice(
        ["", '    """Do a thing.\n\n    >>> f(1, 2)\n    3\n    """\n', "    'ünï'\n"]
    )
    lead = luck.choice(["", "", "async "])
    if luck.random() < 0.1:
        return f"{lead}def {name}(a, b=1): c = a; return {_value(luck, 2)}\n"
    body = "".join(_statement(luck, 2, "    ") for _ in range(luck.randint(1, 4)))
    return f"{lead}def {name}(a: int, b: int = 1, *, c=(0, 1)) -> int:\n{doc}{body}    return {_value(luck, 2)}\n"


def _value(luck: Random, depth: int) -> str:
    if depth == 0 or luck.random() < 0.2:
        return luck.choice(
            [*_NAMES, "0", "1", "2.5", "True", "None", '"ü"', "''", "'x' 'y'", "-3", "[]", "b'x'"]
        )
    one, other, third = (_value(luck, depth - 1) for _ in range(3))
    return luck.choice(
        [
            f"{one} {luck.choice(_BINARY)} {other}",
            f"({one}){luck.choice(['+', '<', '-', '>='])}({other})",
            f"({one}\n        and {other})",
            f"(({one}) if({other})else({third}))",
            f"(not({one}))",
            f"[{one}, {other}]",
            f"[x for x in ({one}, {other}) if(x)]",
            "{" + f"'k': {one}" + "}",
            f"len(str({one}))",
            "f'{a} is {b + 1}'",
            f"(lambda x: x + 1)({one})",
            f"str({one})[1:]",
        ]
    )


def _statement(luck: Random, depth: int, indent: str) -> str:
    inner = indent + luck.choice(["  ", "    "])
    value = _value(luck, 2)
    if depth == 0 or luck.random() < 0.4:
        simple = [
            f"c = {value}",
            f"a += {value}",
            f"return({value})",
            f"raise ValueError({value})",
            "pass",
            "c = d = 1; a = c",
        ]
        return (
            indent
            + luck.choice([*simple, f"assert {value}", f"if {value}: a = 1"])
            + luck.choice(["", "  # note"])
            + "\n"
        )
    block = "".join(_statement(luck, depth - 1, inner) for _ in range(luck.randint(1, 2)))
    heads = [
        f"if({value}):\n{{}}",
        f"if {value}:\n{{}}{indent}else:\n{inner}c = 1\n",
        "for x in range(3):\n{}",
        f"while a is {value}:\n{{}}{inner}break\n",
        f"try:\n{{}}{indent}except TypeError:\n{inner}c = 2\n",
        "def inner(x=1) -> int:\n{}",
        f"with open({value}):\n{{}}",
    ]
    return indent + luck.choice(heads).replace("{}", block)
