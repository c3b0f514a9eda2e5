"""Skills that crash or raise unusual errors. Each call fails with a typed error, and no other call is affected."""

import pytest
from sideband.workers import SkillFailed, SkillRefused, WorkerExited

from .crash_attacks import DIES, HOSTILE, OVERFLOWS, RAISES, REFUSED, SIGNALS


@pytest.fixture(scope="module")
def arena(fight):
    return fight({**DIES, **OVERFLOWS, **SIGNALS, **RAISES, **REFUSED}, backend="trio")


def test_crash_fails_its_call_with_worker_exited(arena):
    assert arena.unexpected(DIES, lambda attack: isinstance(attack.error, WorkerExited)) == {}


def test_stack_overflow_fails_at_most_its_call(arena):
    def is_expected(attack):
        # ctypes prints an exception of a callback and returns.
        return attack.error is None or isinstance(attack.error, WorkerExited) or attack.code == "skill.raised"

    assert arena.unexpected(OVERFLOWS, is_expected) == {}


def test_signal_to_itself_fails_at_most_the_call(arena):
    def is_expected(attack):
        return attack.output == "alive" or attack.code in {"worker.exited", "skill.raised", "call.timeout"}

    assert arena.unexpected(SIGNALS, is_expected) == {}


def test_error_of_a_skill_is_reported_and_truncated(arena):
    def is_expected(attack):
        error = attack.error
        if not isinstance(error, SkillFailed) or len(attack.after) != 1:
            return False
        (error.message + error.traceback).encode()
        return len(error.message) < 5_000 and len(error.traceback) < 20_000

    assert arena.unexpected(RAISES, is_expected) == {}


def test_type_of_an_error_is_reported_if_its_text_is_unavailable(arena):
    names = [name for name in RAISES if name.startswith("an error whose text")]
    assert names
    assert arena.unexpected(names, lambda attack: " raised Odd: " in attack.error.message) == {}


def test_replaced_tool_is_refused(arena):
    assert arena.unexpected(REFUSED, lambda attack: isinstance(attack.error, SkillRefused)) == {}


def test_other_calls_are_not_affected(arena):
    assert arena.attacks.keys() == HOSTILE.keys()
    arena.check_others()


def test_executed_effects_are_granted_and_the_ledger_is_valid(arena):
    arena.check_record()
