"""`llm.embed`: which providers have it, what is checked, and what it costs."""

import pytest
from sideband.messages import Usage
from sideband.ops import EgressRefused
from sideband.providers import Embeddings, ModelInfo, Prices, ProviderError
from sideband_llm import ModelUnable

from .conftest import Fake

pytestmark = pytest.mark.anyio
TEXTS = ["one", "two"]


class Embedder(Fake):
    answer = Embeddings(vectors=((1.0, 0.0), (0.0, 1.0)), usage=Usage(input=500_000))

    async def embed(self, request, ctx):
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def embedder():
    return Embedder(listed=[ModelInfo(id="m", prices=Prices(input=2, output=0))])


async def test_vectors_come_with_the_full_name_of_the_model_and_the_cost(open_host, embedder):
    async with open_host(embedder) as host:
        found = await host.op("llm.embed", {"model": "m", "texts": TEXTS})
    assert [list(one) for one in found["vectors"]] == [[1, 0], [0, 1]]
    assert (found["model"], found["usage"]["cost"]) == ("fake:m", 1.0)
    assert (embedder.requests[0].model, embedder.requests[0].texts) == ("m", ("one", "two"))


async def test_provider_without_embeddings_is_refused_by_name(open_host, fake):
    async with open_host(fake) as host:
        with pytest.raises(ModelUnable, match="fake:m does not support embeddings"):
            await host.op("llm.embed", {"model": "fake:m", "texts": TEXTS})


@pytest.mark.parametrize(
    "answer", [Embeddings(vectors=((1.0,),)), Embeddings(vectors=((1.0,), (1.0, 2.0))), "no", KeyError("bug")], ids=str
)
async def test_answer_without_one_vector_for_each_text_is_an_error_of_the_provider(open_host, embedder, answer):
    embedder.answer = answer
    async with open_host(embedder) as host:
        with pytest.raises(ProviderError):
            await host.op("llm.embed", {"model": "fake:m", "texts": TEXTS})


async def test_secret_in_a_text_is_not_sent(open_host, embedder, credentials):
    async with open_host(embedder, plugins=[credentials.plugin]) as host:
        host.redactor.protect("hunter2hunter2", "door")
        with pytest.raises(EgressRefused):
            await host.op("llm.embed", {"model": "fake:m", "texts": ["the key is hunter2hunter2"]})
    assert embedder.requests == []
