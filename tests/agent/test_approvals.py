"""Runs that need an approval and have no approver park, and continue exactly there once it is given."""

import json

import pytest

ALLOW = {"verdict": "allow", "by": "Ann"}
DENY = {"verdict": "deny", "by": "Ann", "reason": "too expensive"}
PARKED = ["parked", "approval.needed"]
ASK = {"ask": ["till.pay"]}


@pytest.mark.parametrize("asked", ["till.pay", "buyer.buy"])
def test_run_parks_and_continues_once_its_request_is_approved(shop, asked):
    answer = shop.run(ask=[asked])
    assert (answer["run"], answer["exit"], answer["requests"]) == (PARKED, 3, [[asked, "open"]])
    assert shop.lines("effects") == []
    while answer["run"] == PARKED:
        answer = shop.run(ask=[asked], answer=ALLOW)
    assert answer["run"] == ["completed", None]
    assert json.loads(answer["text"]) == ["1", "receipt 1", "receipt 2"]
    assert [one[:3] for one in shop.lines("effects")] == ["a 1", "b 1"]
    assert len(shop.lines("looks")) == 1


def test_run_parks_again_until_it_is_answered(shop):
    for _ in range(3):
        answer = shop.run(**ASK)
        assert (answer["run"], answer["requests"]) == (PARKED, [["till.pay", "open"]])
    assert shop.lines("effects") == []


def test_denied_request_is_reported_to_the_skill_when_the_run_continues(shop):
    shop.run(**ASK)
    answer = shop.run(**ASK, answer=DENY)
    assert answer["run"] == ["completed", None]
    assert answer["error"]
    assert "it was not approved (too expensive): May till.pay happen?" in answer["text"]
    assert shop.lines("effects") == []


def test_run_parks_for_the_grant_of_a_skill_and_continues_with_it(shop):
    none = {"skill_grants": {"other": ["till"]}}
    answer = shop.run(**none)
    assert (answer["run"], answer["requests"]) == (PARKED, [["skill:buyer", "open"]])
    answer = shop.run(**none, answer={**ALLOW, "scope": "always"})
    assert answer["run"] == ["completed", None]
    assert [one[:3] for one in shop.lines("effects")] == ["a 1", "b 1"]


def test_run_parks_for_the_rights_of_a_plugin_of_its_own_and_continues_with_them(shop):
    shop.write("""
from sideband.skill import prices

@tool
async def buy() -> list:
    \"\"\"Pay, and find the price.\"\"\"
    return [await till.pay(mark="a"), await prices.find()]
""")
    answer = shop.run()
    assert (answer["run"], answer["requests"]) == (PARKED, [["plugin:prices", "open"]])
    answer = shop.run(answer={**ALLOW, "scope": "always"})
    assert (answer["run"], json.loads(answer["text"])) == (["completed", None], ["receipt 1", "1"])
    assert (shop.lines("effects"), shop.lines("looks")) == (["a"], ["own"])


@pytest.mark.parametrize(
    ("mark", "effects", "error"), [("careful", ["careful"], None), ("hasty", [], "effect.unknown")]
)
def test_change_that_waited_for_rights_continues_if_its_op_says_that_nothing_happened(shop, mark, effects, error):
    shop.write(f"""
from sideband.skill import prices

@tool
async def buy() -> str:
    \"\"\"Fix a price.\"\"\"
    return await prices.fix(mark="{mark}")
""")
    assert shop.run()["run"] == PARKED
    answer = shop.run(answer={**ALLOW, "scope": "always"})
    assert (answer["run"], shop.lines("effects")) == (["completed", None], effects)
    newest, *_ = shop.records(op="prices.fix")
    assert (newest.error and newest.error["code"]) == error


def test_grant_for_one_call_is_asked_once_however_often_the_call_waits(shop):
    settings = {"skill_grants": {"other": ["till"]}, **ASK}
    answers = [shop.run(**settings), *(shop.run(**settings, answer=ALLOW) for _ in range(3))]
    assert [one["requests"][-1][0] for one in answers[:3]] == ["skill:buyer", "till.pay", "till.pay"]
    assert answers[3]["run"] == ["completed", None]
    assert [one[:3] for one in shop.lines("effects")] == ["a 1", "b 1"]


