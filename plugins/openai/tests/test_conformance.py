"""The provider passes the tests that every provider passes."""

import pytest
from sideband.messages import TextPart, UserMessage
from sideband.providers import ModelRequest
from sideband_testing import ProviderConformance


def asking(model):
    return ModelRequest(model=model, messages=(UserMessage(content=(TextPart(text="hello"),)),))


# httpx does not close the body of a request that is cancelled while it is sent. It holds no resource.
@pytest.mark.filterwarnings("ignore:Async generator 'httpx._content.ByteStream:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestOpenAI(ProviderConformance):
    plugin = "provider.openai"
    config = {"base_url": "{server}", "local": False}
    max_modules = 120
    max_steps = 8
    requests = (asking("m"),)

    @pytest.fixture(autouse=True)
    def answering(self, server, make):
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        server.reply(make.events(make.chunk(content="hel"), make.chunk(finish="stop", content="lo", usage=usage)))
        self.values["server"] = server.base_url
