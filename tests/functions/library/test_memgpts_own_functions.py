"""The import results for the ten functions of every MemGPT agent; the table in docs/gate.md must match.

The names and parameters are MemGPT's; the bodies were written for this test in its style.
"""

import re
from pathlib import Path

import pytest

from agent_core.functions.service.library import ImportedFunction, Taking
from tests.functions.support import Room

pytestmark = pytest.mark.asyncio(loop_scope="module")

BASE = '''import datetime
from typing import Optional

from memgpt.agent import Agent
from memgpt.constants import MAX_PAUSE_HEARTBEATS


def send_message(self: Agent, message: str) -> Optional[str]:
    """Say something to the user.

    Args:
        message (str): The words.
    """
    self.interface.assistant_message(message)
    return None


def pause_heartbeats(self: Agent, minutes: int) -> Optional[str]:
    """Be left alone for a while.

    Args:
        minutes (int): How long.
    """
    self.pause_heartbeats_minutes = min(MAX_PAUSE_HEARTBEATS, minutes)
    self.pause_heartbeats_start = datetime.datetime.now()
    return f"paused for {minutes} minutes"


def conversation_search(self: Agent, query: str, page: Optional[int] = 0) -> Optional[str]:
    """Look for words in what was said.

    Args:
        query (str): The words.
        page (Optional[int]): Which page of it.
    """
    found, total = self.persistence_manager.recall_memory.text_search(query, count=5, start=page * 5)
    return f"{total}: {found}"


def conversation_search_date(
    self: Agent, start_date: str, end_date: str, page: Optional[int] = 0
) -> Optional[str]:
    """Look for what was said in some days.

    Args:
        start_date (str): The first day.
        end_date (str): The last day.
        page (Optional[int]): Which page of it.
    """
    found, total = self.persistence_manager.recall_memory.date_search(start_date, end_date, count=5, start=page * 5)
    return f"{total}: {found}"


def archival_memory_insert(self: Agent, content: str) -> Optional[str]:
    """Store a text for good.

    Args:
        content (str): The text.
    """
    self.persistence_manager.archival_memory.insert(content)
    return None


def archival_memory_search(self: Agent, query: str, page: Optional[int] = 0) -> Optional[str]:
    """Look for a text that was stored.

    Args:
        query (str): What is looked for.
        page (Optional[int]): Which page of it.
    """
    found, total = self.persistence_manager.archival_memory.search(query, count=5, start=page * 5)
    return f"{total}: {found}"
'''
EXTRAS = '''import json
import os
from typing import Optional

import requests
from memgpt.constants import JSON_ENSURE_ASCII, JSON_LOADS_STRICT
from memgpt.openai_tools import completions


def message_chatgpt(self, message: str):
    """Ask another model.

    Args:
        message (str): The question.
    """
    return completions(model="gpt", messages=[{"role": "user", "content": str(message)}])


def read_from_text_file(self, filename: str, line_start: int, num_lines: Optional[int] = 1):
    """Read some lines of a text file.

    Args:
        filename (str): Which file.
        line_start (int): The first line.
        num_lines (Optional[int]): How many.
    """
    if not os.path.exists(filename):
        raise FileNotFoundError(f"there is no {filename}")
    with open(filename, "r") as file:
        lines = file.readlines()
    return "\\n".join(lines[line_start - 1 : line_start - 1 + num_lines])


def append_to_text_file(self, filename: str, content: str):
    """Write a text at the end of a text file.

    Args:
        filename (str): Which file.
        content (str): The text.
    """
    if not os.path.exists(filename):
        raise FileNotFoundError(f"there is no {filename}")
    with open(filename, "a") as file:
        file.write(content + "\\n")


def http_request(self, method: str, url: str, payload_json: Optional[str] = None):
    """Ask a server for something.

    Args:
        method (str): `GET` or `POST`.
        url (str): Its address.
        payload_json (Optional[str]): What is sent, as JSON.
    """
    headers = {"Content-Type": "application/json"}
    if method == "GET":
        response = requests.get(url, headers=headers)
    else:
        data = json.loads(payload_json, strict=JSON_LOADS_STRICT) if payload_json else {}
        response = requests.request(method, url, headers=headers, json=data)
    return {"status_code": response.status_code, "headers": dict(response.headers), "body": response.text}
'''
ROW = re.compile(r"^\| (`.+`) \| (.+) \|$", re.MULTILINE)


def told() -> dict[str, str]:
    """Return the table in the documentation: its result for each name."""
    text = Path(__file__).parents[3].joinpath("docs", "gate.md").read_text()
    table = text.partition("| MemGPT's function | here |")[2].partition("\n\n")[0]
    rows = [(names, says.replace("it also takes", "they also take")) for names, says in ROW.findall(table)]
    return {name: says for names, says in rows for name in re.findall(r"`(\w+)`", names)}


def became(row: ImportedFunction) -> str:
    """Return the result that the import reports for a function, in the words of the table."""
    (first, *_), codes = row.problems, {problem.code for problem in row.problems}
    if row.outcome == "skipped":
        shown, _, difference = first.message.partition(" is ")[2].partition(": a function of the agent itself; ")
        more = re.sub("^it also takes", "they also take", difference).replace(
            "its parameters are the same", "with the same parameters"
        )
        return f"{shown}{',' if more == 'with the same parameters' else ';'} {more}"
    assert row.standing == "draft", row
    assert [code for code in codes if code.startswith("needs-")] == ["needs-packages"]
    if row.name == "http_request":
        return "a draft; `requests` is asked for at the first call, each host when it comes"
    return "drafts; `requests`, which their file imports, is asked for at the first call, the file when a call opens it"


async def test_the_documentation_says_what_becomes_of_each_of_the_ten(here: Room, tmp_path: Path) -> None:
    for name, text in (("base", BASE), ("extras", EXTRAS)):
        (tmp_path / f"{name}.py").write_text(text)
    results = [
        row
        for name in ("base", "extras")
        for row in (
            await here.shop.batch.take_over(Taking(tmp_path / f"{name}.py"), lambda _: None, lambda _: None)
        ).functions
    ]
    outcome, documented = {row.name: became(row) for row in results}, told()
    assert len(documented) == len(outcome) == 10
    assert outcome == documented
    assert here.shop.names() == ["append_to_text_file", "http_request", "read_from_text_file"]
