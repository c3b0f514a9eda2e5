"""The provider passes the tests that every provider passes."""

import pytest
from sideband.messages import TextPart, UserMessage
from sideband.providers import ModelRequest
from sideband_testing.conformance import ProviderConformance

SCRIPT = """
[models.answer]
repeat = true
turns = [{ text = "hello", thinking = "hm", usage = { input = 1, output = 2 } }]
[models.broken]
repeat = true
turns = [{ text = "hello there", broken_after = 1 }]
"""


def asking(model):
    return ModelRequest(model=model, messages=(UserMessage(content=(TextPart(text="hello"),)),))


class TestScripted(ProviderConformance):
    plugin = "provider.scripted"
    config = {"script": "{script}"}
    max_modules = 40
    requests = (asking("answer"),)
    failing = {"provider.stream": asking("broken"), "scripted.unknown": asking("nothing")}

    @pytest.fixture(autouse=True)
    def script(self, tmp_path):
        path = tmp_path / "script.toml"
        path.write_text(SCRIPT)
        self.values["script"] = str(path)
