"""A skill call whose host is killed runs again, and each recorded effect is answered from the record."""

import json

import pytest


@pytest.mark.parametrize("point", ["between", "end"])
def test_killed_call_is_completed_and_repeats_no_effect(shop, point):
    shop.arm(point)
    assert shop.run() is None
    answer = shop.run()
    assert json.loads(answer["text"]) == ["1", "receipt 1", "receipt 2"]
    assert [one[:3] for one in shop.lines("effects")] == ["a 1", "b 1"]
    assert len(shop.lines("looks")) == 1
    assert len(answer["replay"]["answered"]) == {"between": 2, "end": 4}[point]


def test_start_time_random_numbers_and_uuids_are_the_same_in_a_replay(shop):
    shop.write("""
@tool
async def buy() -> list:
    \"\"\"Buy.\"\"\"
    await till.pay(mark="a")
    values = [now().isoformat(), random.random(), random.randint(1, 9**9), uuid(), uuid()]
    other = [plain.random(), random.SystemRandom().random() if hasattr(random, "SystemRandom") else 0]
    await till.look(mark=repr(values))
    await till.point(mark=f"{plain.random()}")
    await till.point(mark="between")
    return values
""")
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run()
    assert shop.lines("looks") == [repr(json.loads(answer["text"]))]


def test_call_without_capabilities_may_be_repeated_but_not_its_effects(shop):
    code = """
@tool
async def buy() -> list:
    \"\"\"Send two things.\"\"\"
    seen = [await till.send(mark="a")]
    await till.point(mark="between")
    return [*seen, await till.send(mark="b")]
"""
    shop.write(code, **{"sideband.capabilities": ""})
    shop.arm("between", "between", "between")
    for _ in range(3):
        assert shop.run() is None
    assert json.loads(shop.run()["text"]) == ["sent", "sent"]
    assert [one[0] for one in shop.lines("effects")] == ["a", "b"]


@pytest.mark.parametrize("point", ["before a", "after a"])
def test_unknown_effect_stops_the_replay_and_is_named(shop, point):
    shop.arm(point)
    assert shop.run() is None
    answer = shop.run()
    effect = shop.records(op="till.pay")[-1]
    assert (answer["code"], answer["unknown"]) == ("effect.unknown", True)
    assert effect.effect in answer["text"]
    assert "till.pay" in answer["text"]
    assert len(shop.lines("effects")) == (point == "after a")


def test_recorded_answer_of_a_stopped_replay_is_given_again(shop):
    shop.arm("after a")
    assert shop.run() is None
    assert shop.run(die_on="done") is None
    answer = shop.run()
    assert (answer["unknown"], answer["replayed"]) == (True, True)
    assert shop.records(op="till.pay")[-1].effect in answer["text"]


def test_skill_that_ignores_the_unknown_effect_causes_no_further_one(shop):
    shop.write("""
@tool
async def buy() -> str:
    \"\"\"Buy.\"\"\"
    for mark in ("a", "b"):
        try:
            await till.pay(mark=mark)
        except OpError:
            await till.pay(mark=f"{mark}-again")
    return "bought"
""")
    shop.arm("after a")
    assert shop.run() is None
    answer = shop.run()
    assert (answer["unknown"], answer["error"]) == (True, True)
    assert shop.lines("effects") == ["a"]


@pytest.mark.parametrize("point", ["before s", "after s"])
def test_interrupted_effect_that_can_be_reconciled_does_not_stop_the_replay(shop, point):
    shop.write("""
@tool
async def buy() -> str:
    \"\"\"Buy.\"\"\"
    await till.pay(mark="a")
    return await till.send(mark="s")
""")
    shop.arm(point)
    assert shop.run() is None
    answer = shop.run()
    assert answer["text"] == "sent"
    assert shop.lines("effects") == ["a", "s"]


def test_recorded_failure_is_answered_again(shop):
    shop.write("""
@tool
async def buy() -> str:
    \"\"\"Buy.\"\"\"
    try:
        await till.pay(mark="fail")
    except OpError as error:
        caught = f"{error.code} {error}"
    await till.point(mark="between")
    return caught
""")
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run()
    assert answer["text"].startswith("op.failed")
    assert "out of paper" in answer["text"]
    assert len(shop.records(op="till.pay")) == 1


def test_effect_that_is_not_requested_again_is_reported_to_the_model_and_in_the_record(shop):
    shop.write("""
@tool
async def buy() -> str:
    \"\"\"Buy.\"\"\"
    await till.pay(mark=f"a {plain.random()}")
    await till.point(mark="between")
    return "bought"
""")
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run()
    first = shop.records(op="till.pay")[-1]
    assert answer["replay"]["skipped"] == [first.effect]
    assert answer["text"].startswith("bought")
    assert first.effect in answer["text"]
    assert "another path" in answer["text"]
    call = shop.records(op="tool.call")[0]
    assert call.result["metadata"]["replay"]["skipped"] == [first.effect]


