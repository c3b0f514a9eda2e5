import pytest
from sideband.ops import OpParamsInvalid

pytestmark = pytest.mark.anyio


async def report(host, grants=None, **params):
    told = []
    answer = await host.op("progress.report", params, grants=grants, on_progress=told.append)
    return answer, told


async def test_a_report_reaches_whoever_watches(host):
    answer, told = await report(host, current=1, total=4, message="first page")
    assert answer is None
    assert [(one.source, one.current, one.total, one.message) for one in told] == [
        ("progress.report", 1, 4, "first page")
    ]


async def test_nobody_waits_for_an_answer(host):
    spec = (await host.broker.ops.get("progress.report")).spec
    assert spec.fire_and_forget
    assert spec.level.name == "SAFE"


async def test_it_needs_no_right(host):
    _, told = await report(host, grants=[], message="hello")
    assert told[0].message == "hello"


async def test_nobody_has_to_watch(host):
    assert await host.op("progress.report", {"current": 1}) is None


async def test_a_secret_in_a_message_is_redacted(host, canary):
    await host.op("vault.open", {})
    _, told = await report(host, message=f"token is {canary}")
    assert told[0].message == "token is [redacted:canary]"


async def test_a_secret_as_the_name_of_a_job_is_redacted(host, canary):
    await host.op("vault.open", {})
    _, told = await report(host, job_id=canary, current=1)
    assert canary not in told[0].message


async def test_the_message_does_not_enter_the_ledger(host):
    await report(host, message="private words")
    entries = [path.read_text() for path in (host.home / "ledger").rglob("*.jsonl")]
    assert any("progress.report" in one for one in entries)
    assert not any("private words" in one for one in entries)


async def test_a_job_is_named_before_the_message(host):
    _, told = await report(host, job_id="upload-2", message="half")
    assert told[0].message == "[upload-2] half"


async def test_a_long_message_is_cut(host):
    _, told = await report(host, message="x" * 10_000)
    assert len(told[0].message) == 500
    assert told[0].message.endswith("…")


async def test_a_message_is_one_line_that_a_terminal_only_shows(host):
    _, told = await report(host, job_id="a\rb", message="two\nlines\x1b[2J")
    assert told[0].message == "[a b] two lines [2J"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"job_id": "only"},
        {"current": float("nan")},
        {"total": float("inf")},
        {"current": "many"},
        {"message": "x", "percent": 5},
        {"message": "x", "job_id": "j" * 101},
    ],
)
async def test_what_says_nothing_is_refused(host, params):
    with pytest.raises(OpParamsInvalid):
        await host.op("progress.report", params)
