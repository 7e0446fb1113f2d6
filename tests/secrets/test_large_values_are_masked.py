"""A secret in a large value is masked before any of it is written, wherever pieces are cut."""

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from agent_core.access.secrets.masks import JsonStream, Masks, byte_forms
from sandbox.wire.values import encode
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Script, Wanted
from tests.kit.desk import answers
from tests.kit.sources import function_text
from tests.secrets.support import KEY, MARK, files_with, put
from tests.secrets.ways import NUMBER

LARGE = """
import random
key, rows = self.secret("KEY"), []
chance = random.Random(5)
for number in range(500):
    data = key.encode()
    rows.append(["x" * chance.randrange(6_000), key, {key: data}, base64.b64encode(b"ab" + data).decode()])
"""

SAME = function_text(
    "same(rows: list) -> list", "Give rows back.\n\nArgs:\n    rows: Rows.", "return rows"
)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("len(tell())", id="result-for-a-program"),
        pytest.param("len(hand_on())", id="argument-of-another-function"),
        pytest.param("rows = tell()\n1 / 0", id="kept-by-a-program-that-fails"),
    ],
)
async def test_no_file_has_a_secret_of_a_large_value(
    at_desk: OpenDesk, key: str, config: Path, code: str
) -> None:
    script: Script = [Ask(Wanted("run_program", {"code": code})), Say("Done.")]
    desk = await at_desk(script)
    await put(desk.workspace, "tell", f"{LARGE}return rows", "KEY")
    (desk.workspace.root / "functions" / "same.py").write_text(SAME)
    await desk.workspace.functions.reload()
    await put(desk.workspace, "hand_on", f'{LARGE}return self.call("same", rows=rows)', "KEY")
    (told,) = answers(await desk.say("tell me"))
    values = [*(desk.workspace.root / ".knapper" / "values").iterdir()]
    assert values, told
    assert all(f'"{MARK}"' in file.read_text() for file in values)
    for form in byte_forms(KEY):
        text = form.decode("latin-1")
        assert [*files_with(text, desk.workspace.root, config.parent.parent)] == [], text


@pytest.mark.parametrize(
    "secret", [KEY, NUMBER, "sk-0123456789abcdef", "0123456789abcdef0123456789abcdef"]
)
def test_a_form_across_the_border_of_two_pieces_is_masked_and_the_text_stays_json(
    secret: str,
) -> None:
    masks = Masks([("KEY", secret)])
    values: list[Any] = [
        secret,
        {"a" + secret: secret.encode()},
        "…" + json.dumps(secret),
        base64.b64encode(secret.encode()).decode(),
    ]
    if secret == NUMBER:
        values += [int(NUMBER), float(NUMBER), [-int(NUMBER)]]
    text = json.dumps(encode(values), ensure_ascii=False, separators=(",", ":"))
    whole = masks.in_json_with_bytes.clean(text)
    chance = random.Random(3)
    for size in range(1, 60):
        stream, parts, at = JsonStream(masks), list[str](), 0
        while at < len(text):
            step = chance.randrange(1, size + 1)
            parts.append(stream.add(text[at : at + step]))
            at += step
        masked = "".join([*parts, stream.end()])
        assert json.loads(masked)
        assert secret not in masked
        assert masked == whole
