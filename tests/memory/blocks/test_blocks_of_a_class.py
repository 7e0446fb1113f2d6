"""Blocks and memory classes as user code sees them, and their methods as the model sees them."""

import copy
import importlib
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent_core import Workspace
from agent_core.base.errors import SettingsError, UsageError
from agent_core.memory.classes import Block, ChatMemory, Memory, UnknownBlock, methods_of, named
from agent_core.registry.schema import read_methods
from tests.memory.blocks.conftest import HUMAN, By, OpenBlocks, edit
from tests.memory.blocks.own_class import TaskMemory

LONG = "\n".join(
    f"Fact {n}" for n in range(38_000)
)  # comparing each line with all others would take minutes


def test_a_block_is_looked_up_by_its_label_in_both_ways() -> None:
    memory = ChatMemory(human="Name: Chad")
    assert memory.human is memory["human"]
    assert (ChatMemory().human.value, copy.deepcopy(memory)) == ("", memory), (
        "two memories share no block"
    )
    assert (str(memory.human), memory.labels, "human" in memory) == (
        "Name: Chad",
        ["persona", "human"],
        True,
    )


def test_a_value_can_be_set_by_its_label_and_is_checked() -> None:
    memory = ChatMemory()
    memory.human = "Name: Chad"
    with pytest.raises(ValidationError, match="500 too many"):
        memory.human = "x" * 2500
    assert memory.human.value == "Name: Chad"


def test_an_unknown_label_names_the_known_ones() -> None:
    with pytest.raises(UnknownBlock, match=r"`humans`.*`persona`, `human`"):
        _ = ChatMemory().humans
    with pytest.raises(ValidationError, match=r"`humans`.*`persona`, `human`"):
        ChatMemory(humans="Name: Chad")
    assert not hasattr(ChatMemory(), "humans")


def test_there_is_one_block_per_label() -> None:
    with pytest.raises(ValidationError, match="a block `human` already"):
        Memory(blocks=[Block(label="human"), Block(label="human")])


def test_what_a_block_cannot_be_is_refused_by_how_much() -> None:
    rows: list[tuple[str, dict[str, object], str]] = [
        (
            "text",
            {"value": "x" * 12},
            "may hold 10 characters and would have 12, which is 2 too many",
        ),
        ("lines", {"value": ["aaaa", "bbbb", "cc"]}, "would have 12, which is 2 too many"),
        ("limit", {"limit": 3}, "may hold 3 characters and would have 4, which is 1 too many"),
        ("label", {"label": "no spaces"}, "letters, digits"),
    ]
    for case, change, says in rows:
        block = Block(label="human", limit=10, value="1234")
        for name, value in change.items():
            with pytest.raises(ValidationError, match=says):
                setattr(block, name, value)
        assert (block.value, block.limit) == ("1234", 10), case


def test_the_functions_of_memory_have_the_argument_names_of_memgpt() -> None:
    shown = {each.name: [*each.parameters["properties"]] for each in methods_of(ChatMemory)}
    assert shown == {
        "core_memory_append": ["name", "content"],
        "core_memory_replace": ["name", "old_content", "new_content"],
        "core_memory_remove": ["name", "content"],
        "core_memory_rewrite": ["name", "content"],
    }


def test_the_methods_of_a_class_of_ones_own_are_read_by_the_same_loader() -> None:
    functions = {each.name: each for each in methods_of(TaskMemory)}
    assert [*functions] == [
        "core_memory_append",
        "core_memory_replace",
        "core_memory_remove",
        "task_push",
        "task_pop",
    ]
    assert functions["core_memory_append"].description == "Add to a block, loudly."
    properties = functions["task_push"].parameters["properties"]
    assert properties["priority"]["enum"] == ["low", "high"]
    assert properties["task"]["description"] == "What is to be done."


async def test_a_class_of_ones_own_edits_its_blocks_and_they_are_kept(
    blocks_of: OpenBlocks,
) -> None:
    blocks = await blocks_of(memory=TaskMemory())
    await edit(blocks, "task_push", task="Wash up")
    said = await edit(blocks, "task_push", task="Call Ann", priority="high")
    assert said.startswith("2 tasks wait.\n`tasks` reads now")
    assert (await edit(blocks, "task_pop")).startswith("Call Ann")
    assert (await blocks_of(memory=TaskMemory())).memory.tasks.value == ["Wash up"]


