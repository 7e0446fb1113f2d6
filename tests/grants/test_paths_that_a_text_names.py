"""What a text shows of the paths that it opens, compared with what the worker opens: never another, never all."""

import random
from pathlib import Path

import pytest

from agent_core.access.grants import Decision
from agent_core.access.grants.value import UNSAID, covered
from agent_core.functions.gate.capability import needs_of_text
from tests.functions.support import Room
from tests.grants.support import AGENT, Human, human
from tests.kit.drawing import sampled

_MODULE = '''\
import glob
import os
from pathlib import Path


class Shelf:
    """A folder with files."""

    def __init__(self, folder: str) -> None:
        self.root = Path(folder)

    def files(self) -> list[Path]:
        return sorted(self.root.iterdir())


def _root_of(folder: str) -> Path:
    return Path(folder)


def _files_of(folder: str) -> list[Path]:
    return sorted(Path(folder).glob("*.txt"))


def use_files(folder: str, part: str) -> list[str]:
    """Use the files of a folder, and return their paths.

    Args:
        folder: The folder.
        part: The name of the folder in the one around it.
    """
    used = []
    {lines}
    return sorted(used)
'''
_ROOTS = (
    "Path(folder)",
    "Path('data/in')",
    "Path('data') / 'in'",
    "Path('data') / part",
    "Path('data').joinpath(part)",
    "Path(f'data/{part}')",
    "Path(f'./{folder}')",
    "Path('./') / 'data' / part",
    "Path(os.path.join('data', part))",
    "Path('data', part).resolve()",
    "Path(os.getcwd()) / folder",
    "Path('/').joinpath(os.getcwd(), folder)",
    "_root_of(folder)",
    "Shelf(folder).root",
)
_LISTINGS = (
    "root.glob('*.txt')",
    "sorted(root.glob('*.txt'))",
    "root.iterdir()",
    "list(root.rglob('*.txt'))",
    "[found for found in root.iterdir() if found.is_file()]",
    "[root / name for name in os.listdir(root)]",
    "[Path(entry) for entry in os.scandir(root)]",
    "[Path(name) for name in glob.glob(f'{root}/*.txt')]",
    "[Path(top) / name for top, _, names in os.walk(root) for name in names]",
    "[root / 'a.txt', root / 'b.txt']",
    "_files_of(str(root))",
    "Shelf(str(root)).files()",
)
_LOOPS = (
    "for path in {listing}:\n    {act}\n    used.append(str(path))",
    "for number, path in enumerate({listing}):\n    {act}\n    used.append(str(path))",
    "paths = {listing}\nfor path in paths:\n    {act}\n    used.append(str(path))",
    "for path in (found := sorted({listing})):\n    {act}\n    used.append(str(path))",
    "path = max({listing})\n{act}\nused.append(str(path))",
    "path = next(iter({listing}))\n{act}\nused.append(str(path))",
    "used = [str(path) for path in {listing} if ({act}) is not None]",
    "def use(path: Path) -> None:\n    {act}\n    used.append(str(path))\nfor one in {listing}:\n    use(one)",
    "first, *others = sorted({listing})\nfor path in others:\n    {act}\n    used.append(str(path))",
)
_ACTS = (
    ("read", "path.read_text()"),
    ("read", "open(path).read()"),
    ("read", "path.open().read()"),
    ("read", "path.stat()"),
    ("read", "os.stat(path)"),
    ("write", "path.write_text('new')"),
    ("write", "open(path, 'w').close() or 1"),
    ("write", "path.rename(path.with_suffix('.old'))"),
)


def _program(seed: int) -> tuple[str, str]:
    """Return a module with a function that uses files, and what it does with them."""
    draw = random.Random(seed)
    kind, act = draw.choice(_ACTS)
    loop = draw.choice(_LOOPS).format(listing=draw.choice(_LISTINGS), act=act)
    lines = f"root = {draw.choice(_ROOTS)}\n{loop}".replace("\n", "\n    ")
    return _MODULE.replace("{lines}", lines), kind


@pytest.mark.sampled
@pytest.mark.parametrize("seed", sampled(range(400), 20))
async def test_what_a_text_names_is_what_the_worker_opens_and_the_rest_is_asked_at_the_call(
    here: Room, seed: int
) -> None:
    text, kind = _program(seed)
    folder = here.root / "data/in"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(name)
    await here.save(text)
    here.shop.granting.approver = who = Human([Decision("yes", is_wide=True)])
    report = await here.shop.call("use_files", {"folder": "data/in", "part": "in"})
    assert report.outcome == "returned", report
    assert isinstance(report.value, list)
    opened = {str(Path(here.root / path).relative_to(here.root)) for path in report.value}
    assert opened <= {"data/in/a.txt", "data/in/b.txt"}
    assert opened
    needs = needs_of_text(text)
    named = {item for item in (*needs.read, *needs.write) if item != UNSAID}
    assert named <= {"data/", "data/in", "data/in/", "data/in/a.txt", "data/in/b.txt"}, text
    if needs.items(
        kind
    ):  # a method of a value that may be no path, such as `rename`, shows nothing
        assert all(needs.gives(kind, path) or UNSAID in needs.items(kind) for path in opened), text
    asked = [
        item for question in who.asked for item in (*question.missing.read, *question.missing.write)
    ]
    assert all(covered("read", item, ["data/"]) for item in asked), asked
    assert len(asked) <= 4, asked


async def test_a_folder_by_pathlib_joins_unasked_and_is_asked_for_once_at_the_call(
    here: Room,
) -> None:
    text = """from pathlib import Path


def read_all(folder: str) -> list[str]:
    \"\"\"Read the text of the files of a folder, in the order of their names.

    Args:
        folder: The folder with the files.
    \"\"\"
    return [path.read_text() for path in sorted(Path(folder).glob("*"))]
"""
    here.shop.granting.approver = who = human("once")
    made = await here.shop.create("read_all", text, "readers", author=AGENT)
    assert made.admitted, made.problems
    assert who.asked == []
    report = await here.shop.call("read_all", {"folder": "data"})
    assert report.value == ["1", "2", "3"]
    assert [question.missing.sentences() for question in who.asked] == [["read data/"]]
