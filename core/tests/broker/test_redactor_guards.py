"""Where the redactor must not look, and what else it must find."""

import pytest
from sideband import SidebandError
from sideband.broker import Redaction
from sideband.workers import SkillFailed


@pytest.fixture
def redactor():
    redactor = Redaction()
    redactor.protect("s3cr3t/value", "canary")
    return redactor


def test_the_encoded_middle_of_a_short_value_is_no_coincidence_worth_masking():
    redactor = Redaction()
    redactor.protect("abcd", "short")
    assert redactor.text("abcd YWJjZ hYmNk") == "[redacted:short] YWJjZ hYmNk"


def test_a_value_is_found_without_the_space_around_it():
    redactor = Redaction()
    redactor.protect("  s3cr3t-value\n", "canary")
    assert redactor.text("it is s3cr3t-value.") == "it is [redacted:canary]."


def test_the_first_name_of_a_value_stays(redactor):
    redactor.protect("s3cr3t/value", "other")
    assert redactor.text("s3cr3t/value") == "[redacted:canary]"
    assert redactor.data({"raw": b"s3cr3t/value"}) == {"raw": b"[redacted:canary]"}


def test_a_value_that_is_no_text_is_found_in_bytes():
    redactor = Redaction()
    redactor.protect(b"\xff\x00\xfe\x01\xfd", "raw")
    assert redactor.data(b"<\xff\x00\xfe\x01\xfd>") == b"<[redacted:raw]>"


@pytest.mark.parametrize("form", [r"s3cr3t\/value", "s3cr3t%2fvalue"])
def test_other_writers_escape_otherwise(redactor, form):
    assert redactor.text(f"<{form}>") == "<[redacted:canary]>"


def test_a_pattern_is_replaced_in_text():
    redactor = Redaction()
    redactor.add_pattern("forge_[a-z]+", "forge")
    assert redactor.data(["it is forge_abc"]) == ["it is [redacted:forge]"]


def test_an_error_is_redacted_in_all_that_it_says(redactor):
    error = SidebandError("a s3cr3t/value", hint="not s3cr3t/value")
    redactor.error(error)
    assert (error.message, error.hint, str(error), error.args) == (
        "a [redacted:canary]",
        "not [redacted:canary]",
        "a [redacted:canary]",
        ("a [redacted:canary]",),
    )


def test_the_traceback_of_a_skill_is_redacted(redactor):
    error = SkillFailed("a.b", "ValueError", traceback="ValueError: s3cr3t/value")
    redactor.error(error)
    assert error.traceback == "ValueError: [redacted:canary]"


def test_what_is_left_of_a_value_without_its_spaces_may_be_too_short_to_look_for():
    redactor = Redaction()
    redactor.protect(" a  ", "blank")
    assert redactor.text("banana") == "banana"