async def test_what_a_method_raises_is_an_answer_and_changes_nothing(blocks_of: OpenBlocks) -> None:
    blocks = await blocks_of(memory=TaskMemory())
    edit = await blocks.call("task_pop", {}, By())
    assert (edit.outcome, edit.text[:11]) == ("refused", "ValueError:")
    edit = await blocks.call("task_push", {"task": "x" * 61}, By())
    assert (edit.outcome, "1 too many" in edit.text) == ("refused", True)


async def test_a_method_of_ones_own_does_not_change_a_read_only_block_for_an_agent(
    blocks_of: OpenBlocks,
) -> None:
    tasks = Block(label="tasks", value=["Wash up"], read_only=True)
    blocks = await blocks_of(memory=TaskMemory(blocks=[tasks]))
    assert "only the user" in (await blocks.call("task_pop", {}, By())).text
    await blocks.commit(await blocks.call("task_pop", {}, HUMAN))
    assert blocks.memory["tasks"].value == []


async def test_what_is_no_function_of_the_class_cannot_be_called(blocks_of: OpenBlocks) -> None:
    blocks = await blocks_of(memory=TaskMemory())
    for hidden in ("few", "waiting", "_hidden", "model_dump", "core_memory_rewrite", "render"):
        edit = await blocks.call(hidden, {}, By())
        assert (edit.outcome, hidden in edit.text) == ("refused", True), hidden


def test_a_method_that_no_model_can_call_is_told_to_the_one_who_wrote_it() -> None:
    class Wrong(Memory):
        def note(self, *texts: str) -> None:
            """Note texts."""

    with pytest.raises(SettingsError, match=r"\*texts"):
        methods_of(Wrong)


def test_a_class_without_source_says_where_to_put_it() -> None:
    with pytest.raises(UsageError, match="into a file"):
        read_methods(type("Made", (), {"__module__": "nowhere"}))


@pytest.mark.parametrize("written", ["__all__ =", "__all__: list[str] ="])
def test_what_a_module_exports_hides_no_method_of_its_class(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'{written} ["Desk"]\nclass Desk:\n    def note(self) -> None:\n        """Note nothing."""\n'
    (tmp_path / "exporting_desk.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "exporting_desk", raising=False)
    functions, problems = read_methods(importlib.import_module("exporting_desk").Desk)
    assert ([function.name for function in functions], problems) == (["note"], ())


def test_a_setting_that_names_no_memory_class_is_refused() -> None:
    rows: list[tuple[str, str]] = [
        ("chatty", "names no memory class"),
        ("no_such_package:Class", "cannot be loaded"),
        ("json:JSONDecoder", "not a class derived from"),
    ]
    for name, says in rows:
        with pytest.raises(SettingsError, match=says):
            named(name)


async def test_a_class_that_the_state_names_is_imported_only_if_the_user_names_it_too(
    tmp_path: Path,
) -> None:
    flags = {"memory.class_name": "tests.memory.blocks.own_class:TaskMemory"}
    async with Workspace.open(tmp_path, flags=flags) as mine:
        assert "tasks" in (await mine.agent("a")).memory.blocks.memory
    async with Workspace.open(tmp_path) as theirs:
        with pytest.raises(SettingsError, match="KNAPPER_MEMORY_CLASS_NAME=tests"):
            await theirs.agent("a")
    async with Workspace.open(tmp_path, flags=flags) as mine:
        assert "tasks" in (await mine.agent("a")).memory.blocks.memory


async def test_a_text_that_no_block_could_hold_is_refused_before_it_is_compared(
    blocks_of: OpenBlocks,
) -> None:
    blocks = await blocks_of(memory=ChatMemory(human="Name: Chad"))
    for function, arguments in (
        ("core_memory_append", {"content": LONG}),
        ("core_memory_replace", {"old_content": LONG, "new_content": ""}),
        ("core_memory_replace", {"old_content": "Name: Chad", "new_content": LONG}),
        ("core_memory_remove", {"content": LONG}),
    ):
        said = await edit(blocks, function, name="human", **arguments)
        assert said.startswith(
            "`human` may hold 2,000 characters and would have 406,889, which is 404,889 too many."
        )
