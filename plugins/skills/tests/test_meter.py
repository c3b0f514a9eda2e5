"""The meter notices each limit at the next check, although it rarely reads the processor time."""

from time import thread_time

import pytest
from sideband_skills import _meter
from sideband_skills._config import Config
from sideband_skills._meter import LimitReached, Meter


@pytest.fixture
def metered():
    """Return a function that starts a meter which has just been checked."""

    def start(**limits):
        meter = Meter(Config(**limits))
        meter.start()
        meter.check()
        return meter

    return start


def work(seconds):
    began = thread_time()
    while thread_time() - began < seconds:
        pass


@pytest.mark.parametrize("limit", ["seconds", "total_seconds"])
def test_limit_that_is_shorter_than_the_interval_is_noticed(metered, limit):
    meter = metered(**{limit: 0.002})
    with meter.skill():
        work(0.003)
        with pytest.raises(LimitReached, match="processor time"):
            meter.check()


def test_limit_is_noticed_after_a_reading_within_the_skill(metered):
    meter = metered(seconds=0.002)
    with meter.skill():
        meter.add_parsed(0, 0)
        meter.check()
        work(0.003)
        with pytest.raises(LimitReached, match="processor time"):
            meter.check()


def test_time_of_the_parsing_process_is_noticed_at_the_next_check(metered):
    meter = metered(seconds=1)
    with meter.skill():
        meter.add_parsed(2, 0)
        with pytest.raises(LimitReached, match="processor time"):
            meter.check()


def test_text_is_noticed_at_the_next_check(metered):
    meter = metered(total_text=10)
    meter.add_text(11)
    with pytest.raises(LimitReached, match="characters of text"):
        meter.check()


def test_processor_time_is_read_less_than_twice_per_skill(skills, make_skill, load, monkeypatch):
    for number in range(100):
        make_skill(f"demo-{number}", {"helper.py": "x = 1", "references/a.md": "text"})
    reads = []
    monkeypatch.setattr(_meter, "thread_time", lambda: reads.append(1) or thread_time())
    assert len(load(skills).skills) == 100
    assert len(reads) < 200, "a step of loading reads the clock of the thread again: call `meter.check` there"
