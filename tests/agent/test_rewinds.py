"""Rewinding a session: what plugins see of it, and what they can cancel."""

import pytest
from sideband import Plugin
from sideband.hooks import Cancel, hookimpl
from sideband_agent import StructureRefused
from sideband_agent.sessions import BranchSummaryEntry, EntryNotFound

pytestmark = pytest.mark.anyio


@pytest.fixture
def watcher(kit):
    """Return a function that builds a plugin which collects the events of rewinds."""

    def build(events, answer=None):
        plugin = kit.listening(events, "session_tree")

        @hookimpl
        def session_before_tree(event):
            events.append(event)
            return answer

        plugin.session_before_tree = session_before_tree
        return Plugin("hook", "watcher", plugin)

    return build


async def test_rewind_names_the_entries_that_are_left(stage, watcher):
    events = []
    async with stage(["one", "two"], watcher(events)) as agent:
        await agent.invoke("first")
        back = agent.session.leaf
        await agent.invoke("second")
        left, leaf = [one.id for one in agent.session.path()], agent.session.leaf
        left = left[left.index(back) + 1 :]
        await agent.rewind(back)
        before, after = events
        assert (before.target, before.old_leaf, before.common_ancestor) == (back, leaf, back)
        assert list(before.entries) == left
        assert (after.new_leaf, after.old_leaf, after.summary_entry) == (back, leaf, None)
        assert before.session == after.session == agent.session.id
        assert agent.session.leaf == back


async def test_rewind_to_another_branch_names_the_common_ancestor(stage, watcher):
    events = []
    async with stage(["one", "two", "three"], watcher(events)) as agent:
        await agent.invoke("first")
        fork = agent.session.leaf
        await agent.invoke("second")
        other = agent.session.leaf
        await agent.rewind(fork)
        await agent.invoke("third")
        left = [one.id for one in agent.session.path()]
        await agent.rewind(other)
        before = events[2]
        assert before.common_ancestor == fork
        assert list(before.entries) == left[left.index(fork) + 1 :]


async def test_rewind_to_the_beginning_leaves_everything(stage, watcher):
    events = []
    async with stage(["one"], watcher(events)) as agent:
        await agent.invoke("first")
        path = [one.id for one in agent.session.path()]
        await agent.rewind(None)
    before, after = events
    assert (before.target, before.common_ancestor, list(before.entries)) == (None, None, path)
    assert after.new_leaf is None


async def test_rewind_with_a_summary_names_its_entry(stage, watcher):
    events = []
    async with stage(["one"], watcher(events)) as agent:
        await agent.invoke("first")
        await agent.rewind(None, summary="we tried something")
        before, after = events
        assert before.summary == "we tried something"
        assert after.summary_entry == after.new_leaf
        assert isinstance(agent.session.tree.entry(after.summary_entry), BranchSummaryEntry)


async def test_lone_surrogate_in_a_summary_does_not_reach_the_model(stage):
    async with stage(["one", "two"]) as agent:
        await agent.invoke("first")
        await agent.rewind(None, summary="a \ud800 b")
        assert (await agent.invoke("second")).status == "completed"
        assert agent.scripted.requests[1].messages[0].text.count("a \ufffd b") == 1


async def test_plugin_can_cancel_a_rewind(stage, watcher):
    events = []
    async with stage(["one"], watcher(events, Cancel("the work is not saved"))) as agent:
        await agent.invoke("first")
        leaf = agent.session.leaf
        with pytest.raises(StructureRefused, match="cannot rewind the session: the work is not saved") as caught:
            await agent.rewind(None)
        assert caught.value.plugin == "watcher"
        assert agent.session.leaf == leaf
        assert agent.is_idle
    assert [one.hook for one in events] == ["session_before_tree"]


async def test_plugins_are_not_asked_about_an_unknown_entry(stage, watcher):
    events = []
    async with stage(["one"], watcher(events)) as agent:
        with pytest.raises(EntryNotFound):
            await agent.rewind("ffffffff")
    assert events == []
