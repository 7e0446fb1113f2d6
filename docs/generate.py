"""Writes `docs/reference.md` (commands, slash commands, meta-functions, settings, operations of the server),
`docs/modules.md` (every module and table), `docs/openapi.json`, `docs/agent-file.schema.json`,
and the types of the client's methods (`agent_core/client/resources.pyi`).

python docs/generate.py
"""

import ast
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import get_args

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

ROOT = Path(__file__).parent.parent
TOP = ("agent_core", "knapper", "knapper_ext", "meta_functions", "sandbox")
SHARED = 3  # commands that take an option: it is explained once
IN_A_ROW = 6  # options of a command: more get a table
KIND = inspect.Parameter.POSITIONAL_OR_KEYWORD
TYPES = "bigint|blob|boolean|double|integer|real|text|timestamptz"  # of columns
HELP = ("-h, --help", "Show this message and exit.")
sys.path.insert(0, str(ROOT))

from agent_core.base import events  # noqa: E402
from agent_core.base.gone import GONE  # noqa: E402
from agent_core.base.settings import PREFIX, Settings  # noqa: E402
from agent_core.functions.debug import COMMANDS  # noqa: E402
from agent_core.operations.catalog import ENTRIES  # noqa: E402
from agent_core.operations.operation import operations_of  # noqa: E402
from agent_core.operations.words import kind_of, word_of  # noqa: E402
from agent_core.workspace.portable.document import AgentFile  # noqa: E402
from knapper.shell.cli import LazyGroup  # noqa: E402
from knapper_ext.openai_api.openai_parameters import (  # noqa: E402
    CHAT,
    RESPONSES,
    Acts,
    Effect,
    Kinds,
    NotOffered,
)
from knapper_ext.server.app import OPERATIONS, openapi  # noqa: E402
from meta_functions import MODULES  # noqa: E402

