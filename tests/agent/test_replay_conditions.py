"""Whether an interrupted call runs again: what guards, grants, the policy, the skill and its earlier end allow."""

import json

import pytest


def test_call_is_replayed_at_most_three_times(shop):
    shop.arm(*["between"] * 5)
    assert [shop.run() for _ in range(4)] == [None] * 4
    answer = shop.run()
    assert answer["unknown"] is True
    assert "interrupted 4 times" in answer["text"]
    assert shop.lines("armed") == ["between"]
    assert len(shop.lines("effects")) == 1


def test_changed_skill_is_not_replayed_with_the_record_of_the_old_one(shop):
    shop.arm("between")
    assert shop.run() is None
    shop.write(shop.buy + "\n# changed\n")
    answer = shop.run()
    assert (answer["code"], answer["unknown"]) == ("call.code", True)
    assert "has changed since" in answer["text"]
    assert len(shop.lines("effects")) == 1


@pytest.mark.parametrize("head", ["async def sell(what: str)", "async def buy(what: int)"])
def test_call_is_not_run_again_if_the_skill_no_longer_has_a_tool_for_it(shop, head):
    code = """
@tool
async def buy(what: str) -> str:
    \"\"\"Buy.\"\"\"
    await till.point(mark="between")
    return await till.pay(mark="a")
"""
    shop.write(code)
    shop.arm("between")
    order = {"arguments": {"what": "a thing"}}
    assert shop.run(**order) is None
    shop.write(code.replace("async def buy(what: str)", head))
    answer = shop.run(**order)
    assert (answer["code"], answer["unknown"]) == ("effect.unknown", True)
    assert "guard" not in answer["text"]
    assert shop.lines("effects") == []


def test_changed_skill_runs_again_if_it_had_changed_nothing(shop):
    shop.write("""
@tool
async def buy() -> str:
    \"\"\"Buy.\"\"\"
    found = await till.look()
    await till.point(mark="between")
    return found
""")
    shop.arm("between")
    assert shop.run() is None
    shop.write("""
@tool
async def buy() -> str:
    \"\"\"Buy.\"\"\"
    return f"new {await till.look()}"
""")
    answer = shop.run()
    # The read of the old code is not an answer for the new one.
    assert answer["text"] == "new 2"


def test_narrowed_grant_denies_recorded_and_new_effects(shop):
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run(grants=["till:mark=nothing"])
    assert answer["error"] is True
    assert len(shop.lines("effects")) == 1


def test_guards_are_asked_about_new_effects_only(shop):
    shop.arm("between")
    assert shop.run() is None
    before = shop.lines("asked")
    assert before == ["buyer.buy", "till.look ", "till.pay a", "till.point between"]
    shop.run()
    assert shop.lines("asked")[len(before) :] == ["till.point between", "till.pay b", "till.point end"]


def test_guards_are_not_asked_again_about_the_call_that_they_allowed(shop):
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run(deny=["tool.call"])
    assert json.loads(answer["text"]) == ["1", "receipt 1", "receipt 2"]


def test_call_whose_arguments_a_guard_has_replaced_is_not_run_again_with_those_of_the_model(shop):
    shop.write("""
@tool
async def buy(what: str) -> str:
    \"\"\"Buy.\"\"\"
    await till.point(mark="between")
    return await till.pay(mark=what)
""")
    shop.arm("between")
    order = {"arguments": {"what": "too much"}, "replace": {"what": "little"}}
    assert shop.run(**order) is None
    answer = shop.run(**order)
    assert answer["unknown"] is True
    assert "a guard has changed its arguments" in answer["text"]
    assert shop.lines("effects") == []


def test_guard_can_deny_a_new_effect_of_a_replay(shop):
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run(deny=["till.pay"])
    assert "not now" in answer["text"]
    assert [one[0] for one in shop.lines("effects")] == ["a"]


@pytest.mark.parametrize("approve", [True, False])
def test_policy_ask_asks_the_approver_with_what_is_known(shop, approve):
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run(policy={"resume": "ask"}, approve=approve)
    (question,) = shop.lines("questions")
    (paid,) = shop.records(op="till.pay")[-1:]
    assert paid.effect in question
    assert "buyer.buy was interrupted" in question
    assert len(shop.lines("effects")) == (2 if approve else 1)
    assert answer["unknown"] is (None if approve else True)
    (answered,) = shop.records(op="approval.answer")
    assert (answered.status, answered.params["kind"]) == ("done" if approve else "denied", "replay")
    attempts = [one.decisions for one in shop.records(op="tool.call")]
    assert [bool(one) for one in attempts] == ([True, False] if approve else [False])


def test_policy_ask_without_an_approver_does_not_replay_before_it_is_approved(shop):
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run(policy={"resume": "ask"})
    assert (answer["text"], answer["run"]) == (None, ["parked", "approval.needed"])
    assert len(shop.lines("effects")) == 1
    assert shop.run(policy={"resume": "ask"}, approve=True)["error"] is False


@pytest.mark.parametrize(
    ("policy", "metadata"),
    [("never", {}), ("replay", {"sideband.resume": "never"}), ("ask", {"sideband.resume": "never"})],
)
def test_call_is_not_replayed_if_policy_or_skill_forbid_it(shop, policy, metadata):
    shop.write(shop.buy, **metadata)
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run(policy={"resume": policy}, approve=True)
    assert answer["unknown"] is True
    assert shop.lines("questions") == []
    assert len(shop.lines("effects")) == 1


def test_call_of_an_abandoned_run_is_not_run_again(shop):
    shop.arm("between")
    assert shop.run() is None
    # A new input ends the interrupted run, whose call is not run again then.
    answer = shop.run(new_input=True)
    assert answer["unknown"] is True
    assert len(shop.lines("effects")) == 1


def test_plugin_tool_can_opt_in(shop):
    shop.arm("between")
    assert shop.run(tool="twice") is None
    answer = shop.run(tool="twice")
    assert answer["text"] == "receipt 1, 1, receipt 2"
    assert shop.lines("effects") == ["same", "same"]


def test_plugin_tool_is_not_replayed_by_default(shop):
    shop.arm("between")
    assert shop.run(tool="plain") is None
    assert shop.run(tool="plain")["unknown"] is True


def test_tool_that_opts_in_later_is_not_replayed_without_the_record_of_its_beginning(shop):
    shop.arm("between")
    assert shop.run(tool="plain") is None
    answer = shop.run(tool="plain", resume="replay")
    assert answer["unknown"] is True
    assert "its beginning is not recorded" in answer["text"]


def test_call_that_was_cancelled_is_not_run_again(shop):
    shop.write(shop.buy.replace("between", "abort"))
    assert shop.run(die_on="cancelled") is None
    answer = shop.run()
    assert answer["unknown"] is True
    assert "not interrupted by the end of its host" in answer["text"]
    assert [one.status for one in shop.records(op="tool.call")] == ["cancelled"]


def test_call_that_its_deadline_ended_is_not_run_again(shop):
    assert shop.run(tool="slow", die_on="failed") is None
    answer = shop.run(tool="slow")
    assert answer["unknown"] is True
    assert "not interrupted by the end of its host" in answer["text"]


def test_call_that_failed_by_itself_is_not_run_again(shop):
    shop.write(shop.buy.replace('await till.point(mark="between")', "1 / 0"))
    assert shop.run(die_on="done") is None
    answer = shop.run()
    assert "ZeroDivisionError" in answer["text"]
    assert len(shop.lines("effects")) == 1
