"""Edge cases of redaction."""

import pytest
from sideband import SidebandError
from sideband.broker import Redaction
from sideband.workers import SkillFailed

pytestmark = pytest.mark.usefixtures("each_search")


@pytest.fixture
def redactor():
    redactor = Redaction()
    redactor.protect("s3cr3t/value", "canary")
    return redactor


def test_base64_forms_of_a_short_value_are_not_redacted():
    redactor = Redaction()
    redactor.protect("abcd", "short")
    assert redactor.text("abcd YWJjZ hYmNk") == "[redacted:short] YWJjZ hYmNk"


def test_value_is_redacted_without_its_surrounding_whitespace():
    redactor = Redaction()
    redactor.protect("  s3cr3t-value\n", "canary")
    assert redactor.text("it is s3cr3t-value.") == "it is [redacted:canary]."


def test_value_protected_twice_keeps_its_first_name(redactor):
    redactor.protect("s3cr3t/value", "other")
    assert redactor.text("s3cr3t/value") == "[redacted:canary]"
    assert redactor.data({"raw": b"s3cr3t/value"}) == {"raw": b"[redacted:canary]"}


def test_binary_value_is_redacted_in_bytes():
    redactor = Redaction()
    redactor.protect(b"\xff\x00\xfe\x01\xfd", "raw")
    assert redactor.data(b"<\xff\x00\xfe\x01\xfd>") == b"<[redacted:raw]>"


@pytest.mark.parametrize("form", [r"s3cr3t\/value", "s3cr3t%2fvalue"])
def test_alternative_escapes_are_redacted(redactor, form):
    assert redactor.text(f"<{form}>") == "<[redacted:canary]>"


def test_pattern_is_redacted_in_text():
    redactor = Redaction()
    redactor.add_pattern("forge_[a-z]+", "forge")
    assert redactor.data(["it is forge_abc"]) == ["it is [redacted:forge]"]


def test_keys_and_texts_of_plain_data_are_redacted_and_the_data_itself_is_unchanged(redactor):
    redactor.add_pattern("forge_[a-z]+", "forge")
    given = {"s3cr3t/value": [{"forge_abc": ("s3cr3t/value", "forge_abc", 1)}], "password": "x"}
    assert redactor.data(given) == {
        "[redacted:canary]": [{"[redacted:forge]": ["[redacted:canary]", "[redacted:forge]", 1]}],
        "password": "[redacted]",
    }
    assert given == {"s3cr3t/value": [{"forge_abc": ("s3cr3t/value", "forge_abc", 1)}], "password": "x"}


def test_result_for_clean_data_is_a_copy(redactor):
    given = {"rows": [{"id": 1}]}
    clean = redactor.data(given)
    given["rows"][0]["id"] = "s3cr3t/value"
    assert clean == {"rows": [{"id": 1}]}


def test_all_strings_of_an_error_are_redacted(redactor):
    error = SidebandError("a s3cr3t/value", hint="not s3cr3t/value")
    redactor.error(error)
    assert (error.message, error.hint, str(error), error.args) == (
        "a [redacted:canary]",
        "not [redacted:canary]",
        "a [redacted:canary]",
        ("a [redacted:canary]",),
    )


def test_traceback_of_a_skill_is_redacted(redactor):
    error = SkillFailed("a.b", "ValueError", traceback="ValueError: s3cr3t/value")
    redactor.error(error)
    assert error.traceback == "ValueError: [redacted:canary]"


def test_value_that_is_short_without_whitespace_is_not_redacted():
    redactor = Redaction()
    redactor.protect(" a  ", "blank")
    assert redactor.text("banana") == "banana"