def test_grant_for_one_call_is_not_for_the_next(shop):
    none = {"skill_grants": {"other": ["till"]}, "calls": 2}
    shop.write("""
@tool
async def buy(number: int) -> str:
    \"\"\"Buy.\"\"\"
    return await till.pay(mark=str(number))
""")
    assert shop.run(**none)["run"] == PARKED
    answer = shop.run(**none, answer=ALLOW)
    assert answer["run"] == PARKED
    assert shop.lines("effects") == ["0"]


def test_grant_for_the_session_is_not_remembered(shop):
    none = {"skill_grants": {"other": ["till"]}}
    shop.run(**none)
    assert shop.run(**none, answer={**ALLOW, "scope": "session"})["run"] == ["completed", None]
    assert shop.run(**none, new_input=True)["run"] == ["completed", None]
    assert not (shop.home / "grants.toml").exists()


def test_skill_that_hides_the_refusal_causes_no_further_effects_and_its_run_parks(shop):
    shop.write("""
@tool
async def buy() -> str:
    \"\"\"Pay, or send.\"\"\"
    try:
        return await till.pay(mark="a")
    except Exception:
        pass
    try:
        await till.send(mark="instead")
    except Exception:
        pass
    return "paid"
""")
    assert shop.run(**ASK)["run"] == PARKED
    assert shop.lines("effects") == []
    answer = shop.run(**ASK, answer=ALLOW)
    assert (answer["text"], shop.lines("effects")) == ("receipt 1", ["a"])


def test_large_answer_of_a_read_is_kept_while_the_call_waits(shop):
    shop.write("""
@tool
async def buy() -> str:
    \"\"\"Look at much, then pay.\"\"\"
    seen = await till.look(size=40_000)
    return await till.pay(mark=f"a {len(seen)}")
""")
    assert shop.run(**ASK)["run"] == PARKED
    assert shop.run(**ASK, answer=ALLOW)["text"] == "receipt 1"
    assert len(shop.lines("looks")) == 1


def test_call_can_wait_for_more_approvals_than_it_may_be_interrupted(shop):
    shop.write("""
@tool
async def buy() -> str:
    \"\"\"Buy six things.\"\"\"
    for number in range(6):
        await till.pay(mark=str(number))
    return "done"
""")
    answer = shop.run(**ASK)
    for _ in range(6):
        assert answer["run"] == PARKED
        answer = shop.run(**ASK, answer=ALLOW)
    assert (answer["run"], answer["text"]) == (["completed", None], "done")
    assert shop.lines("effects") == [str(number) for number in range(6)]


def test_effects_that_need_approval_at_the_same_time_are_asked_about_together(shop):
    shop.write("""
@tool
async def buy() -> list:
    \"\"\"Buy at once.\"\"\"
    return await asyncio.gather(*(till.pay(mark=one) for one in "abc"))
""")
    answer = shop.run(**ASK)
    assert answer["run"] == PARKED
    while answer["run"] == PARKED:
        answer = shop.run(**ASK, answer=ALLOW)
    assert sorted(shop.lines("effects")) == ["a", "b", "c"]


def test_new_input_cancels_the_parked_run_and_its_requests(shop):
    shop.run(**ASK)
    answer = shop.run(new_input=True)
    assert answer["requests"] == []
    assert answer["run"] == ["completed", None]


def test_tool_that_does_not_resume_gets_the_error_and_the_run_continues(shop):
    answer = shop.run(tool="payer", ask=["till.pay"])
    assert answer["run"] == ["completed", None]
    assert (answer["code"], answer["requests"]) == ("approval.needed", [["till.pay", "open"]])
    assert "sideband approvals approve" in answer["text"]


def test_skill_whose_calls_are_not_resumed_gets_the_error_and_the_run_continues(shop):
    answer = shop.run(**ASK, policy={"resume": "never"})
    assert answer["run"] == ["completed", None]
    assert answer["error"]
    assert shop.lines("effects") == []


