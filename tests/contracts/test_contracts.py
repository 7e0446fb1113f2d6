"""What programs build on is in files here: the shapes of `--json`, the schemas of tools, and the first request.

`docs/openapi.json` and `docs/reference.md` are compared in `tests/docs/test_docs_are_true.py`.
"""

import json
import re
import shlex
from pathlib import Path

from agent_core.memory.classes import KNOWN, methods_of
from agent_core.runtime.host_functions import meta_functions
from tests.contracts.commands import run_commands
from tests.interfaces.support import COUNT_VOWELS, FLAWED, flags
from tests.kit import Repeat, Say, scripted
from tests.kit.contract import Contracts, shape
from tests.kit.program import knapper

COMMANDS = """\
init
run --message Hello
functions list
functions create count_vowels words.py
functions create flawed flawed.py
functions show count_vowels
functions call count_vowels --args '{"text": "queue"}'
functions call nobody
calls list
calls show 1
functions good count_vowels
functions add-example count_vowels --call 'count_vowels("b")' --expected 0
functions test count_vowels
functions history count_vowels
functions diff count_vowels 1
functions pending
functions audit
functions search vowels
functions trace count_vowels --args '{"text": "ab"}'
functions reload
functions grant count_vowels --network a.example.org --yes
functions grants
functions revoke count_vowels --network a.example.org
functions packages
functions tend
functions export out count_vowels
functions delete count_vowels
secrets list
agents list
agents show main
agents tree
agents export main main.json
agents pause main
agents resume main
helpers list
helpers check
memory show
memory add notes --description Notes.
memory edit notes --value Herons.
memory edit notes --value 'Herons fish.'
memory history notes
memory undo notes
memory forget zeppelin
sources add note.md
sources list
log
mcp list
extensions list
tokens add ci --scope read
tokens list
tokens revoke ci
schema words.py
storage check
storage stats
storage vacuum
"""
_DATE = re.compile(r"Today is \w+, [\d-]+\.")
_VERSION = re.compile(r"Python 3\.\d+")


def test_the_documents_of_commands_have_the_shapes_that_programs_read(
    tmp_path: Path, contracts: Contracts
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for name, text in {
        "words.py": COUNT_VOWELS,
        "flawed.py": FLAWED.replace("count_vowels", "flawed"),
        "note.md": "Herons fish at dusk.",
    }.items():
        (workspace / name).write_text(text)
    lines = COMMANDS.splitlines()
    with scripted([Repeat(Say("Hi."))]) as model:
        environment = {
            "HOME": str(tmp_path),
            "KNAPPER_MODEL_BASE_URL": model.base_url,
            "KNAPPER_MODEL_NAME": "scripted",
        }
        commands = [[*shlex.split(line), "--json"] for line in lines]
        rows = run_commands(commands, workspace, environment)
    documents = {}
    for line, (code, out, _) in zip(lines, rows, strict=True):
        printed = [json.loads(text) for text in out.splitlines() if not _is_timely(text)]
        documents[line] = {"exit": code, "lines": shape(printed)}
    contracts.check_json("documents.json", documents)


def _is_timely(text: str) -> bool:
    """Tell whether an event comes only if a model or a machine is slow."""
    return text.startswith(('{"type": "reading"', '{"type": "writing"', '{"type": "waiting"'))


def test_the_schemas_of_the_tools_are_those_that_models_know(contracts: Contracts) -> None:
    functions = [host.function for host in meta_functions().values()]
    functions += [function for kind in KNOWN.values() for function in methods_of(kind)]
    tools = {
        function.name: {"description": function.description, "parameters": function.parameters}
        for function in functions
    }
    contracts.check_json("tools.json", dict(sorted(tools.items())))


def test_the_first_request_of_a_new_workspace_is_kept_whole(
    tmp_path: Path, contracts: Contracts
) -> None:
    knapper("init", cwd=tmp_path)
    with scripted([Say("Hi.")]) as model:
        done = knapper("run", "--message", "Hello", *flags(model), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    body = model.requests[0].body
    for message in body["messages"]:
        # A list of lines, so that a difference shows the line.
        text = _VERSION.sub("Python VERSION", _DATE.sub("Today is DATE.", message["content"]))
        message["content"] = text.split("\n")
    contracts.check_json("first_request.json", body)
