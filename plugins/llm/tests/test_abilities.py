import pytest
from sideband_llm import ModelUnable

pytestmark = pytest.mark.anyio

IMAGE = [{"role": "user", "content": [{"type": "image", "media_type": "image/png", "data": "aGk="}]}]
SHOWN = [
    {"role": "user", "content": "look"},
    {"role": "assistant", "content": [{"type": "tool_call", "id": "1", "name": "t"}]},
    {"role": "tool", "call": "1", "tool": "t", "content": IMAGE[0]["content"]},
]
TOOLS = [{"name": "t"}]
REQUESTS = [
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
