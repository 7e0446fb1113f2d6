"""Any secret in any form is masked in any text; a text without one is unchanged."""

import html
import json
import re
import time
import unicodedata
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import PurePosixPath
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.access.secrets import Masks
from agent_core.access.secrets.masks import unfit
from tests.kit.drawing import drawn
from tests.secrets.support import KEY

TEXTS = st.text(max_size=30)
AWKWARD = st.sampled_from(
    [KEY, "a&b<c>d\"e'f\\g", "e\u0301toile secre\u0300te \ufb01n", "été-à-la-mer", "a/b+c=d%e f?g"]
)
PLAIN = st.from_regex(r"[A-Za-z0-9+/_=-]{8,40}", fullmatch=True)
SECRETS = (AWKWARD | PLAIN | st.text(min_size=8, max_size=40)).filter(lambda text: not unfit(text))
Encode = Callable[[str], str]


def lowered(text: str) -> str:
    return re.sub("%..", lambda found: found[0].lower(), quote(text, safe=""))


WHOLE: dict[str, Encode] = {
    "as-it-is": str,
    "json": json.dumps,
    "json-in-json": lambda text: json.dumps(json.dumps({"a": text})),
    "repr": repr,
    "repr-of-bytes": lambda text: repr(text.encode()),
    "html": html.escape,
    "hex": lambda text: text.encode().hex(),
    "hex-in-capitals": lambda text: text.encode().hex().upper(),
    "url": lambda text: quote(text, safe=""),
    "url-with-plus": quote_plus,
    "url-in-small-letters": lowered,
}
BASE64: dict[str, Encode] = {
    "standard": lambda text: b64encode(text.encode()).decode(),
    "for-urls": lambda text: urlsafe_b64encode(text.encode()).decode(),
    "in-a-url": lambda text: quote(b64encode(text.encode()).decode(), safe=""),
}
NORMAL = ("NFC", "NFD", "NFKC", "NFKD")


@settings(max_examples=drawn(50))
@pytest.mark.parametrize("encode", WHOLE.values(), ids=WHOLE)
@given(secret=SECRETS, before=TEXTS, after=TEXTS)
def test_a_secret_within_an_encoded_text_is_gone(
    encode: Encode, secret: str, before: str, after: str
) -> None:
    inside = encode(f"{before} {secret} {after}")
    alone = encode(secret).strip("b'\"") if encode not in (html.escape, str) else encode(secret)
    cleaned = Masks([("KEY", secret)]).clean(inside)
    assert cleaned != inside
    assert secret not in cleaned
    assert len(alone) < 8 or alone not in cleaned


@settings(max_examples=drawn(50))
@pytest.mark.parametrize("encode", BASE64.values(), ids=BASE64)
@given(secret=SECRETS, before=TEXTS, after=TEXTS)
def test_a_secret_is_gone_from_base64_at_any_position(
    encode: Encode, secret: str, before: str, after: str
) -> None:
    cleaned = Masks([("KEY", secret)]).clean(encode(f"{before}{secret}{after}"))
    left = cleaned.partition("secret")
    assert left[1] == "secret"
    inside = secret.encode()[1:-1]
    assert all(
        b64encode(bytes(at) + inside)[4:-4].decode() not in cleaned
        for at in range(3)
        if len(inside) > 9
    )


@settings(max_examples=drawn(50))
@pytest.mark.parametrize("form", NORMAL)
@given(secret=SECRETS)
def test_a_secret_in_another_normal_form_is_gone(form: str, secret: str) -> None:
    other = unicodedata.normalize(form, secret)  # type: ignore[arg-type]  # one of the four
    assert other not in Masks([("KEY", secret)]).clean(f"so {other}, he said")


@settings(max_examples=drawn(60))
@given(
    secrets=st.lists(SECRETS, min_size=1, max_size=3),
    parts=st.lists(st.integers(0, 2) | TEXTS, max_size=6),
)
def test_no_mask_makes_a_secret_of_what_stands_around_it(
    secrets: list[str], parts: list[int | str]
) -> None:
    text = "".join(
        part if isinstance(part, str) else secrets[part % len(secrets)] for part in parts
    )
    cleaned = Masks((f"KEY{at}", secret) for at, secret in enumerate(secrets)).clean(text)
    assert not [secret for secret in secrets if secret in cleaned]