def test_answer_for_the_session_admits_the_same_and_nothing_else_in_it(shop):
    shop.write("""
@tool
async def buy(number: int) -> str:
    \"\"\"Buy.\"\"\"
    return await till.pay(mark=str(number))
""")
    asked = {"ask": ["buyer.buy"], "calls": 3}
    assert shop.run(**asked)["run"] == PARKED
    answer = shop.run(**asked, answer={**ALLOW, "scope": "session"})
    assert answer["run"] == ["completed", None]
    assert shop.lines("effects") == ["0", "1", "2"]
    assert shop.run(**asked, new_input=True)["run"] == ["completed", None]


@pytest.mark.parametrize("changed", ["skill", "policy"])
def test_answer_does_not_survive_a_change_of_the_skill_or_policy(shop, changed):
    shop.run(ask=["buyer.buy"])
    if changed == "skill":
        shop.write(shop.buy + "\n# changed\n")
    policy = {"timeout": 59} if changed == "policy" else {}
    # The answer is stored under the id of the request as it was asked.
    shop.run(ask=["buyer.buy"], answer=ALLOW, policy=policy)
    assert shop.lines("effects") == []


def test_child_that_needs_an_approval_parks_its_parent_and_continues(shop):
    order = {"tool": "delegate", "ask": ["payer"]}
    answer = shop.run(**order)
    assert (answer["run"], answer["requests"]) == (PARKED, [["payer", "open"]])
    for _ in range(2):
        assert answer["run"] == PARKED
        answer = shop.run(**order, answer=ALLOW)
    assert (answer["run"], answer["text"]) == (["completed", None], "completed finished, completed finished")
    assert shop.lines("effects") == ["child", "child"]
    assert shop.lines("asked model").count("pay 0") == 2  # each child continued from its own session
    assert answer["kept"] == []


def test_run_parks_for_an_approval_of_its_model_call(shop):
    answer = shop.run(ask=["llm.generate"])
    assert (answer["run"], answer["requests"]) == (PARKED, [["llm.generate", "open"]])
    assert shop.lines("asked model") == []
    answer = shop.run(ask=["llm.generate"], answer=ALLOW)
    assert shop.lines("asked model") == ["go 0"]  # messages that were stored meanwhile are the same
    while answer["run"] == PARKED:
        answer = shop.run(ask=["llm.generate"], answer=ALLOW)
    assert answer["run"] == ["completed", None]


@pytest.mark.parametrize(
    ("order", "waits"),
    [
        ({"ask": ["llm.generate"]}, "llm.generate"),
        ({"ask": ["payer"], "tool": "delegate"}, "payer"),
        ({"ask": ["till.pay"], "tool": "entrust", "arguments": {"task": "buyer__buy"}}, "till.pay"),
        ({"ask": ["buyer.buy"], "tool": "entrust", "arguments": {"task": "entrust buyer__buy"}}, "buyer.buy"),
    ],
)
def test_new_input_cancels_the_requests_of_a_model_call_and_of_all_children(shop, order, waits):
    assert shop.run(**order)["requests"] == [[waits, "open"]]
    answer = shop.run(**{**order, "ask": []}, new_input=True)
    assert (answer["run"], answer["requests"]) == (["completed", None], [])


def test_end_of_a_child_withdraws_no_request_of_its_parent(shop):
    assert shop.run(tool="payer", ask=["till.pay"])["requests"] == [["till.pay", "open"]]
    answer = shop.run(tool="entrust", arguments={"task": "plain"}, calls=2, new_input=True)
    assert (answer["run"], answer["requests"]) == (["completed", None], [["till.pay", "open"]])


def test_request_of_a_child_that_cannot_continue_ends_with_it(shop):
    order = {"tool": "entrust", "arguments": {"task": "payer"}, "ask": ["payer"], "policy": {"resume": "never"}}
    answer = shop.run(**order)
    assert (answer["run"], answer["requests"]) == (["completed", None], [])


def test_aborted_run_withdraws_its_requests(shop):
    shop.write("""
@tool
async def buy() -> str:
    \"\"\"Pay, then wait for the end of the run.\"\"\"
    try:
        await till.pay(mark="a")
    except Exception:
        pass
    await asyncio.sleep(600)
""")
    answer = shop.run(**ASK, abort_on="till.pay")
    assert (answer["run"][0], answer["requests"]) == ("aborted", [])


# Killed hosts


