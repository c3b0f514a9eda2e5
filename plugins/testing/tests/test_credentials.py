"""The fixture `credentials`, and the client of a provider."""


def test_plugins_get_the_secrets_that_the_test_chose(run_tests):
    result = run_tests("""
        from sideband.ops import OpFailed

        class Ask(BaseModel):
            handle: str

        @op("login.token")
        async def token(params: Ask, ctx) -> str:
            credential = await ctx.credential(params.handle, "https://example.com")
            return "sent" if credential.value else "nothing"

        LOGIN = Plugin("op", "login", type("Login", (), {"sideband_ops": lambda: OpFamily(name="login", ops=(token,))}))

        async def test_it(sideband_host, credentials):
            credentials.add("mine", "k3y-of-mine", "https://example.com")
            credentials.add("any", "k3y-of-any")
            credentials.add("other", "k3y-of-other", "https://elsewhere.example")
            credentials.add("headed", "k3y", X_Key="k3y")
            assert (await credentials.resolve("headed", "https://example.com", None)).headers == {"X_Key": "k3y"}
            credentials.resolved.clear()
            async with sideband_host(LOGIN, credentials.plugin) as host:
                for handle in ("mine", "any"):
                    assert await host.op("login.token", {"handle": handle}) == "sent"
                for handle, code in (("other", "secrets.audience"), ("missing", "secrets.missing")):
                    with pytest.raises(OpFailed) as caught:
                        await host.op("login.token", {"handle": handle})
                    assert caught.value.code == code
                granted = ["login", "secrets:name=mine,mode=use"]
                assert await host.op("login.token", {"handle": "mine"}, grants=granted) == "sent"
                credentials.failure = OpFailed("closed", code="secrets.locked")
                with pytest.raises(OpFailed, match="closed"):
                    await host.op("login.token", {"handle": "mine"})
            assert credentials.resolved[:2] == [("mine", "https://example.com"), ("any", "https://example.com")]
    """)
    result.assert_outcomes(passed=1)


def test_client_calls_a_provider_and_checks_its_stream(run_tests):
    result = run_tests("""
        from sideband.providers import Finished, TextDelta
        from sideband_testing import KitError, ProviderClient

        class Silent:
            name = "silent"

            def sideband_providers():
                return [Silent()]

            async def models(self, ctx):
                return []

            async def stream(self, request, ctx):
                yield TextDelta(text="half")

        async def test_it(sideband_host, scripted):
            model = scripted("Hello.", "Again.")
            async with sideband_host(model, Plugin("provider", "silent", Silent)) as host:
                client = ProviderClient(host, "scripted")
                assert (await client.ask("Hi.", tools=["look"])).text == "Hello."
                events = []
                assert (await client.ask(client.request("Hi.", model="x"), into=events)).text == "Again."
                assert isinstance(events[-1], Finished)
                assert [one.id for one in await client.models()] == ["test"]
                with pytest.raises(KitError, match="the stream of `silent` ended with TextDelta: yield `Finished`"):
                    await client.of("silent").ask()
            assert [request.model for request in model.requests] == ["test", "x"]
            assert model.requests[0].tools[0].name == "look"
    """)
    result.assert_outcomes(passed=1)
