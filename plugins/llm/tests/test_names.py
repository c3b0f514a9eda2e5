import pytest
from sideband.ops import OpDenied
from sideband_llm import ModelUnclear, ProviderUnknown

pytestmark = pytest.mark.anyio


async def test_unknown_provider_error_suggests_the_closest_and_the_setup(host, ask):
    with pytest.raises(ProviderUnknown, match=r"did you mean `fake`") as caught:
        await ask(host, "fakes:m")
    assert caught.value.code == "llm.provider"
    assert all(f"{number}. " in caught.value.hint for number in (1, 2, 3))


async def test_unknown_provider_error_without_providers_suggests_the_setup(open_host, ask):
    async with open_host() as host:
        with pytest.raises(ProviderUnknown, match="no provider is installed") as caught:
            await ask(host, "openai:m")
    assert "OPENAI_API_KEY" in caught.value.hint


async def test_bare_name_that_one_provider_has_is_resolved(open_host, make, ask):
    other = make.provider("other", [make.info(id="x")])
    async with open_host(make.provider(), other) as host:
        assert (await ask(host, "x"))["model"] == "other:x"


async def test_bare_name_that_two_providers_have_is_ambiguous(open_host, make, ask):
    async with open_host(make.provider(), make.provider("other")) as host:
        with pytest.raises(ModelUnclear, match="fake:m, other:m") as caught:
            await ask(host, "m")
    assert caught.value.code == "llm.model"
    assert "provider:model" in caught.value.hint


async def test_unknown_bare_name_suggests_the_closest(open_host, make, ask):
    async with open_host(make.provider(listed=[make.info(id="large-model")])) as host:
        with pytest.raises(ModelUnclear, match=r"did you mean `fake:large-model`"):
            await ask(host, "large-modell")


async def test_grant_for_a_bare_name_does_not_cover_the_full_name(host, fake, ask):
    with pytest.raises(OpDenied, match=r"llm:model=fake:m"):
        await ask(host, "m", grants=["llm:model=m"])
    assert fake.requests == []


async def test_alias_is_resolved_and_can_be_granted(open_host, fake, ask):
    async with open_host(fake, settings={"plugins": {"llm": {"aliases": {"fast": "fake:m"}}}}) as host:
        assert (await ask(host, "fast", grants=["llm:model=fast"]))["model"] == "fake:m"
        with pytest.raises(OpDenied):
            await ask(host, "fast", grants=["llm:model=fake:*"])


async def test_model_name_may_contain_a_colon(host, fake, ask):
    assert (await ask(host, "fake:llama:3b"))["model"] == "fake:llama:3b"
    assert fake.requests[0].model == "llama:3b"


@pytest.mark.parametrize(
    "table",
    [
        {"aliases": {"a:b": "fake:m"}},
        {"aliases": {"fast": "faster"}},
        {"prices": {"m": {"input": 1, "output": 1}}},
        {"prices": {"fake:m": {"input": -1, "output": 1}}},
    ],
    ids=str,
)
async def test_invalid_configuration_is_rejected(open_host, fake, ask, table):
    async with open_host(fake, settings={"plugins": {"llm": table}}) as host:
        with pytest.raises(Exception, match=r"plugins\.llm"):
            await ask(host)
