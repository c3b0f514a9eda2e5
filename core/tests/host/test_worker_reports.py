"""Rejected requests of workers are recorded sequentially, and never dropped silently."""

import pytest
from sideband.calls._worker_reports import WorkerReports
from sideband.ledger import LedgerClosed
from sideband.workers import WorkerReport

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


class Broker:
    """A broker that records in memory, and raises ``LedgerClosed`` for the message ``closed``."""

    def __init__(self):
        self.recorded = []

    async def record_refusal(self, op, origin, code, message):
        if message == "closed":
            raise LedgerClosed
        self.recorded.append((op, origin.principal, origin.run, code, message))


def report(message, **details):
    return WorkerReport("worker.protocol", message, domain="d", pid=1, **details)


async def test_exit_records_queued_reports():
    broker = Broker()
    async with WorkerReports(broker) as reports:
        reports.take(report("first", call="c", op="http.get"))
        reports.take(report("second"))
    assert broker.recorded == [
        ("http.get", "worker", "c", "worker.protocol", "first"),
        ("worker", "worker", broker.recorded[1][2], "worker.protocol", "second"),
    ]


async def test_unrecordable_report_is_logged_and_the_next_is_recorded(caplog):
    broker = Broker()
    async with WorkerReports(broker) as reports:
        reports.take(report("closed"))
        reports.take(report("open"))
    assert [message for *_, message in broker.recorded] == ["open"]
    assert "could not be recorded" in caplog.text


async def test_dropped_reports_are_counted_in_the_log(caplog):
    broker = Broker()
    async with WorkerReports(broker) as reports:
        for number in range(1_005):
            reports.take(report(str(number)))
    assert len(broker.recorded) == 1_000
    assert "5 reports" in caplog.text


async def test_report_after_exit_is_ignored():
    async with WorkerReports(Broker()) as reports:
        pass
    reports.take(report("late"))