HEAD = """\
# Reference

This page lists every command, setting and event. It is generated from the program by `python docs/generate.py`; a test compares the two.

Every command takes `--json` and `--workspace DIR` (both also right after `knapper`), prints its result on standard output and everything else on
standard error, and exits with 0 (done), 1 (rejected or failed) or 2 (usage). The JSON shapes: `problem` `{code, message, fix, path, line, column, severity}`,
`verdict` `{name, module, admitted, standing, version, fixes, problems, stages, source, agreed, confirmed, disagreements, denied}`, `outcome`
`{outcome, value, output, seconds, memory, cpu_s, error}` with `error` `{type, message, frames, cause}` (`cause`: the error that it was raised from or,
with `was_handled`, while that was handled), and one `event` per line for `run --json`. A command that fails prints
`{"error": {code, message, fix}}`.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join(
        [
            HEAD,
            *commands(),
            *slash_commands(),
            *debugger(),
            *meta_functions(),
            *settings(),
            *gone(),
            *told(),
            *operations(),
            *parameters(),
        ]
    )


def commands() -> Iterator[str]:
    """Yield the options that many commands share, every command, and the options of each that has many."""
    every = [help_of(names, command) for names, command in every_command(LazyGroup("knapper"), ())]
    counts = Counter(option for _, _, options in every for option in options)
    shared = [option for option, count in counts.most_common() if count >= SHARED]
    everywhere = [option for option in shared if counts[option] >= len(every) - 1]
    yield "## Commands\n"
    yield f"Every command takes the first {len(everywhere)} of these options, unless its row describes one in another way. The others mean this wherever a row only names them.\n"
    yield "| option | meaning |\n|---|---|"
    yield from (f"| {code(name)} | {cell(meaning)} |" for name, meaning in shared)
    yield "\n| command | what it does | its options |\n|---|---|---|"
    tables: list[str] = []
    for usage, text, options in every:
        own = [option for option in options if option not in everywhere]
        row = "<br>".join(
            code(name) + ("" if (name, meaning) in shared else f" {cell(meaning)}")
            for name, meaning in own
        )
        if len(own) > IN_A_ROW:
            row = "below"
            tables.append(f"\n| option of {code(usage)} | meaning |\n|---|---|")
            tables += [f"| {code(name)} | {cell(meaning)} |" for name, meaning in own]
        yield f"| {code(usage)} | {cell(text)} | {row} |"
    yield from (*tables, "")


def help_of(
    names: tuple[str, ...], command: click.Command
) -> tuple[str, str, list[tuple[str, str]]]:
    """Return the usage of a command, what it does, and its options with their meanings."""
    context = click.Context(command, help_option_names=["-h", "--help"])
    usage = " ".join(["knapper", *names, *command.collect_usage_pieces(context)[1:]])
    # Not `get_params`: a command that ran before in this process keeps the help option of that run.
    options = [
        one.get_help_record(context) for one in command.params if isinstance(one, click.Option)
    ]
    return usage, command.help or "", [*(option for option in options if option), HELP]


def every_command(
    group: click.Group, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield all commands below a group, each with its name in parts."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and (
            not isinstance(command, click.Group) or command.invoke_without_command
        ):
            yield (*above, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*above, name))


def code(text: str) -> str:
    """Return code, for a cell of a table."""
    return f"`{text}`".replace("|", "\\|")


def cell(text: str) -> str:
    """Return a text on one line, for a cell of a table, without signs that Markdown would read."""
    return re.sub(r"[|*]", r"\\\g<0>", " ".join(text.split()))


def slash_commands() -> Iterator[str]:
    """Yield the slash commands."""
    yield "## At the prompt\n"
    yield "| type | what it does |\n|---|---|"
    yield from (f"| `{entry.typed}` | {entry.says} |" for entry in ENTRIES)
    yield ""


def debugger() -> Iterator[str]:
    """Yield the commands of the debugger."""
    yield "## At the `(debug)` prompt\n"
    yield "Anything that is not a command is an expression; `name = value` sets a local. Enter repeats the last command.\n"
    yield "| command | short | what |\n|---|---|---|"
    for one in COMMANDS:
        short, what = (
            f"`{one.short}`" if one.short != one.name else "",
            one.description.replace("|", "\\|"),
        )
        yield f"| `{one.name}` | {short} | {what} |"
    yield ""


def meta_functions() -> Iterator[str]:
    """Yield the functions that the model can call in the host."""
    yield "## Meta-functions\n"
    yield "| the model calls | what it does |\n|---|---|"
    for module in MODULES:
        tree = ast.parse((ROOT / "meta_functions" / f"{module}.py").read_text("utf-8"))
        for node in tree.body:
            if isinstance(node, ast.AsyncFunctionDef):
                parameters = ", ".join(argument.arg for argument in node.args.args[1:])
                says = (ast.get_docstring(node) or "").split("\n", 1)[0]
                yield f"| `{node.name}({parameters})` | {says} |"
    for operation in operations_of("functions").values():
        if operation.tool:
            names = [word_of(one).for_models or one.name for one in operation.parameters]
            says = operation.text.split("\n", 1)[0]
            yield f"| `{operation.tool}({', '.join(names)})` | {says} |"
    yield ""


def settings() -> Iterator[str]:
    """Yield every setting with its default."""
    yield "## Settings\n"
    yield f"Set them in `knapper.toml` (`[section]` and `key`), as a variable (`{PREFIX}SECTION_KEY`), or as a flag; each takes precedence"
    yield "over the one before. Keys are read only from the environment (`model.key_variable`), an address also from `OPENAI_BASE_URL`. `sandbox.unsafe` cannot"
    yield "be set in the file, and nothing is sent to an address that only the file names until `knapper configure --confirm-address`.\n"
    yield "| setting | default | meaning |\n|---|---|---|"
    for name, field in Settings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from (row(f"{name}.{key}", inner) for key, inner in section.model_fields.items())
        else:
            yield row(name, field)


def gone() -> Iterator[str]:
    """Yield what went, with what to do instead."""
    yield "\n## What is gone\n"
    yield "Each is told once where it still stands, has no effect, and stops nothing.\n"
    yield "| gone | what to do |\n|---|---|"
    yield from (f"| `{name}` | {advice} |" for name, advice in GONE.items())


def told() -> Iterator[str]:
    """Yield every event of a turn with its fields."""
    yield "\n## Events\n"
    yield "`run --json` prints these events, one object per line, and `Agent.turn` yields them: `type`, `turn`, `step` and these fields.\n"
    yield "| type | fields | meaning |\n|---|---|---|"
    for kind in get_args(events.Event):
        told = [field.name for field in fields(kind) if field.metadata.get("told", True)]
        own = ", ".join(f"`{name}`" for name in told if name not in ("turn", "step"))
        says = " ".join(inspect.cleandoc(kind.__doc__ or "").split()).replace("|", "\\|")
        yield f"| `{kind.type}` | {own} | {says} |"


def parameters() -> Iterator[str]:
    """Yield what each parameter of the two OpenAI doors does."""
    yield "## Parameters of the OpenAI doors\n"
    yield "`null` is as if a parameter were left out. What is refused is a 400 that names the parameter, and so is one that is not listed.\n"
    for path, effects in (("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSES)):
        yield f"`POST {path}`\n\n| parameter | what it does |\n|---|---|"
        yield from rows_of(effects, "")
        yield ""


def rows_of(parts: Mapping[str, Effect] | Kinds, place: str) -> Iterator[str]:
    """Yield a row for each parameter, each followed by what is in it; `[user]`: in an object of that kind."""
    if isinstance(parts, Kinds):
        kinds = ", ".join(f"`{kind}`" for kind in parts.kinds)
        yield f"| `{place}.{parts.by}` | {kinds}; refused is another: it {parts.why} |"
        for inner, alike in groupby(parts.kinds.items(), key=itemgetter(1)):
            yield from rows_of(inner, f"{place}[{', '.join(kind for kind, _ in alike)}].")
        return
    for name, effect in sorted(parts.items()):
        yield f"| `{place}{name}` | {described(effect)} |"
        if isinstance(effect, Acts) and effect.parts is not None:
            yield from rows_of(
                effect.parts, f"{place}{name}{'' if isinstance(effect.parts, Kinds) else '.'}"
            )


def described(effect: Effect) -> str:
    """Return what a parameter does, in a cell of a table."""
    if not isinstance(effect, NotOffered):
        return effect.does
    usual = ", ".join(f"`{json.dumps(value)}`" for value in effect.usual)
    return f"refused: it {effect.why}" + (f" Taken: {usual}" if usual else "")


def operations() -> Iterator[str]:
    """Yield every operation of the server."""
    yield "\n## Operations of the server\n"
    yield "`knapper serve` answers these. A token needs one of the scopes. What each takes is in [openapi.json](openapi.json).\n"
    yield "| operation | scopes | what it does |\n|---|---|---|"
    for one in sorted(OPERATIONS, key=lambda one: (one.path, one.method)):
        yield f"| `{one.method} {one.path}` | {', '.join(one.scopes)} | {one.summary} |"


def modules() -> str:
    """Return the page of all modules, by room, and of all tables of the store."""
    lines = [
        "# Modules and tables",
        "",
        "Generated by `python docs/generate.py` from the first line of each module. [ARCHITECTURE.md](../ARCHITECTURE.md) says how they work together.",
    ]
    rooms = sorted(path.parent for top in TOP for path in (ROOT / top).rglob("__init__.py"))
    for room in rooms:
        lines += ["", f"## `{room.relative_to(ROOT)}/`", "", says(room / "__init__.py"), ""]
        files = [path for path in sorted(room.glob("*.py")) if path.name != "__init__.py"]
        if files:
            lines += [
                "| module | what it is |",
                "|---|---|",
                *(f"| `{path.name}` | {says(path)} |" for path in files),
            ]
    lines += [
        "",
        "## Tables",
        "",
        "| table | made by | columns | what a row is |",
        "|---|---|---|---|",
        *tables(),
    ]
    return "\n".join(lines) + "\n"


def says(path: Path) -> str:
    """Return the first paragraph of a module's docstring, as one line of a table."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def tables() -> Iterator[str]:
    """Yield a row of each table: the migration that made it last, its columns, and the comment above it."""
    found = {}
    folders = ("agent_core/storage/sqlite/migrations", "knapper_ext/postgres/migrations")
    for path in [path for folder in folders for path in sorted((ROOT / folder).glob("*.sql"))]:
        text = path.read_text("utf-8")
        for made in re.finditer(r'((?:^--.*\n)*)^create (?:virtual )?table "?(\w+)', text, re.M):
            about = " ".join(
                line.removeprefix("--").strip() for line in made[1].splitlines()
            ).replace("|", "\\|")
            body = text[made.end() :].partition(";\n")[0]
            columns = ", ".join(re.findall(rf"(?:^    |, )([a-z]\w*) (?:{TYPES})\b", body, re.M))
            place = f"{path.parent.parent.name}/migrations/{path.name}"
            found.setdefault(made[2], f"| `{made[2]}` | `{place}` | {columns} | {about} |")
    yield from (found[name] for name in sorted(found))


