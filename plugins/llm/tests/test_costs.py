import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st
from sideband.messages import Usage
from sideband.providers import Finished, Prices, ProviderRefused, StreamBroken

PRICES = {"input": 1, "output": 10, "cache_read": 0.1}
CONFIGURED = {"plugins": {"llm": {"prices": {"fake:m": {"input": 1000, "output": 0, "cache_read": 0}}}}}


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_cached_tokens_cost_as_much_as_input_by_default(fresh, output, read, written):
    prices = Prices(input=2, output=5)
    usage = Usage(input=fresh, output=output, cache_read=read, cache_write=written)
    assert prices.cost(usage) == pytest.approx((2 * (fresh + read + written) + 5 * output) / 1e6)


@pytest.mark.anyio
async def test_cost_uses_prices_of_the_provider(open_host, make, ask):
    fake = make.provider(listed=[make.info(id="m", prices=make.prices(**PRICES))])
    async with open_host(fake) as host:
        assert (await ask(host))["usage"]["cost"] == pytest.approx(0.001 + 0.001 + 0.00005)


@pytest.mark.anyio
async def test_cost_is_unset_without_prices(host, ask):
    assert (await ask(host))["usage"]["cost"] is None


@pytest.mark.anyio
async def test_cost_reported_by_the_provider_takes_precedence_over_its_prices(open_host, make, ask):
    fake = make.provider(listed=[make.info(id="m", prices=make.prices(**PRICES))])
    fake.script = [make.answer(usage=Usage(input=5, cost=0.25))]
    async with open_host(fake) as host:
        assert (await ask(host))["usage"]["cost"] == 0.25


@pytest.mark.anyio
async def test_configured_prices_take_precedence(open_host, make, ask):
    fake = make.provider(listed=[make.info(id="m", prices=make.prices(**PRICES))])
    fake.script = [make.answer(usage=Usage(input=1_000, cost=0.25))]
    async with open_host(fake, settings=CONFIGURED) as host:
        assert (await ask(host))["usage"]["cost"] == pytest.approx(1.0)


@pytest.mark.anyio
async def test_models_are_requested_once(open_host, make, ask):
    async def listed():
        await checkpoint()
        return [make.info(id="m")]

    fake = make.provider(listed=listed)
    async with open_host(fake) as host:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask, host)
        await ask(host)
    assert fake.list_calls == 1
    assert len(fake.requests) == 6


@pytest.mark.anyio
async def test_model_is_called_even_if_listing_fails(open_host, make, ask):
    fake = make.provider(listed=RuntimeError("no list"))
    async with open_host(fake) as host:
        assert (await ask(host))["usage"]["cost"] is None
        await ask(host)
    assert fake.list_calls == 1


@pytest.mark.anyio
@pytest.mark.parametrize(("usage", "cost"), [(Usage(input=1_000_000), 1.0), (Usage(input=5, cost=0.25), 0.25)])
async def test_failed_call_has_a_cost(open_host, make, ask, usage, cost):
    fake = make.provider(listed=[make.info(id="m", prices=make.prices(**PRICES))])
    fake.script = [ProviderRefused("fake", "overloaded", status=529, usage=usage)]
    async with open_host(fake) as host:
        with pytest.raises(ProviderRefused) as caught:
            await ask(host)
    assert caught.value.usage.cost == pytest.approx(cost)
    assert caught.value.as_dict()["usage"]["cost"] == pytest.approx(cost)


@pytest.mark.anyio
async def test_rejected_answer_has_a_cost(open_host, make, ask):
    fake = make.provider(listed=[make.info(id="m", prices=make.prices(**PRICES))])
    fake.script = [make.answer(usage=Usage(input=1_000_000)), make.answer()]
    async with open_host(fake) as host:
        with pytest.raises(StreamBroken, match="continued") as caught:
            await ask(host)
    assert caught.value.usage.cost == pytest.approx(1.0)


@pytest.mark.anyio
@pytest.mark.parametrize("usage", ["much", {"input": 1}, Usage.model_construct(input=-5, cost=float("nan"))], ids=str)
async def test_invalid_usage_of_a_failed_call_is_ignored(open_host, make, ask, usage):
    fake = make.provider(script=[ProviderRefused("fake", "overloaded", status=529, usage=usage)])
    async with open_host(fake) as host:
        with pytest.raises(ProviderRefused) as caught:
            await ask(host)
    assert caught.value.usage is None


@pytest.mark.anyio
async def test_invalid_usage_of_a_rejected_answer_is_ignored(open_host, make, ask):
    fake = make.provider(script=[Finished.model_construct(message=None), make.answer()])
    async with open_host(fake) as host:
        with pytest.raises(StreamBroken) as caught:
            await ask(host)
    assert caught.value.usage is None


@pytest.mark.anyio
@pytest.mark.parametrize("price", [1e20, 1e300])
async def test_cost_by_absurd_prices_of_a_server_is_a_valid_number(open_host, make, ask, price):
    fake = make.provider(listed=[make.info(id="m", prices=make.prices(input=price, output=price))])
    usage = Usage(input=10**15, output=10**15)
    fake.script = [make.answer(usage=usage)]
    async with open_host(fake) as host:
        assert (await ask(host))["usage"] == {**usage.model_dump(), "cost": 1e15}
        fake.script = [ProviderRefused("fake", "overloaded", status=529, usage=usage)]
        with pytest.raises(ProviderRefused) as caught:
            await ask(host)
    assert Usage.model_validate(caught.value.usage.model_dump()).cost == 1e15


@pytest.mark.parametrize("price", [float("inf"), float("nan"), -1])
def test_price_that_is_not_a_finite_number_is_invalid(price):
    with pytest.raises(ValueError, match="input"):
        Prices(input=price, output=1)
