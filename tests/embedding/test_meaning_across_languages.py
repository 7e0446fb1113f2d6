"""A multilingual model behind the agent's endpoint finds in one language what was said in another."""

from collections.abc import Callable
from pathlib import Path

from sandbox import Sandbox
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, ScriptedModel, Wanted
from tests.kit.desk import answers, desk

SAME = (
    ("zahnarzt", "dentiste", "dentista", "dentist"),
    ("miete", "loyer", "alquiler", "rent"),
    ("urlaub", "holiday"),
)
SAID = (
    "Mein Zahnarzt heißt Okafor.",
    "La tarta de manzana lleva canela.",
    "Le loyer augmente en mars.",
)
SETTINGS = {"memory__embedding": "endpoint", "memory__embedding_model": "bge-m3"}


def meaning(text: str) -> list[float]:
    """Return a vector with one place for each thing that the text names, in any language."""
    return [float(any(word in text.lower() for word in words)) for words in SAME] + [0.1]


async def test_what_was_said_in_other_languages_is_found_by_the_vectors_of_the_endpoint(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> None:
    search = Ask(
        *(
            Wanted("conversation_search", {"query": text, "count": 1})
            for text in ("dentist", "rent")
        )
    )
    model = scripted(
        [*(Say("All right.") for _ in SAID), search, Repeat(Say("Done."))], embeds=meaning
    )
    async with desk(tmp_path, model, one_sandbox, **SETTINGS) as opened:
        for text in SAID:
            await opened.say(text)
        dentist, rent = answers(await opened.say("Search."))
    assert (SAID[0] in dentist, SAID[2] in dentist) == (True, False), dentist
    assert (SAID[2] in rent, SAID[0] in rent) == (True, False), rent
    asked = [sent for what, sent in model.asked_beside if what == "POST /v1/embeddings"]
    assert {sent["model"] for sent in asked} == {"bge-m3"}
    assert {*SAID} <= {text for sent in asked for text in sent["input"]}


async def test_an_endpoint_that_cannot_embed_leaves_the_search_by_words_and_says_so(
    at_desk: OpenDesk,
) -> None:
    search = Ask(Wanted("conversation_search", {"query": "Zahnarzt"}))
    opened = await at_desk([Say("Gut."), search, Repeat(Say("Done."))], **SETTINGS)
    await opened.say(SAID[0])
    (found,) = answers(await opened.say("Search."))
    assert SAID[0] in found
    assert "bge-m3" in found
