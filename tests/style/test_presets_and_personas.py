"""Presets, personas and humans are files: built-in ones, and the user's own in the workspace."""

from pathlib import Path

import pytest

from agent_core.base.errors import KnapperError
from agent_core.workspace.presets import named, preset, presets, text_of
from tests.conftest import OpenDesk
from tests.kit import Expect, Say, contains, scripted
from tests.kit.desk import desk as a_desk
from tests.kit.desk import ended

OWN = 'style = "memgpt"\ninstructions = "mine.txt"\nfunctions = ["send_message"]\nabout = "Mine."\n'


def put(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


@pytest.mark.parametrize("name", ["direct", "memgpt", "memgpt_docs"])
def test_every_preset_that_comes_along_is_whole(tmp_path: Path, name: str) -> None:
    found = preset(tmp_path, name)
    assert found.has("create_function")
    assert found.has("send_message") is (found.style.name == "memgpt")
    assert text_of(tmp_path, "persona", found.persona)
    assert "{functions}" not in found.style.instructions + found.style.brief


def test_a_preset_of_ones_own_stands_beside_the_others(tmp_path: Path) -> None:
    put(tmp_path, "presets/mine.toml", OWN)
    put(tmp_path, "presets/mine.txt", "Be mine.\n\n{functions}")
    found = preset(tmp_path, "mine")
    assert found.style.instructions.startswith("Be mine.\n\nIf no function")
    had = [name for name in ("send_message", "message_llm", "core_memory_append") if found.has(name)]
    assert had == ["send_message"]
    assert ("mine", "Mine.") in presets(tmp_path)


def test_what_is_wrong_in_a_preset_is_said(tmp_path: Path) -> None:
    for text, says in {
        "style = 'mem": "not valid TOML",
        "styl = 'memgpt'": "`styl`",
        "style = 'loud'": "cannot be 'loud'",
        "compaction = 'short'": "cannot be 'short'",
        "attempts = '3'": "cannot be '3'",
        "functions = ['fly']": "`fly`",
        "instructions = '../../etc/passwd'": "no file of instructions",
        "instructions = 'none.txt'": "no file of instructions",
    }.items():
        put(tmp_path, "presets/mine.toml", text)
        with pytest.raises(KnapperError, match=says):
            preset(tmp_path, "mine")
    with pytest.raises(KnapperError, match="Did you mean `memgpt`"):
        preset(tmp_path, "memgtp")


def test_personas_of_ones_own_come_before_those_that_come_along(tmp_path: Path) -> None:
    put(tmp_path, "personas/companion.txt", "I am Max.\n")
    put(tmp_path, "humans/ada.txt", "Ada, an engineer.")
    assert text_of(tmp_path, "persona", "companion") == "I am Max."
    assert "ada" in named(tmp_path, "human")
    assert text_of(tmp_path, "persona", "I am a text of my own.") == "I am a text of my own."
    with pytest.raises(KnapperError, match="Known are: companion, knapper, librarian"):
        text_of(tmp_path, "persona", "nobody")


def test_a_file_that_leads_out_of_the_workspace_is_not_read(tmp_path: Path) -> None:
    put(tmp_path, "secret.txt", "a key")
    root = tmp_path / "workspace"
    (root / "personas").mkdir(parents=True)
    (root / "personas" / "max.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(KnapperError, match="leads out"):
        text_of(root, "persona", "max")


async def test_a_preset_of_ones_own_says_what_its_agents_are_told(at_desk: OpenDesk, tmp_path: Path) -> None:
    put(tmp_path, "presets/mine.toml", 'style = "direct"\ninstructions = "mine.txt"\nfunctions = []\n')
    put(tmp_path, "presets/mine.txt", "Speak like a pirate.")
    desk = await at_desk([Expect(Say("Arr."), contains("Speak like a pirate."))], memory__preset="mine")
    assert ended(await desk.say("Hi.")).reply == "Arr."


async def test_a_preset_chooses_how_the_past_of_its_agents_is_summed_up(tmp_path: Path) -> None:
    put(tmp_path, "presets/dense.toml", 'compaction = "spr"\nattempts = 1000\n')
    said = Say("A reply of some length. " * 90)
    with scripted([said] * 6) as model:
        for name, told in (("direct", "You keep the memory of an assistant. "), ("dense", "sparse priming")):
            async with a_desk(tmp_path, model, agent=name, memory__preset=name) as here:
                for _ in range(3):
                    await here.say("What do you say of this? " * 90)
                await here.agent.summarize()
            assert told in model.summaries[-1].text
    assert preset(tmp_path, "dense").style.attempts == 10
