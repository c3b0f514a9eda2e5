"""The fixture `scripted`."""


def test_model_says_what_the_test_says_and_keeps_requests(run_tests):
    result = run_tests("""
        from sideband_agent import Agent
        from sideband_scripted import Turn

        async def test_it(scripted, sideband_host):
            model = scripted(Turn(thinking="hm", text="Hello."), lambda request: request.messages[-1].text.upper())
            async with sideband_host(model, "op.llm") as host, Agent(host, model=model.model) as agent:
                assert (await agent.invoke("Hi.")).text == "Hello."
                assert (await agent.invoke("again")).text == "AGAIN"
            assert [request.messages[-1].text for request in model.requests] == ["Hi.", "again"]

        async def test_end(scripted, sideband_host):
            model = scripted(name="other")
            assert model.model == "other:test"
            async with sideband_host(model, "op.llm") as host, Agent(host, model=model.model) as agent:
                assert "the script has no turn 1" in str((await agent.invoke("Hi.")).error)
    """)
    result.assert_outcomes(passed=2)
