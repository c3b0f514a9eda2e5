"""The op family passes the tests that every op family passes."""

from types import SimpleNamespace

from sideband import Plugin
from sideband.providers import Embeddings, ProviderError
from sideband_scripted import Scripted
from sideband_testing.conformance import Example, OpFamilyConformance

MODEL = "scripted:test"
ASKED = [{"role": "user", "content": "hello"}]


class Vectors:
    name = "vectors"

    async def models(self, ctx):
        return ()

    async def stream(self, request, ctx):
        raise ProviderError(self.name, "it has no language models")
        yield

    async def embed(self, request, ctx):
        return Embeddings(vectors=tuple((float(len(text)), 1.0) for text in request.texts))


class TestLlm(OpFamilyConformance):
    plugin = "op.llm"
    also = (
        Plugin("provider", "scripted", Scripted(["hello"], repeat=True)),
        Plugin("provider", "vectors", SimpleNamespace(sideband_providers=lambda: [Vectors()])),
    )
    max_modules = 120
    max_steps = 5
    examples = (
        Example("llm.generate", {"model": MODEL, "messages": ASKED}),
        Example("llm.generate", {"model": "none:test", "messages": ASKED}, error="llm.provider"),
        Example("llm.embed", {"model": "vectors:test", "texts": ["hello"]}),
        Example("llm.embed", {"model": MODEL, "texts": ["hello"]}, error="llm.unable"),
        Example("llm.models", {}),
        Example("llm.oneshot", {"model": MODEL, "prompt": "hello"}),
        Example("llm.chat", {"model": MODEL, "messages": ASKED}),
        Example("llm.agent", {"model": MODEL, "prompt": "hello"}),
        Example("llm.resolve_tools", {"tools": []}),
    )
