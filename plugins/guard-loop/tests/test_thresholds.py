import pytest
from pydantic import ValidationError
from sideband.hooks import ToolCall, ToolResult

pytestmark = pytest.mark.anyio

EXACT_WARNING, EXACT_BLOCK = "repeated_exact_failure_warning", "repeated_exact_failure_block"
TOOL_WARNING, TOOL_HALT = "same_tool_failure_warning", "same_tool_failure_halt!"
UNCHANGED_WARNING, UNCHANGED_BLOCK = "idempotent_no_progress_warning", "idempotent_no_progress_block"


async def test_repeated_failing_call_is_warned_about_at_2_and_denied_after_5(agent):
    codes = await agent.calls(6, "github.stars", {"repo": "a/b"}, fails=True)
    assert codes == [None, *[EXACT_WARNING] * 4, EXACT_BLOCK]
    assert agent.ran == 5


async def test_failing_tool_is_warned_about_at_3_and_halts_the_run_after_8(agent):
    codes = [await agent.call("github.stars", {"repo": str(number)}, fails=True) for number in range(9)]
    assert codes == [None, None, *[TOOL_WARNING] * 6, TOOL_HALT]
    assert agent.ran == 8


async def test_unchanged_read_is_warned_about_at_2_and_denied_after_5(agent):
    codes = await agent.calls(6, "files.read", {"path": "a"}, read_only=True)
    assert codes == [None, *[UNCHANGED_WARNING] * 4, UNCHANGED_BLOCK]
    assert agent.ran == 5


@pytest.mark.parametrize("report", [True, False], ids=["with a result", "without one"])
async def test_repeated_denied_call_halts_the_run(agent, report):
    codes = await agent.calls(9, "github.stars", {"repo": "a/b"}, fails=True, report=report)
    assert codes[5:] == [EXACT_BLOCK] * 3 + [TOOL_HALT]


async def test_repeated_denied_read_halts_the_run(agent):
    codes = await agent.calls(14, "files.read", read_only=True)
    assert codes[5:] == [UNCHANGED_BLOCK] * 8 + [TOOL_HALT]


async def test_writing_tool_may_return_the_same_result_often(agent):
    assert await agent.calls(10, "mail.send", {"to": "a"}) == [None] * 10


async def test_changed_result_is_progress(agent):
    for number in range(10):
        assert await agent.call("jobs.status", read_only=True, content={"done": number}) is None


async def test_result_that_changes_back_is_counted_from_1(agent):
    assert await agent.calls(4, "jobs.status", read_only=True, content="a") == [None, *[UNCHANGED_WARNING] * 3]
    assert await agent.call("jobs.status", read_only=True, content="b") is None
    assert await agent.call("jobs.status", read_only=True, content="a") is None


async def test_another_read_in_between_is_not_progress(agent):
    await agent.calls(4, "files.read", {"path": "a"}, read_only=True)
    await agent.call("files.read", {"path": "b"}, read_only=True, content="other")
    assert await agent.calls(2, "files.read", {"path": "a"}, read_only=True) == [UNCHANGED_WARNING, UNCHANGED_BLOCK]


async def test_write_in_between_allows_another_read(agent):
    await agent.calls(5, "git.status", read_only=True, content="clean")
    await agent.call("git.commit", content="done")
    assert await agent.call("git.status", read_only=True, content="clean") is None


async def test_failed_write_does_not_allow_another_read(agent):
    await agent.calls(5, "git.status", read_only=True, content="clean")
    await agent.call("git.commit", fails=True)
    assert await agent.call("git.status", read_only=True, content="clean") == UNCHANGED_BLOCK


async def test_success_resets_the_failures_of_the_call(agent):
    await agent.calls(4, "github.stars", {"repo": "a/b"}, fails=True)
    await agent.call("github.stars", {"repo": "a/b"})
    assert await agent.calls(5, "github.stars", {"repo": "a/b"}, fails=True) == [None, *[EXACT_WARNING] * 4]


async def test_success_resets_the_failures_of_the_tool(agent):
    for number in range(7):
        await agent.call("github.stars", {"repo": number}, fails=True)
    await agent.call("github.stars", {"repo": "good"})
    assert await agent.call("github.stars", {"repo": "bad"}, fails=True) is None


async def test_success_with_other_arguments_does_not_reset_a_failing_call(agent):
    for _ in range(5):
        await agent.call("github.stars", {"repo": "bad"}, fails=True)
        await agent.call("github.stars", {"repo": "good"})
    assert await agent.call("github.stars", {"repo": "bad"}, fails=True) == EXACT_BLOCK


