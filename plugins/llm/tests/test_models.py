import anyio
import pytest
from sideband import Plugin
from sideband.ops import OpDenied
from sideband.providers import ProviderUnconfigured
from sideband_llm import ProviderUnknown

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


async def test_models_of_all_providers_are_listed(open_host, make):
    large = make.info(id="z", context_window=1_000, images=True, prices=make.prices(input=1, output=2))
    async with open_host(make.provider(), make.provider("alpha", [large])) as host:
        found = await host.op("llm.models", {})
    assert [one["name"] for one in found["models"]] == ["alpha:z", "fake:m", "fake:n"]
    first = found["models"][0]
    assert (first["provider"], first["context_window"], first["images"], first["thinking"]) == (
        "alpha",
        1_000,
        True,
        None,
    )
    assert first["prices"]["output"] == 2
    assert (found["problems"], found["setup"]) == ([], [])


async def test_failing_provider_is_reported_and_does_not_hide_others(open_host, make):
    closed = make.provider("closed", ProviderUnconfigured("closed", "there is no key", hint="export CLOSED_API_KEY=…"))
    broken = make.provider("broken", [{"id": "m"}])
    crashed = make.provider("crashed", KeyError("data"))
    async with open_host(make.provider(), closed, broken, crashed) as host:
        found = await host.op("llm.models", {})
    assert [one["name"] for one in found["models"]] == ["fake:m", "fake:n"]
    problems = {one["provider"]: one for one in found["problems"]}
    assert problems["closed"] == {
        "provider": "closed",
        "code": "provider.unconfigured",
        "message": "closed: there is no key",
        "hint": "export CLOSED_API_KEY=…",
    }
    assert "got dict" in problems["broken"]["message"]
    assert "KeyError" in problems["crashed"]["message"]


async def test_provider_whose_plugin_fails_to_load_is_reported(open_host, make):
    plugin = Plugin(kind="provider", name="wrong", value=object())
    async with open_host(make.provider(), plugins=[plugin]) as host:
        found = await host.op("llm.models", {})
    assert [one["provider"] for one in found["problems"]] == ["wrong"]
    assert len(found["models"]) == 2


@BOTH_BACKENDS
async def test_providers_are_listed_concurrently(open_host, make):
    met = anyio.Event()

    async def first():
        await met.wait()
        return [make.info(id="a")]

    async def second():
        met.set()
        return [make.info(id="b")]

    async with open_host(make.provider("one", first), make.provider("two", second)) as host:
        found = await host.op("llm.models", {})
    assert [one["name"] for one in found["models"]] == ["one:a", "two:b"]


@BOTH_BACKENDS
async def test_provider_that_times_out_is_reported(open_host, make, monkeypatch):
    monkeypatch.setattr("sideband_llm._survey._SECONDS", 0.2)
    async with open_host(make.provider(), make.provider("slow", anyio.sleep_forever)) as host:
        found = await host.op("llm.models", {})
    assert [one["code"] for one in found["problems"]] == ["provider.timeout"]
    assert len(found["models"]) == 2


async def test_list_can_be_limited_to_one_provider(open_host, make):
    other = make.provider("other")
    async with open_host(make.provider(), other) as host:
        found = await host.op("llm.models", {"provider": "fake"})
        with pytest.raises(ProviderUnknown):
            await host.op("llm.models", {"provider": "none"})
    assert {one["provider"] for one in found["models"]} == {"fake"}
    assert other.list_calls == 0


async def test_setup_is_returned_if_no_model_is_available(open_host):
    async with open_host(settings={"plugins": {"llm": {"aliases": {"fast": "openai:m"}}}}) as host:
        found = await host.op("llm.models", {})
    assert found["models"] == []
    assert len(found["setup"]) == 3
    assert found["aliases"] == {"fast": "openai:m"}


async def test_listing_requires_a_grant(host, fake):
    with pytest.raises(OpDenied):
        await host.op("llm.models", {}, grants=[])
    await host.op("llm.models", {}, grants=["llm:model=fake:m"])
    assert fake.list_calls == 1
