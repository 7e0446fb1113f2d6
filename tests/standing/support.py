"""Functions that fail on demand, and their callers."""

from pathlib import Path
from typing import Any

from tests.conftest import OpenDesk
from tests.kit import Repeat, Say, Script, Wanted
from tests.kit.desk import Desk
from tests.kit.sources import function_text
from tests.kit.steps import Predicate

PART = function_text(
    "part(whole: int, among: int) -> float",
    "Share something.\n\nArgs:\n    whole: What there is.\n    among: How many share it.\n\nRaises:\n    "
    "ValueError: nobody can share a negative whole.",
    'if whole < 0:\n    raise UnicodeError("negative")\nreturn whole / among',
    "part(6, 3) → 2.0",
    "part(9, 2) → 4.5",
    "part(0, 2) → 0.0",
)
PART_OTHERWISE = PART.replace("return whole / among", "return 1 * whole / among")
CALLERS = "from functions.parts import part\n\n\n" + "\n\n".join(
    [
        function_text(
            "by_import(whole: int) -> float",
            "Share among two.\n\nArgs:\n    whole: What there is.",
            "return part(whole, 2)",
        ),
        function_text(
            "by_self(self, whole: int) -> float",
            "Share among four.\n\nArgs:\n    whole: What there is.",
            'return self.call("part", whole=whole, among=4)',
        ),
    ]
)
FILES = {"parts.py": PART, "users.py": CALLERS}
FEW = {
    "standing__quarantine_failures": 3,
    "standing__trusted_calls": 3,
    "standing__trusted_days": 0,
}


def part(whole: int, among: int) -> Wanted:
    """Return a call of it: `among=0` fails, a negative `whole` raises the documented error."""
    return Wanted("part", {"whole": whole, "among": among})


def failing(times: int) -> list[Wanted]:
    """Return this many failing calls, each with other arguments."""
    return [part(number + 1, 0) for number in range(times)]


def hides(name: str) -> Predicate:
    """Expect the request not to show this function."""
    return lambda seen: f"`{name}` is shown" if name in seen.functions else None


async def workplace(at_desk: OpenDesk, script: Script, **flags: Any) -> Desk:  # Any: settings
    """Return a desk with the functions above and rules with small numbers."""
    desk = await at_desk([*script, Repeat(Say("Done."))], **{**FEW, **flags})
    for name, text in FILES.items():
        desk.put(name, text)
    await desk.workspace.functions.reload()
    return desk


async def standing_of(desk: Desk, name: str = "part") -> str:
    """Return the function's current standing."""
    rows = (await desk.workspace.functions.list()).functions
    return str(next(row.standing for row in rows if row.name == name))


def put(root: Path, **settings: str) -> Path:
    """Write the function and the rules as files, for subprocesses."""
    (root / "functions").mkdir(exist_ok=True)
    (root / "functions" / "parts.py").write_text(PART, "utf-8")
    rules = {"quarantine_failures": "3", **settings}
    lines = [f"{key} = {value}" for key, value in rules.items()]
    (root / "knapper.toml").write_text("\n".join(["[standing]", *lines, ""]), "utf-8")
    return root