def test_order_of_concurrent_effects_does_not_matter(shop):
    shop.write("""
@tool
async def buy() -> list:
    \"\"\"Buy.\"\"\"
    marks = ["a", "b", "a", "c"]
    plain.shuffle(marks)
    found = await asyncio.gather(*(till.pay(mark=mark) for mark in marks))
    await till.point(mark="between")
    return sorted(found)
""")
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run()
    assert json.loads(answer["text"]) == [f"receipt {number}" for number in (1, 2, 3, 4)]
    assert sorted(shop.lines("effects")) == ["a", "a", "b", "c"]
    assert "skipped" not in answer["replay"]


def test_large_read_is_answered_from_a_blob_that_is_deleted_with_the_outcome(shop):
    shop.write("""
@tool
async def buy() -> int:
    \"\"\"Buy.\"\"\"
    found = await till.look(size=200_000)
    await till.point(mark="between")
    await till.pay(mark=f"a {found[0]}")
    return len(found)
""")
    shop.arm("between")
    assert shop.run() is None
    assert len(list((shop.home / "replays").glob("*/*"))) == 1
    answer = shop.run()
    assert answer["text"] == "200001"
    assert len(shop.lines("looks")) == 1
    assert list((shop.home / "replays").glob("*/*")) == []


def test_read_whose_blob_is_lost_is_requested_again(shop):
    shop.write("""
@tool
async def buy() -> int:
    \"\"\"Buy.\"\"\"
    found = await till.look(size=200_000)
    await till.point(mark="between")
    return len(found)
""")
    shop.arm("between")
    assert shop.run() is None
    (blob,) = (shop.home / "replays").glob("*/*")
    blob.unlink()
    assert shop.run()["text"] == "200001"
    assert len(shop.lines("looks")) == 2


def test_answers_from_the_record_cause_no_effects(shop):
    shop.arm("end")
    assert shop.run() is None
    before = len(shop.records(op="till"))
    shop.run()
    after = shop.records(op="till")
    assert [one.op for one in after[: len(after) - before]] == ["till.point"]


def test_replay_is_recorded_as_a_further_attempt_of_the_call(shop):
    shop.arm("between")
    assert shop.run() is None
    shop.run()
    second, first = shop.records(op="tool.call")
    assert (first.status, second.status) == ("unknown", "done")
    assert second.key == f"{first.key}~1"
    assert (second.note["replay"], second.note["interrupted"]) == (1, first.effect)
    assert {name: second.note[name] for name in ("started", "seed")} == dict(first.note)


def test_audit_why_shows_the_attempts_of_a_replay_and_what_was_answered_from_the_record(shop, sideband):
    shop.arm("between")
    assert shop.run() is None
    answer = shop.run()
    second, first = shop.records(op="tool.call")
    text = " ".join(sideband("audit", "why", second.effect).stdout.split())
    assert f"attempt 1 ({first.effect}) outcome interrupted: the host ended while it was running" in text
    assert f"attempt 2 ({second.effect}) outcome done" in text
    assert f"replayed answered from the record: {', '.join(answer['replay']['answered'])} result success" in text
    assert '"replay": 1' in text


def test_ended_children_are_answered_from_the_record(shop):
    shop.arm("between")
    assert shop.run(tool="delegate") is None
    answer = shop.run(tool="delegate")
    assert answer["text"] == "completed finished, completed finished"
    assert shop.lines("effects") == ["child", "child"]


def test_repeated_call_with_a_key_gets_the_same_values_and_answers(shop):
    shop.arm("between")
    order = {"tool": "buyer.buy", "key": "k"}
    assert shop.run(**order) is None
    answer = shop.run(**order)
    assert answer["output"] == ["1", "receipt 1", "receipt 2"]
    assert (answer["answered"], answer["skipped"]) == (2, 0)
    assert len(shop.lines("effects")) == 2
    # Also after it has ended.
    assert shop.run(**order)["output"] == ["1", "receipt 1", "receipt 2"]
    assert len(shop.lines("effects")) == 2


def test_calls_with_keys_that_begin_alike_do_not_share_records(shop):
    assert shop.run(tool="buyer.buy", key="k:1")["output"][0] == "1"
    shop.run(tool="buyer.buy", key="k")
    answer = shop.run(tool="buyer.buy", key="k")
    assert (answer["output"][0], answer["skipped"]) == ("2", 0)
