"""The provider passes the tests that every provider passes."""

import pytest
from sideband.messages import TextPart, UserMessage
from sideband.providers import ModelRequest
from sideband_testing import ProviderConformance

ASKED = ModelRequest(model="claude-haiku-4-5", messages=(UserMessage(content=(TextPart(text="hello"),)),))


# httpx does not close the body of a request that is cancelled while it is sent. It holds no resource.
@pytest.mark.filterwarnings("ignore:Async generator 'httpx._content.ByteStream:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestAnthropic(ProviderConformance):
    plugin = "provider.anthropic"
    config = {"base_url": "{server}"}
    max_modules = 120
    max_steps = 8
    requests = (ASKED,)

    @pytest.fixture(autouse=True)
    def answering(self, http_server, say):
        usage = {"input_tokens": 3, "output_tokens": 1}
        events = say.sse(say.start(usage), *say.text(0, "hel", "lo"), *say.end(output_tokens=2))
        http_server.reply(events, kind="text/event-stream")
        self.values["server"] = http_server.origin
