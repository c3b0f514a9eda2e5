import json
import subprocess
import sys

import pytest
from sideband.messages import AssistantMessage, UserMessage
from sideband.providers import ProviderRefused, ProviderTimeout, ProviderUnreachable, StreamBroken
from sideband_scripted import ScriptEnded, ScriptInvalid, ScriptMissing, ScriptUnknown

pytestmark = pytest.mark.anyio

HELLO = UserMessage(content="hello")
ANSWER = AssistantMessage(content="hi")


@pytest.fixture
def script(tmp_path):
    """Write a script file and return its path."""

    def write(content, name="demo.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


async def test_number_of_answers_chooses_the_turn(open_host, listen, script):
    path = script({"models": {"demo": {"turns": ["one", {"tool_calls": [{"name": "a", "arguments": {"x": 1}}]}]}}})
    async with open_host(script=path) as host:
        _, second = await listen(host, HELLO, ANSWER, HELLO, model="demo")
        _, first = await listen(host, HELLO, model="demo")
    assert first.text == "one"
    assert second.tool_calls[0].arguments == {"x": 1}


async def test_toml_file_is_read(open_host, listen, script):
    path = script('[models.demo]\nturns = ["one", { text = "two", thinking = "hm" }]\n', "demo.toml")
    async with open_host(script=path) as host:
        _, message = await listen(host, HELLO, ANSWER, HELLO, model="demo")
    assert [part.text for part in message.content] == ["hm", "two"]


async def test_file_with_one_script_defines_a_model_named_after_it(open_host, listen, script):
    async with open_host(script=script({"turns": ["one"], "context_window": 50})) as host:
        assert (await listen(host, model="demo"))[1].text == "one"
        provider, ctx = await host.broker.ops.provider("scripted")
        (info,) = await provider.models(ctx)
    assert (info.id, info.context_window) == ("demo", 50)


async def test_failures_are_raised_in_order_before_the_turn(open_host, listen, script):
    failures = [
        {"kind": "refused", "status": 529, "headers": {"Retry-After": "2"}},
        {"kind": "unreachable"},
        {"kind": "timeout"},
        {"kind": "stream"},
    ]
    raised = []
    async with open_host(script=script({"turns": [{"text": "at last", "failures": failures}]})) as host:
        for kind in (ProviderRefused, ProviderUnreachable, ProviderTimeout, StreamBroken):
            with pytest.raises(kind) as caught:
                await listen(host, model="demo")
            raised.append(caught.value)
        assert (await listen(host, model="demo"))[1].text == "at last"
    assert (raised[0].status, raised[0].headers) == (529, {"retry-after": "2"})
    assert all(error.retryable for error in raised)


async def test_permanent_failure_is_not_retryable(open_host, listen, script):
    failures = [{"kind": "refused", "status": 401}]
    async with open_host(script=script({"turns": [{"failures": failures}]})) as host:
        with pytest.raises(ProviderRefused) as caught:
            await listen(host, model="demo")
    assert not caught.value.retryable


async def test_turn_breaks_off(open_host, listen, script):
    received = []
    async with open_host(script=script({"turns": [{"text": "a long answer", "broken_after": 1}]})) as host:
        with pytest.raises(StreamBroken):
            await listen(host, model="demo", into=received)
    assert len(received) == 1


async def test_request_after_the_last_turn_is_rejected(open_host, listen, script):
    async with open_host(script=script({"turns": []})) as host:
        with pytest.raises(ScriptEnded):
            await listen(host, model="demo")


async def test_repeated_script_starts_again(open_host, listen, script):
    async with open_host(script=script({"turns": ["one"], "repeat": True})) as host:
        assert (await listen(host, HELLO, ANSWER, HELLO, model="demo"))[1].text == "one"


async def test_unknown_model_is_rejected_with_the_known_ones(open_host, listen, script):
    async with open_host(script=script({"turns": ["one"]})) as host:
        with pytest.raises(ScriptUnknown) as caught:
            await listen(host, model="other")
    assert "demo" in caught.value.hint


async def test_missing_file_setting_is_reported_with_a_hint(open_host, listen):
    async with open_host() as host:
        provider, ctx = await host.broker.ops.provider("scripted")
        assert list(await provider.models(ctx)) == []
        with pytest.raises(ScriptMissing) as caught:
            await listen(host)
    assert "[plugins.scripted]" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "Expecting"),
        ("[" * 100_000, "recursion|nested"),
        ("[]", "dictionary"),
        ({"turns": [{"txt": "typo"}]}, "txt"),
        ({"turns": [{"tool_calls": [{"arguments": {}}]}]}, "name"),
        ({"models": {"a": {"turns": "text"}}}, "turns"),
    ],
)
async def test_invalid_script_is_reported_with_its_path(open_host, listen, script, content, problem):
    async with open_host(script=script(content)) as host:
        with pytest.raises(ScriptInvalid, match=rf"demo\.json: .*(?i:{problem})"):
            await listen(host, model="demo")


async def test_missing_file_is_reported_with_its_path(open_host, listen, tmp_path):
    async with open_host(script=str(tmp_path / "absent.json")) as host:
        with pytest.raises(ScriptInvalid, match=r"absent\.json.*No such file"):
            await listen(host)


def test_plugin_module_imports_no_slow_packages():
    probe = "import sys, sideband_scripted.plugin; print([n for n in ('httpx', 'yaml') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