async def test_success_of_another_tool_resets_nothing(agent):
    await agent.calls(4, "github.stars", fails=True)
    await agent.call("notes.add")
    assert await agent.calls(2, "github.stars", fails=True) == [EXACT_WARNING, EXACT_BLOCK]


async def test_failures_without_a_decision_of_this_guard_count(agent):
    """A call that another plugin denied or whose arguments are invalid has a result without asking this guard."""
    for number in range(8):
        await agent.hooks.update(ToolResult(f"x{number}", "shell.run", {}, "denied", is_error=True))
    assert await agent.call("shell.run") == TOOL_HALT


async def test_order_of_keys_does_not_matter(agent):
    await agent.calls(4, "notes.find", {"a": {"x": 1, "y": [2]}, "b": 3}, fails=True)
    assert await agent.call("notes.find", {"b": 3, "a": {"y": [2], "x": 1}}, fails=True) == EXACT_WARNING
    assert await agent.call("notes.find", {"b": 3, "a": {"y": [2], "x": 1}}, fails=True) == EXACT_BLOCK


@pytest.mark.parametrize("other", [{"a": 1.5}, {"a": True}, {"a": "1"}, {"b": 1}, {"a": 1, "b": None}])
async def test_calls_with_other_arguments_are_distinct(agent, other):
    await agent.calls(5, "notes.find", {"a": 1}, fails=True)
    assert await agent.call("notes.find", other, fails=True) != EXACT_BLOCK


async def test_arguments_that_were_run_are_counted(agent):
    for number in range(5):
        await agent.hooks.decide(ToolCall(f"x{number}", "notes.list", {"limit": 1_000 + number}))
        await agent.hooks.update(ToolResult(f"x{number}", "notes.list", {"limit": 100}, "bad", is_error=True))
    assert await agent.call("notes.list", {"limit": 100}, fails=True) == EXACT_BLOCK


async def test_concurrent_calls_are_all_counted(agent):
    ids = [f"p{number}" for number in range(6)]
    for call in ids:
        assert (await agent.hooks.decide(ToolCall(call, "web.get", {}))).verdict.value == "allow"
    for call in ids:
        await agent.hooks.update(ToolResult(call, "web.get", {}, "no network", is_error=True))
    assert await agent.call("web.get") == EXACT_BLOCK


@pytest.mark.parametrize("content", [float("nan"), b"\x00", {1, 2}, "\ud800", [None, {"a": object}], None])
async def test_any_content_can_be_compared(agent, content):
    assert await agent.calls(2, "files.read", read_only=True, content=content) == [None, UNCHANGED_WARNING]


async def test_new_run_resets_the_counters(agent):
    await agent.calls(6, "github.stars", fails=True)
    await agent.calls(6, "files.read", read_only=True)
    await agent.start()
    assert await agent.call("github.stars", fails=True) is None
    assert await agent.call("files.read", read_only=True) is None


async def test_warning_does_not_change_the_content(agent):
    await agent.call("files.read", fails=True, content="no such file")
    result = await agent.hooks.update(ToolResult("x", "files.read", {}, "no such file", is_error=True))
    assert result.content == "no such file"
    assert [note.plugin for note in result.notes] == ["guard-loop"]


async def test_thresholds_are_configurable(make_agent):
    agent = make_agent(repeated_exact_failure_warning=1, repeated_exact_failure_block=2)
    assert await agent.calls(3, "github.stars", fails=True) == [EXACT_WARNING, EXACT_WARNING, EXACT_BLOCK]


async def test_threshold_of_0_disables_the_check(make_agent):
    names = (EXACT_WARNING, EXACT_BLOCK, TOOL_WARNING, TOOL_HALT, UNCHANGED_WARNING, UNCHANGED_BLOCK)
    agent = make_agent(**{name.strip("!"): 0 for name in names})
    assert await agent.calls(20, "github.stars", fails=True) == [None] * 20
    assert await agent.calls(20, "files.read", read_only=True) == [None] * 20


@pytest.mark.parametrize("config", [{"same_tool_failure_halt": -1}, {"same_tool_failure_halts": 8}])
def test_invalid_threshold_is_rejected(make_agent, config):
    with pytest.raises(ValidationError):
        make_agent(**config)


async def test_agents_share_no_counters(agent, derive):
    one, other = derive(agent), derive(agent)
    await one.calls(8, "github.stars", fails=True)
    assert await one.call("github.stars") == TOOL_HALT
    assert await other.call("github.stars", fails=True) is None
    assert await agent.call("github.stars", fails=True) is None


async def test_child_has_the_same_thresholds(make_agent, derive):
    child = derive(derive(make_agent(repeated_exact_failure_block=1)))
    assert await child.calls(2, "github.stars", fails=True) == [None, EXACT_BLOCK]
