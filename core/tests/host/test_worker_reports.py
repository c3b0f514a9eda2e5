"""What workers tried is recorded one after the other, and never lost silently."""

import pytest
from sideband.calls._worker_reports import WorkerReports
from sideband.ledger import LedgerClosed
from sideband.workers import WorkerReport

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


class Broker:
    """Records in memory; the ledger is closed for what is called so."""

    def __init__(self):
        self.recorded = []

    async def record_refusal(self, op, origin, code, message):
        if message == "closed":
            raise LedgerClosed
        self.recorded.append((op, origin.principal, origin.run, code, message))


def report(message, **details):
    return WorkerReport("worker.protocol", message, domain="d", pid=1, **details)


async def test_leaving_records_what_is_still_queued():
    broker = Broker()
    async with WorkerReports(broker) as reports:
        reports.take(report("first", call="c", op="http.get"))
        reports.take(report("second"))
    assert broker.recorded == [
        ("http.get", "worker", "c", "worker.protocol", "first"),
        ("worker", "worker", broker.recorded[1][2], "worker.protocol", "second"),
    ]


async def test_a_report_that_can_not_be_recorded_is_logged_and_the_next_one_is_recorded(caplog):
    broker = Broker()
    async with WorkerReports(broker) as reports:
        reports.take(report("closed"))
        reports.take(report("open"))
    assert [message for *_, message in broker.recorded] == ["open"]
    assert "could not be recorded" in caplog.text


async def test_the_surplus_of_a_worker_that_causes_too_much_is_counted_in_the_log(caplog):
    broker = Broker()
    async with WorkerReports(broker) as reports:
        for number in range(1_005):
            reports.take(report(str(number)))
    assert len(broker.recorded) == 1_000
    assert "5 reports" in caplog.text


async def test_what_comes_after_the_end_is_no_error():
    async with WorkerReports(Broker()) as reports:
        pass
    reports.take(report("late"))