def description() -> str:
    """Return the description of the server's API."""
    return json.dumps(openapi(OPERATIONS), indent=1, ensure_ascii=False) + "\n"


def stub() -> str:
    """Return the types of the client's methods that are operations."""
    lines = [
        '"""The operations on functions as methods of the client. Generated by `python docs/generate.py`."""',
        "",
        "from typing import Any",
        "",
        "from agent_core.operations.operation import Operation",
        "",
        "Json = dict[str, Any]",
        "",
        "class FunctionOperations:",
        "    async def run(self, operation: Operation, **values: Any) -> Json: ...",
    ]
    for operation in operations_of("functions").values():
        parameters = [one.replace(annotation=kind_of(one)) for one in operation.parameters]
        taken = inspect.Signature([inspect.Parameter("self", KIND), *parameters])
        lines += [
            f"    async def {operation.verb.replace('-', '_')}{taken} -> Json:".replace("'", '"'),
            f'        """{operation.summary}"""',
        ]
    return "\n".join(lines) + "\n"


def row(name: str, field: FieldInfo) -> str:
    """Return the row of one setting."""
    default = "" if field.default is None else f"`{field.default}`"
    return f"| `{name}` | {default} | {field.description} |"


def agent_file() -> str:
    """Return the JSON Schema of an agent file."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **AgentFile.model_json_schema(),
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "agent-file.schema.json").write_text(agent_file(), "utf-8")
    (ROOT / "docs" / "openapi.json").write_text(description(), "utf-8")
    (ROOT / "agent_core" / "client" / "resources.pyi").write_text(stub(), "utf-8")
    (ROOT / "docs" / "modules.md").write_text(modules(), "utf-8")
    (ROOT / "docs" / "reference.md").write_text(page() + "\n", "utf-8")
