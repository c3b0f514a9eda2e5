import pytest
from sideband.ops import OpDenied
from sideband_llm import ModelUnable

pytestmark = pytest.mark.anyio

IMAGE = [{"role": "user", "content": [{"type": "image", "media_type": "image/png", "data": "aGk="}]}]
SHOWN = [
    {"role": "user", "content": "look"},
    {"role": "assistant", "content": [{"type": "tool_call", "id": "1", "name": "t"}]},
    {"role": "tool", "call": "1", "tool": "t", "content": IMAGE[0]["content"]},
]
TOOLS = [{"name": "t"}]
LINK = [{"role": "user", "content": [{"type": "image_url", "url": "https://images.example/a.png"}]}]
PDF = [{"role": "user", "content": [{"type": "file", "media_type": "application/pdf", "data": "aGk=", "name": "a"}]}]
WAV = [{"role": "user", "content": [{"type": "audio", "media_type": "audio/wav", "data": "aGk="}]}]
REQUESTS = [
    ("images", {"messages": LINK}),
    ("files", {"messages": PDF}),
    ("audio", {"messages": WAV}),
    ("images", {"messages": IMAGE}),
    ("images", {"messages": SHOWN}),
    ("thinking", {"thinking": "low"}),
    ("tools", {"tools": TOOLS}),
]


@pytest.mark.parametrize(("ability", "request_"), REQUESTS)
async def test_unsupported_request_is_rejected_before_the_model_is_called(open_host, make, ask, ability, request_):
    fake = make.provider(listed=[make.info(id="m", **{ability: False})])
    async with open_host(fake) as host:
        with pytest.raises(ModelUnable, match=ability) as caught:
            await ask(host, **request_)
    assert (caught.value.code, bool(caught.value.hint)) == ("llm.unable", True)
    assert fake.requests == []


@pytest.mark.parametrize(("ability", "request_"), REQUESTS)
async def test_request_is_sent_if_abilities_are_unknown(host, fake, ask, ability, request_):
    await ask(host, **request_)
    assert len(fake.requests) == 1


@pytest.mark.parametrize("request_", [{"thinking": "off"}, {"tools": TOOLS, "tool_choice": "none"}, {}], ids=str)
async def test_unsupported_features_may_be_disabled_in_the_request(open_host, make, ask, request_):
    fake = make.provider(listed=[make.info(id="m", images=False, thinking=False, tools=False)])
    async with open_host(fake) as host:
        await ask(host, **request_)
    assert len(fake.requests) == 1


async def test_text_file_is_not_a_matter_of_ability(open_host, make, ask):
    """Every protocol has a form for text."""
    fake = make.provider(listed=[make.info(id="m", files=False)])
    notes = {"type": "file", "media_type": "text/plain", "data": "aGk=", "name": "a.txt"}
    async with open_host(fake) as host:
        await ask(host, messages=[{"role": "user", "content": [notes]}])
    assert len(fake.requests) == 1


async def test_skill_cannot_make_the_provider_get_an_address(host, fake, ask):
    """The address could carry data to any server, beyond the rights of the skill."""
    with pytest.raises(OpDenied, match="address"):
        await ask(host, messages=LINK, skill="weather")
    assert fake.requests == []
    await ask(host, messages=IMAGE, skill="weather")
    await ask(host, messages=LINK)
    assert len(fake.requests) == 2


@pytest.mark.parametrize("option", ["model", "messages", "input", "tools", "web_search_options", "extra_body"])
async def test_skill_cannot_set_options_that_replace_the_request(host, fake, ask, option):
    with pytest.raises(OpDenied, match=f"`{option}`") as caught:
        await ask(host, options={option: "x", "top_p": 0.5}, skill="weather")
    assert "top_p" in caught.value.hint
    assert fake.requests == []
    await ask(host, options={option: "x"})
    await ask(host, options={"top_p": 0.5, "seed": 1}, skill="weather")
    assert len(fake.requests) == 2


async def test_address_with_a_secret_is_not_sent(host, fake, ask):
    host.broker.redactor.protect("hunter2-hunter2", "github")
    link = {"type": "image_url", "url": "https://images.example/a.png?key=hunter2-hunter2"}
    with pytest.raises(OpDenied, match="`github`"):
        await ask(host, messages=[{"role": "user", "content": [link]}])
    assert fake.requests == []
