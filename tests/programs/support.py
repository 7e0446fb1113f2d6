"""Shared by the tests of programs: functions that compute, write and know their call, and a person."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_core import Decision, Question
from agent_core.access.grants import Approver
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.contract import said
from tests.kit.desk import VOWELS, Desk, answers
from tests.kit.sources import function_text

NOT_RUN = said("run_program: it is not run").splitlines()[0]
UNCHANGED = said("run_program: it fails").splitlines()[-1]
NOTES = function_text(
    "note(text: str) -> int",
    "Write a line down, and say how many there are.\n\nArgs:\n    text: The line.",
    'with open("out/notes.txt", "a") as file:\n    file.write(text + "\\n")\n'
    'return len(open("out/notes.txt").readlines())',
)
KEYS = function_text(
    "key_of(self, text: str) -> str",
    "Say which key a call has.\n\nArgs:\n    text: Anything.",
    "return self.call_key",
)
KEEP = function_text(
    "keep(path: str, text: str) -> int",
    "Add a line to a file, and say how many characters it has.\n\nArgs:\n    path: The file.\n    text: The line.",
    'with open(path, "a") as file:\n    return file.write(text + "\\n")',
)
PING = '''\
def ping() -> int:
    """Return one."""
    return 1
'''
FILES = {
    "ping.py": PING,
    "letters.py": VOWELS,
    "notes.py": NOTES,
    "keys.py": KEYS,
    "keeping.py": KEEP,
}


@dataclass
class Person:
    """A person who gives every question the same answer, and records the questions."""

    decision: Decision = field(default_factory=lambda: Decision("yes"))
    asked: list[Question] = field(default_factory=list)

    async def __call__(self, question: Question) -> Decision:
        """Record the question and answer it."""
        self.asked.append(question)
        return self.decision


def lay_out(root: Path) -> None:
    """Write the files of a workspace with these functions."""
    (root / "functions").mkdir(parents=True, exist_ok=True)
    (root / "out").mkdir(exist_ok=True)
    for name, text in FILES.items():
        (root / "functions" / name).write_text(text, "utf-8")


async def ready(
    at_desk: OpenDesk, *programs: str, person: Approver | None = None, **flags: Any
) -> Desk:  # Any: settings
    """Return a desk whose model runs these programs, one per turn."""
    script = [
        step
        for code in programs
        for step in (Ask(Wanted("run_program", {"code": code})), Say("Done."))
    ]
    desk = await at_desk([*script, Repeat(Say("Done."))], **flags)
    lay_out(desk.workspace.root)
    await desk.workspace.functions.reload()
    desk.workspace.functions.granting.approver = person
    return desk


async def ran(
    at_desk: OpenDesk, *programs: str, person: Approver | None = None
) -> tuple[list[str], Desk]:
    """Return the results of programs, one run per turn."""
    desk = await ready(at_desk, *programs, person=person)
    told = [answer for _ in programs for answer in answers(await desk.say("Go."))]
    return told, desk


def lines(root: Path, name: str = "notes.txt") -> list[str]:
    """Return the lines that `note` has written, or those of another file."""
    file = root / "out" / name
    return file.read_text("utf-8").splitlines() if file.exists() else []
