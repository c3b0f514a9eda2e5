"""A host with this plugin, and a provider with scripted summaries."""

from types import SimpleNamespace

import pytest
import sideband_compaction.plugin
import sideband_llm.plugin
from attrs import define, field
from sideband import Plugin
from sideband.hooks import Compaction
from sideband.messages import AssistantMessage, UserMessage, to_data
from sideband.providers import Finished, ModelInfo


@define
class Model:
    """A provider with scripted ``answers``, one for each call: a text, a message, or an error."""

    name: str = "fake"
    answers: list = field(factory=list)
    requests: list = field(factory=list)
    answering: object = None

    async def models(self, ctx):
        return [ModelInfo(id="m")]

    async def stream(self, request, ctx):
        self.requests.append(request)
        if self.answering is not None:
            await self.answering(request)
        answer = self.answers.pop(0) if self.answers else "a summary"
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        yield Finished(message=answer if isinstance(answer, AssistantMessage) else AssistantMessage(content=answer))

    @property
    def prompts(self):
        return [one.messages[0].text for one in self.requests]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def reports():
    return []


@pytest.fixture
def open_host(sideband_host, model):
    def open_one(**config):
        plugins = [
            Plugin(kind="op", name="llm", value=sideband_llm.plugin),
            Plugin(kind="hook", name="compaction", value=sideband_compaction.plugin),
            Plugin(kind="provider", name="fake", value=SimpleNamespace(sideband_providers=lambda: [model])),
        ]
        settings = {"plugins": {"compaction": {"model": "fake:m", **config}}}
        return sideband_host(*plugins, settings=settings)

    return open_one


@pytest.fixture
async def host(open_host):
    async with open_host() as one:
        yield one


@pytest.fixture
def event():
    """Build a compaction of these messages, or of two long ones."""

    def make(*messages, turn_prefix=(), **fields):
        messages = messages or (
            UserMessage(content="Rename the module. " * 20),
            AssistantMessage(content="I look at it. " * 20),
        )
        return Compaction(
            session="s",
            first_kept="e9",
            messages=[to_data(one) for one in messages],
            turn_prefix=[to_data(one) for one in turn_prefix],
            **fields,
        )

    return make
