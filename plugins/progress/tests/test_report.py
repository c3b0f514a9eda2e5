import pytest
from sideband.ops import OpParamsInvalid

pytestmark = pytest.mark.anyio


async def report(host, grants=None, **params):
    reports = []
    answer = await host.op("progress.report", params, grants=grants, on_progress=reports.append)
    return answer, reports


async def test_report_reaches_observers(host):
    answer, reports = await report(host, current=1, total=4, message="first page")
    assert answer is None
    assert [(one.source, one.current, one.total, one.message) for one in reports[:-1]] == [
        ("progress.report", 1, 4, "first page")
    ]
    assert reports[-1].closed


async def test_report_is_fire_and_forget(host):
    spec = (await host.broker.ops.get("progress.report")).spec
    assert spec.fire_and_forget
    assert spec.level.name == "SAFE"


async def test_report_needs_no_capability(host):
    _, reports = await report(host, grants=[], message="hello")
    assert reports[0].message == "hello"


async def test_report_without_an_observer_is_accepted(host):
    assert await host.op("progress.report", {"current": 1}) is None


async def test_secret_in_a_message_is_redacted(host, canary):
    await host.op("vault.open", {})
    _, reports = await report(host, message=f"token is {canary}")
    assert reports[0].message == "token is [redacted:canary]"


async def test_secret_in_a_job_id_is_redacted(host, canary):
    await host.op("vault.open", {})
    _, reports = await report(host, job_id=canary, current=1)
    assert canary not in reports[0].message


async def test_message_is_not_recorded_in_the_ledger(host):
    await report(host, message="private words")
    entries = [path.read_text() for path in (host.home / "ledger").rglob("*.jsonl")]
    assert any("progress.report" in one for one in entries)
    assert not any("private words" in one for one in entries)


async def test_job_id_precedes_the_message(host):
    _, reports = await report(host, job_id="upload-2", message="half")
    assert reports[0].message == "[upload-2] half"


async def test_long_message_is_truncated(host):
    _, reports = await report(host, message="x" * 10_000)
    assert len(reports[0].message) == 500
    assert reports[0].message.endswith("…")


async def test_message_is_one_line_without_control_characters(host):
    _, reports = await report(host, job_id="a\rb", message="two\nlines\x1b[2J")
    assert reports[0].message == "[a b] two lines [2J"


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
async def test_invalid_report_is_rejected(host, params):
    with pytest.raises(OpParamsInvalid):
        await host.op("progress.report", params)
