"""The fixture `recorder`."""


def test_calls_of_hooks_are_recorded_in_order_with_plugins_and_outcomes(run_tests):
    result = run_tests(
        """
        from types import SimpleNamespace
        from sideband.hooks import Allow, Deny, OpCall, hookimpl
        from sideband.ops import OpDenied

        class Watch:
            @hookimpl
            async def op_call(self, event: OpCall):
                return Allow("seen")

        class Refuse:
            @hookimpl
            async def op_call(self, event: OpCall):
                return Deny("not today") if event.params["text"] == "secret" else None

        class Broken:
            @hookimpl
            async def effect(self, event):
                raise ValueError("the reason")

        def guard(name, kind):
            return Plugin("guard", name, SimpleNamespace(sideband_guards=lambda: kind))

        async def test_it(sideband_host, recorder):
            seen = []
            plugins = [guard("watch", Watch), guard("refuse", Refuse), Plugin("hook", "broken", Broken())]
            async with sideband_host(ECHO, *plugins, recorder.plugin, on_hook=seen.append) as host:
                assert "recorder" not in [record.name for record in host.plugins.records]
                await host.op("echo.say", {"text": "hi"})
                with pytest.raises(OpDenied):
                    await host.op("echo.say", {"text": "secret"})
            decided = [(call.plugin, call.outcome, call.reason) for call in recorder.of("op_call")]
            assert decided == [
                ("refuse", "kept", ""), ("watch", "allowed", "seen"), ("refuse", "denied", "not today"),
            ]
            assert [dict(call.event.params) for call in recorder.of("op_call", plugin="watch")] == [{"text": "hi"}]
            assert {call.outcome for call in recorder.of("effect")} == {"failed"}
            assert "the reason" in recorder.of("effect")[0].reason
            assert len(seen) == len(recorder.calls)
            assert "secret" not in repr(recorder.calls)
            recorder.clear()
            assert recorder.calls == ()
        """,
        backends=["asyncio", "trio"],
    )
    result.assert_outcomes(passed=2)
