"""Attachments of inputs: stored, sent with every request, and refused with a secret."""

import pytest
from sideband.messages import AudioPart, FilePart, ImageUrlPart, UserMessage
from sideband_agent import AttachmentRefused

pytestmark = pytest.mark.anyio

SECRET = "hunter2-hunter2-hunter2"
PARTS = (
    ImageUrlPart(url="https://images.example/a.png"),
    FilePart(media_type="application/pdf", data="JVBERi0=", name="a.pdf"),
    AudioPart(media_type="audio/wav", data="UklGRg=="),
)


async def test_attachments_are_stored_and_sent_with_every_request(stage):
    async with stage(["one", "two"]) as agent:
        await agent.invoke("look", attachments=PARTS)
        await agent.invoke("again")
        for request in agent.scripted.requests:
            assert request.messages[0].content[1:] == PARTS
        assert agent.session.messages()[0].content[1:] == PARTS


async def test_attachments_may_be_sent_without_a_text(stage):
    async with stage(["one"]) as agent:
        assert (await agent.invoke("", attachments=PARTS[:1])).text == "one"


async def invoke(agent, part):
    await agent.invoke("look", attachments=[part])


async def steer(agent, part):
    agent.steer("look", attachments=[part])


async def follow_up(agent, part):
    agent.follow_up("look", attachments=[part])


@pytest.mark.parametrize("given", [invoke, steer, follow_up])
async def test_attachment_with_a_secret_is_refused_before_it_is_stored(stage, given):
    link = ImageUrlPart(url=f"https://images.example/a.png?key={SECRET}")
    async with stage(["never"]) as agent:
        agent.host.broker.redactor.protect(SECRET, "github")
        with pytest.raises(AttachmentRefused, match="`github`"):
            await given(agent, link)
        assert agent.session.messages() == ()
        assert not agent.queues
        assert agent.scripted.requests == []


async def test_secret_that_becomes_known_later_is_not_sent_again(stage):
    link = ImageUrlPart(url=f"https://images.example/a.png?key={SECRET}")
    async with stage(["one", "never"]) as agent:
        await agent.invoke("look", attachments=[link])
        agent.host.broker.redactor.protect(SECRET, "github")
        result = await agent.invoke("again")
        assert (result.status, result.error["code"]) == ("failed", "op.egress")
        assert len(agent.scripted.requests) == 1


async def test_stored_message_keeps_data_and_loses_secrets_in_names_and_addresses(stage):
    """A plugin may store parts that the agent did not check. Redaction would damage the data of a file."""
    kept = FilePart(media_type="application/pdf", data=SECRET, name=f"{SECRET}.pdf")
    link = ImageUrlPart(url=f"https://images.example/{SECRET}")
    async with stage([]) as agent:
        agent.host.broker.redactor.protect(SECRET, "github")
        recording = AudioPart(media_type="audio/wav", data=SECRET)
        await agent.session.append_message(UserMessage(content=(kept, recording, link)), run="r", step="")
        file, audio, image = agent.session.messages()[-1].content
    assert (file.data, audio.data) == (SECRET, SECRET)
    assert SECRET not in f"{file.name} {image.url}"
