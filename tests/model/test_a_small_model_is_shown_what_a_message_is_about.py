"""Among functions with shared words, a small model is shown first the one that fits the message best."""

from agent_core.base.messages import User
from agent_core.memory.embedding import embedder
from agent_core.model.conversation import compared, find
from agent_core.model.request import FunctionShown, Request
from agent_core.runtime.host_functions import standard
from benchmarks.growth_requests import DOMAINS, requests

_ROWS = "Work out one value for each of these orders: total, count, largest and smallest.\n\n"


async def test_the_function_with_the_rule_of_the_request_comes_first() -> None:
    domain = DOMAINS["shop"]
    given = [FunctionShown(name, f"Return {one.words}.", {}) for name, one in domain.functions.items()]
    made = [FunctionShown(family.name, _ROWS + family.rule(), {}) for family in domain.families(1)]
    asked = [*requests(domain, 1, 2)]
    program = [FunctionShown(name, host.function.description, {}, is_host=True) for name, host in standard().items()]
    default, functions = embedder("wordllama"), (*program, *given, *made)
    assert default is not None
    texts = compared(Request(tuple(User(one.text) for one in asked), functions))
    vectors = dict(zip(texts, await default.embed(texts), strict=True))
    for place in range(5):
        first = [find(one.text, functions, vectors)[0].name for one in asked if one.number % 5 == place]
        assert first.count(domain.families(1)[place].name) >= len(first) - 1, first
