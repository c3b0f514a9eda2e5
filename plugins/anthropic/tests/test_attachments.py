"""Images by address, files and recordings, in the form of the Messages API."""

from base64 import b64encode

import pytest
from sideband.messages import AudioPart, FilePart, ImageUrlPart, TextPart, UserMessage
from sideband.providers import ProviderError

pytestmark = pytest.mark.anyio

DATA = b64encode(b"content").decode()
LINK = ImageUrlPart(url="https://images.example/a.png?b=c")
PDF = FilePart(media_type="application/pdf", data=DATA, name="a.pdf")
NOTES = FilePart(media_type="text/markdown", data=DATA, name="a.md")
SHEET = FilePart(media_type="application/vnd.ms-excel", data=DATA, name="a.xls")
WAV = AudioPart(media_type="audio/wav", data=DATA)


@pytest.fixture
def server(shared_server):
    return shared_server


@pytest.fixture
def host(shared_host):
    return shared_host


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (LINK, {"type": "image", "source": {"type": "url", "url": LINK.url}}),
        (
            PDF,
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": DATA},
                "title": "a.pdf",
            },
        ),
        (
            NOTES,
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "content"},
                "title": "a.md",
            },
        ),
    ],
    ids=["image by address", "pdf", "text"],
)
async def test_attachment_in_the_form_of_the_api(host, server, listen, *, say, part, sent):
    server.reply(say.start(), *say.text(0, "x"), *say.end())
    await listen(host, UserMessage(content=(part, TextPart(text="look"))))
    assert server.bodies[-1]["messages"][0]["content"][0] == sent


@pytest.mark.parametrize(
    ("part", "words"),
    [(SHEET, ["`a.xls`", "application/vnd.ms-excel", "to a PDF"]), (WAV, ["audio", "transcript"])],
    ids=["spreadsheet", "audio"],
)
async def test_unsupported_attachment_is_refused_with_model_provider_and_remedy(host, server, listen, part, words):
    with pytest.raises(ProviderError) as caught:
        await listen(host, UserMessage(content=(part,)))
    error = caught.value
    assert (error.code, error.retryable) == ("provider.input", False)
    assert error.message.startswith("anthropic: `claude-haiku-4-5` ")
    assert all(word in f"{error.message} {error.hint}" for word in words)
    assert server.requests == []
