"""Tasks of a host: none ends another, and closing the host cancels them."""

import anyio
import anyio.lowlevel
import pytest

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


async def test_failed_task_is_logged_without_secrets_and_ends_no_other(hosting, caplog):
    ended = []

    async def fail():
        raise RuntimeError("with hunter-two-hunter")

    async def work():
        await anyio.lowlevel.checkpoint()
        ended.append("work")

    async with hosting() as host:
        host.redactor.protect("hunter-two-hunter", "password")
        host.start_task(fail)
        host.start_task(work)
        await anyio.wait_all_tasks_blocked()
    assert ended == ["work"]
    assert "a task failed: RuntimeError: with" in caplog.text
    assert "hunter" not in caplog.text


async def test_closing_host_cancels_tasks(hosting):
    cancelled = []

    async def wait():
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(True)

    with anyio.fail_after(30):
        async with hosting() as host:
            host.start_task(wait)
            await anyio.wait_all_tasks_blocked()
    assert cancelled == [True]
