"""Images by address, files and recordings, as each protocol receives them."""

import json
from base64 import b64encode
from functools import partial

import pytest
from sideband.providers import ProviderError
from sideband_openai._chat_request import chat_body
from sideband_openai._messages import has_audio
from sideband_openai._responses_request import responses_body

pytestmark = pytest.mark.anyio

DATA = b64encode(b"content").decode()
LOOK = {"type": "text", "text": "look"}
LINK = {"type": "image_url", "url": "https://images.example/a.png?b=c"}
PDF = {"type": "file", "media_type": "application/pdf", "data": DATA, "name": "a.pdf"}
NOTES = {"type": "file", "media_type": "text/markdown", "data": DATA, "name": "a.md"}
SHEET = {"type": "file", "media_type": "application/vnd.ms-excel", "data": DATA, "name": "a.xls"}
WAV = {"type": "audio", "media_type": "audio/x-wav", "data": DATA}
MP3 = {"type": "audio", "media_type": "audio/mpeg", "data": DATA}
OGG = {"type": "audio", "media_type": "audio/ogg", "data": DATA}


def asking(make, part):
    return make.request(messages=[{"role": "user", "content": [LOOK, part]}])


@pytest.mark.parametrize("official", [True, False])
@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (LINK, {"type": "image_url", "image_url": {"url": LINK["url"]}}),
        (PDF, {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}}),
        (NOTES, {"type": "text", "text": "a.md:\n\ncontent"}),
        (WAV, {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}}),
        (MP3, {"type": "input_audio", "input_audio": {"data": DATA, "format": "mp3"}}),
    ],
    ids=["image by address", "pdf", "text", "wav", "mp3"],
)
def test_attachment_in_the_form_of_chat_completions(make, part, sent, official):
    body = json.loads(bytes(chat_body(asking(make, part), "openai", official=official)))
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "look"}, sent]}]


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (
            SHEET,
            {"type": "file", "file": {"filename": "a.xls", "file_data": f"data:{SHEET['media_type']};base64,{DATA}"}},
        ),
        (OGG, {"type": "input_audio", "input_audio": {"data": DATA, "format": "ogg"}}),
    ],
    ids=["spreadsheet", "ogg"],
)
def test_compatible_service_may_accept_more_types_than_openai(make, part, sent):
    body = json.loads(bytes(chat_body(asking(make, part), "openai-x", official=False)))
    assert body["messages"][0]["content"][1] == sent


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (LINK, {"type": "input_image", "image_url": LINK["url"], "detail": "auto"}),
        (PDF, {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}),
        (NOTES, {"type": "input_file", "filename": "a.md", "file_data": f"data:text/markdown;base64,{DATA}"}),
        (SHEET, {"type": "input_file", "filename": "a.xls", "file_data": f"data:{SHEET['media_type']};base64,{DATA}"}),
    ],
    ids=["image by address", "pdf", "text", "spreadsheet"],
)
def test_attachment_in_the_form_of_responses(make, part, sent):
    (item,) = json.loads(bytes(responses_body(asking(make, part), "openai", official=True, summaries=None)))["input"]
    assert item["content"] == [{"type": "input_text", "text": "look"}, sent]


@pytest.mark.parametrize(
    ("part", "api", "words"),
    [
        (SHEET, "chat", ["`a.xls`", "application/vnd.ms-excel", "Responses"]),
        (OGG, "chat", ["audio/ogg", "WAV or MP3"]),
        (WAV, "responses", ["audio", 'api = "chat"']),
    ],
    ids=["spreadsheet", "ogg", "audio"],
)
def test_unsupported_attachment_is_refused_with_model_provider_and_remedy(make, part, api, words):
    convert = chat_body if api == "chat" else partial(responses_body, summaries=None)
    with pytest.raises(ProviderError) as caught:
        convert(asking(make, part), "openai", official=True)
    error = caught.value
    assert (error.code, error.retryable, error.message.startswith("openai: `test` ")) == ("provider.input", False, True)
    assert all(word in f"{error.message} {error.hint}" for word in words)


async def test_nothing_is_sent_for_an_unsupported_attachment(open_client, server, make):
    async with open_client(base_url=server.base_url, api="responses") as client:
        with pytest.raises(ProviderError, match="audio through Responses"):
            await client.ask(asking(make, WAV))
    assert server.requests == []


def test_request_with_audio_is_recognized(make):
    """With ``api = "auto"``, it uses Chat Completions, because Responses does not support audio."""
    assert has_audio(asking(make, WAV))
    assert not has_audio(asking(make, PDF))


async def test_listed_models_report_what_they_accept(client, server):
    kinds = {"input_modalities": ["text", "image", "file", "audio"]}
    entries = [{"id": "a", "architecture": kinds}, {"id": "b", "architecture": {"input_modalities": ["text"]}}]
    server.reply({"data": entries}, kind="application/json")
    first, second = await client.models()
    assert (first.images, first.files, first.audio) == (True, True, True)
    assert (second.images, second.audio, "files" in second.model_fields_set) == (False, False, False)
