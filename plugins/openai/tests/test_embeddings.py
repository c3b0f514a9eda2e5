"""Embeddings: the request, the order of the vectors, and answers that are refused."""

import json

import pytest
import sideband_llm.plugin
import sideband_openai.plugin
from sideband import Plugin
from sideband.providers import ProviderError

pytestmark = pytest.mark.anyio
ANSWER = {
    "object": "list",
    "data": [
        {"object": "embedding", "index": 1, "embedding": [0.5, -1]},
        {"object": "embedding", "index": 0, "embedding": [1, 0.25]},
    ],
    "model": "small",
    "usage": {"prompt_tokens": 7, "total_tokens": 7},
}


@pytest.fixture
def embed(sideband_host, credentials, server):
    """Return a function that requests the vectors of two texts."""

    async def request(**config):
        plugins = [
            Plugin("provider", "openai", sideband_openai.plugin),
            Plugin("op", "llm", sideband_llm.plugin),
            credentials.plugin,
        ]
        settings = {"plugins": {"openai": {"base_url": server.base_url, **config}}}
        async with sideband_host(*plugins, settings=settings) as host:
            result = await host.op("llm.embed", {"model": "openai:small", "texts": ["one", "two"]})
            return result.output if hasattr(result, "output") else result

    return request


def answer(server, data, **options):
    server.reply({"data": []}, kind="application/json", path="/v1/models")
    server.reply(data, **{"kind": "application/json", "path": "/v1/embeddings", **options})


async def test_vectors_are_in_the_order_of_the_texts(embed, server):
    answer(server, ANSWER)
    found = await embed()
    assert [list(one) for one in found["vectors"]] == [[1, 0.25], [0.5, -1]]
    assert (found["model"], found["usage"]["input"]) == ("openai:small", 7)
    (request,) = server.requests_to("/v1/embeddings")
    assert request.method == "POST"
    assert json.loads(request.body) == {"model": "small", "input": ["one", "two"], "encoding_format": "float"}


async def test_vectors_without_an_index_or_usage_are_in_the_order_of_the_texts(embed, server):
    answer(server, {"data": [{"embedding": [1]}, {"embedding": [2]}]})
    assert [list(one) for one in (await embed())["vectors"]] == [[1], [2]]


async def test_azure_deployment_is_named_in_the_path(embed, server):
    path = "/v1/openai/deployments/small/embeddings"
    answer(server, ANSWER, path=path)
    await embed(api_version="2024-10-21")
    assert server.requests[-1].path.startswith(path)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"data": ANSWER["data"][:1]}, "1 embeddings for 2 texts"),
        ({"data": [ANSWER["data"][0]] * 2}, "an embedding with the index 1"),
        ({"data": [{"embedding": [1]}, {"embedding": "AAAA"}]}, "not a list of numbers"),
        ({"data": [{"embedding": [1]}, {"embedding": [None]}]}, "not a list of numbers"),
        ({"data": [{"embedding": [1]}, {"embedding": []}]}, "not a list of numbers"),
        ({"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}, "2 vectors of one length"),
        ({"data": [{"embedding": [1]}, 5]}, "not an object"),
        ({}, "0 embeddings for 2 texts"),
        ("<html>", "invalid JSON"),
    ],
)
async def test_answer_without_one_vector_for_each_text_is_refused(embed, server, data, problem):
    answer(server, data)
    with pytest.raises(ProviderError, match=problem):
        await embed()


async def test_error_of_the_server_is_passed_on(embed, server):
    answer(server, {"error": {"message": "no such model"}}, status=404)
    with pytest.raises(ProviderError, match="no such model"):
        await embed()
