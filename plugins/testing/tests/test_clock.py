"""The fixture `clock`."""


def test_clock_moves_only_when_it_is_moved(run_tests):
    result = run_tests("""
        import time
        from datetime import UTC, datetime, timedelta

        async def test_it(clock):
            began, monotonic = datetime.now(UTC), time.monotonic()
            assert began == clock.now == datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
            await anyio.sleep(0.001)
            assert datetime.now(UTC) == began
            assert time.monotonic() > monotonic
            clock.move(1.5, minutes=1)
            assert time.time() - began.timestamp() == 61.5
            clock.move(hours=-1, days=1)
            assert time.time() - began.timestamp() == 61.5 + 23 * 3600
            clock.set(datetime(2031, 1, 1, tzinfo=UTC))
            assert clock.now.year == 2031

        def test_after():
            assert datetime.now(UTC).year < 2030

        @pytest.mark.parametrize("time", [datetime(2031, 1, 1), "2031-01-01"])
        def test_zone(clock, time):
            clock.set(time)
    """)
    result.assert_outcomes(passed=2, failed=2)
    for time in ("datetime.datetime(2031, 1, 1, 0, 0)", "'2031-01-01'"):
        line = f"*`clock`: `time`: {time} is not a time with a time zone: pass `datetime(…, tzinfo=UTC)`"
        result.stdout.fnmatch_lines([line])


def test_records_of_a_host_have_the_time_of_the_clock(run_tests):
    result = run_tests("""
        async def test_it(clock, sideband_host):
            async with sideband_host(ECHO) as host:
                await host.op("echo.say", {})
            text = (sideband_host.home / "ledger").rglob("*")
            assert "2030-01-02T03:04:05" in "".join(path.read_text() for path in text if path.suffix == ".jsonl")
    """)
    result.assert_outcomes(passed=1)


def test_missing_package_is_reported_with_the_remedy(run_tests):
    result = run_tests("""
        import sys

        @pytest.fixture
        def without_package(monkeypatch):
            monkeypatch.setitem(sys.modules, "time_machine", None)

        def test_it(without_package, clock):
            pass
    """)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ['*the fixture `clock` needs the package `time-machine`: pip install "sideband-testing?clock?"']
    )