@pytest.mark.parametrize("point", ["stored open", "approver"])
def test_question_is_found_again_by_the_host_after_one_that_was_killed_before_the_answer(shop, point):
    shop.arm(point)
    assert shop.run(**ASK, approve=True) is None
    answer = shop.run(**ASK)
    assert (answer["run"], answer["requests"]) == (PARKED, [["till.pay", "open"]])
    assert shop.lines("effects") == []
    answer = shop.run(**ASK, approve=True)
    assert answer["run"] == ["completed", None]
    assert [one[:3] for one in shop.lines("effects")] == ["a 1", "b 1"]


def test_answer_is_found_again_by_the_host_after_one_that_was_killed_before_the_effect(shop):
    shop.arm("stored answered")
    assert shop.run(**ASK, approve=True) is None
    assert shop.lines("effects") == []
    answer = shop.run(**ASK)
    # The first payment had its answer already.
    assert answer["run"] == PARKED
    assert [one[:3] for one in shop.lines("effects")] == ["a 1"]
    assert shop.lines("questions") == ["May till.pay happen?"]


@pytest.mark.parametrize("point", ["stored used", "before a", "after a"])
def test_answer_that_was_being_used_admits_no_second_effect(shop, point):
    shop.arm(point)
    assert shop.run(**ASK, approve=True) is None
    before = len(shop.lines("effects"))
    answer = shop.run(**ASK)
    assert [one[:3] for one in shop.lines("effects")] == ["a 1"] * before
    if point == "stored used":  # it was not begun: ask again
        assert (answer["run"], answer["requests"]) == (PARKED, [["till.pay", "open"]])
        assert shop.run(**ASK, approve=True)["run"] == ["completed", None]
        assert [one[:3] for one in shop.lines("effects")] == ["a 1", "b 1"]
    else:
        assert answer["unknown"] is True


def test_answer_of_a_killed_host_elsewhere_is_kept(shop):
    shop.run(**ASK)
    shop.arm("stored answered")
    assert shop.run(**ASK, answer=ALLOW) is None
    answer = shop.run(**ASK)
    assert [one[:3] for one in shop.lines("effects")] == ["a 1"]
    assert answer["requests"] == [["till.pay", "open"], ["till.pay", "used"]]


def test_parked_run_of_a_killed_host_continues(shop):
    shop.run(**ASK)
    shop.arm("between", "after b")
    assert shop.run(**ASK, approve=True) is None
    assert shop.run(**ASK, approve=True) is None
    answer = shop.run(**ASK, approve=True)
    assert [one[:3] for one in shop.lines("effects")] == ["a 1", "b 1"]
    assert answer["unknown"] is True


@pytest.mark.parametrize("asked", ["till.pay", "buyer.buy"])
def test_run_waits_for_its_approval_even_if_no_guard_asks_again(shop, asked):
    shop.run(ask=[asked])
    answer = shop.run()
    assert (answer["run"], answer["requests"]) == (PARKED, [[asked, "open"]])
    assert shop.lines("effects") == []
    answer = shop.run(answer=ALLOW)
    assert answer["run"] == ["completed", None]
    assert [one[:3] for one in shop.lines("effects")] == ["a 1", "b 1"]


@pytest.mark.parametrize("asked", ["till.pay", "buyer.buy"])
def test_denial_holds_for_a_run_that_continues_even_if_no_guard_asks_again(shop, asked):
    shop.run(ask=[asked])
    answer = shop.run(answer=DENY)
    assert answer["error"]
    assert "it was not approved (too expensive)" in answer["text"]
    assert shop.lines("effects") == []


def test_continued_run_needs_no_approval_for_calls_that_it_did_not_wait_for(shop):
    shop.write("""
@tool
async def buy(number: int) -> str:
    \"\"\"Buy.\"\"\"
    return await till.pay(mark=str(number))
""")
    assert shop.run(ask=["buyer.buy"], calls=2)["run"] == PARKED
    answer = shop.run(calls=2, answer=DENY)
    assert answer["run"] == ["completed", None]
    assert shop.lines("effects") == ["1"]


def test_run_about_which_nothing_is_asked_makes_no_requests(shop):
    assert shop.run()["run"] == ["completed", None]
    assert not (shop.home / "approvals.key").exists()
