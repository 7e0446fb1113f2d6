"""Embedding models: unit vectors, close for close meanings; an unavailable model is reported."""

import json
import threading
from array import array
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import fsum, isclose
from time import process_time

import pytest

from agent_core.base.errors import UsageError
from agent_core.memory.embedding import Embedder, EmbeddingUnavailable, embedder


def _dot(one: bytes, other: bytes) -> float:
    return fsum(x * y for x, y in zip(array("f", one), array("f", other), strict=True))


async def check_vectors(model: Embedder) -> None:
    vectors = await model.embed(["A dog sleeps.", "", "?!", "x " * 3_000, "狗", "one more"])
    assert {len(vector) for vector in vectors} == {4 * int(model.space.rpartition("/")[2])}
    assert all(isclose(_dot(vector, vector), 1, abs_tol=1e-3) for vector in vectors)
    puppy, dog, tax = await model.embed(
        ["My puppy sleeps a lot", "The dog is asleep", "Taxes are due in April"]
    )
    assert _dot(puppy, dog) > _dot(puppy, tax) + 0.1
    texts = [f"{'word ' * number}end" for number in range(1, 9)]
    together, alone = await model.embed(texts), await model.embed(texts[3:4])
    assert _dot(together[3], alone[0]) > 0.98
    assert await model.embed([]) == []


async def test_vectors_have_one_size_and_length_and_are_near_for_what_is_alike() -> None:
    model = embedder("wordllama")
    assert model is not None
    await check_vectors(model)


async def test_a_text_of_a_million_characters_takes_no_longer_than_a_long_one() -> None:
    for part in ["x", "狗", "a log line, ", "\n"]:
        model = embedder("wordllama")
        assert model is not None, part
        text = (part * 1_000_000)[:1_000_000]
        await model.embed([text[:10]])
        began = process_time()
        (vector,) = await model.embed([text])
        assert process_time() - began < 0.5, part
        assert _dot(vector, (await model.embed([text[:30_000]]))[0]) > 0.999, part


def test_none_is_no_model_and_an_endpoint_needs_an_address() -> None:
    assert embedder("none") is None
    with pytest.raises(UsageError, match="embedding_model"):
        embedder("endpoint", model="m")
    with pytest.raises(UsageError, match="no embedding `e6`"):
        embedder("e6")


async def test_an_endpoint_that_cannot_be_reached_is_said_with_its_address() -> None:
    away = embedder("endpoint", model="m", url="http://127.0.0.1:9/v1")
    assert away is not None
    with pytest.raises(EmbeddingUnavailable, match=r"127\.0\.0\.1:9"):
        await away.embed(["x"])


class _Answers(BaseHTTPRequestHandler):
    """An endpoint that gives a text of n letters the vector (n, 0), in the wrong order."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = [
            {"index": place, "embedding": [len(text), 0]}
            for place, text in enumerate(asked["input"])
        ]
        body = json.dumps({"data": rows[::-1]}).encode()
        self.send_response(200 if self.path == "/v1/embeddings" and asked["model"] == "m" else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


async def test_an_endpoint_is_asked_in_batches_and_its_vectors_are_made_length_one() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        model = embedder("endpoint", model="m", url=f"http://127.0.0.1:{server.server_port}/v1")
        assert model is not None
        vectors = await model.embed(["x" * number for number in range(1, 100)])
        server.shutdown()
    assert {tuple(array("f", vector)) for vector in vectors} == {(1.0, 0.0)}
    assert len(vectors) == 99