@given(text=st.text(alphabet="abc DEF.…%\\&é\n", max_size=80))
def test_a_text_without_the_secret_stays_as_it_is(text: str) -> None:
    masks = Masks([("KEY", "0123456789XYZ"), ("OTHER", KEY)])
    assert masks.clean(text) is text
    assert masks.clean_said(text) == text


PLAIN_VALUES = (st.none(), st.booleans(), st.integers(), st.floats(), st.text("abc "), st.binary())
VALUES = st.recursive(
    st.one_of(*PLAIN_VALUES, st.just(PurePosixPath("a"))),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text("abc "), inner) | st.tuples(inner, inner)
    ),
)


@settings(max_examples=drawn(60))
@given(
    value=VALUES,
    at=st.sampled_from(["list", "key", "bytes", "path", "tuple", "set", "text-of-bytes"]),
)
def test_a_secret_anywhere_in_a_nested_value_is_gone(value: object, at: str) -> None:
    held: dict[str, object] = {
        "list": [value, {"a": [f"x{KEY}"]}],
        "key": {KEY: value},
        "bytes": [value, b"\0" + KEY.encode("utf-16-le")],
        "path": (value, PurePosixPath(f"/tmp/{KEY}/b")),
        "tuple": ((KEY,), value),
        "set": {frozenset({KEY})},
        "text-of-bytes": {"a": b"\xff" + b64encode(b"ab" + KEY.encode()), "b": value},
    }
    cleaned = repr(Masks([("KEY", KEY)]).clean_value(held[at]))
    assert "secret KEY" in cleaned
    assert "7Qz" not in cleaned


def test_a_secret_that_is_a_number_is_gone_as_a_number() -> None:
    assert Masks([("PIN", "4812097335")]).clean_value([4812097335, 1.5, {"a": 4812097335}]) == [
        "[secret PIN]",
        1.5,
        {"a": "[secret PIN]"},
    ]


@pytest.mark.parametrize(
    ("said", "left"),
    [
        pytest.param(f"'{KEY[:9]}", "'[…]", id="cut-at-the-end"),
        pytest.param(f"{KEY[-6:]}'", "[…]'", id="cut-at-the-beginning"),
        pytest.param(f"'{KEY[:7]}...{KEY[-5:]}'", "'[…]...[…]'", id="cut-in-the-middle"),
        pytest.param(f"it is {KEY[3:17]} inside", "it is […] inside", id="a-long-piece-anywhere"),
        pytest.param(
            "wk is all right, and so is 7Qz", "wk is all right, and so is 7Qz", id="no-piece"
        ),
    ],
)
def test_what_a_cut_leaves_of_a_secret_is_gone_from_words(said: str, left: str) -> None:
    assert Masks([("KEY", KEY)]).clean_said(said) == left


def test_a_long_text_full_of_pieces_is_cleaned_in_no_time() -> None:
    secret = "sk-" + "abcd1234" * 4
    began = time.monotonic()
    cleaned = Masks([("KEY", secret)]).clean_said("sk-abcd1234abcd1234abc " * 90_000)
    assert cleaned == "[…] " * 90_000
    assert time.monotonic() - began < 15


def test_each_line_of_a_long_secret_is_gone() -> None:
    secret = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASCBKcwggSj\n-----END KEY-----\n"
    masks = Masks([("PEM", secret)])
    assert masks.clean(f"{secret}|9w0BAQEFAASCBKcwggSj|") == "[secret PEM]|[secret PEM]|"


@settings(deadline=None)
@given(SECRETS, st.lists(TEXTS | st.just("\n"), max_size=4), st.data())
def test_a_text_that_is_told_in_pieces_has_no_more_of_a_secret_than_the_whole(
    secret: str, around: list[str], data: st.DataObject
) -> None:
    text, masks = secret.join(["\n", *around, "\n"]), Masks([("KEY", secret)])
    held, told = "", ""
    for piece in re.findall(f"(?s).{{1,{data.draw(st.integers(1, 30))}}}", text):
        held += piece
        size = masks.settled(held)
        told, held = told + masks.clean_said(held[:size]), held[size:]
    told += masks.clean_said(held)
    assert masks.clean(told) == told
    at_once = masks.clean_said(text)
    windows = {secret[at : at + 6] for at in range(len(secret) - 5)}
    assert [one for one in windows if one in told and one not in at_once] == []
