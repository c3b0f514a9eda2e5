"""Redaction of known values in all encoded forms."""

import base64
import html
import json
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.broker import Redaction, Unserializable

SECRETS = st.text(alphabet=st.characters(codec="utf-8"), min_size=8, max_size=24).filter(
    lambda text: len(text.strip()) >= 8 and len(set(text)) > 3
)
FORMS = {
    "plain": lambda value: value,
    "url": lambda value: urllib.parse.quote(value, safe=""),
    "url of a path": urllib.parse.quote,
    "form": urllib.parse.quote_plus,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 for urls": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "upper hex": lambda value: value.encode().hex().upper(),
    "json": lambda value: json.dumps(value)[1:-1],
    "all percent": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "all unicode": lambda value: "".join(
        f"\\u{value.encode('utf-16-be').hex()[i : i + 4]}" for i in range(0, len(value.encode("utf-16-be")) * 2, 4)
    ),
    "repr": lambda value: repr(value)[1:-1],
    "json in json": lambda value: json.dumps(json.dumps(value))[3:-3],
    "repr of json": lambda value: repr(json.dumps(value))[2:-2],
    "html": html.escape,
    "html text": lambda value: html.escape(value, quote=False),
    "html as templates write it": lambda value: (
        html.escape(value).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    ),
    "unescaped json": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40)
@given(secret=SECRETS, before=st.text(max_size=5), after=st.text(max_size=5))
def test_value_is_redacted_in_every_encoded_form(form, secret, before, after):
    redactor = Redaction()
    redactor.protect(secret, "canary")
    encoded = FORMS[form](secret)
    text = redactor.text(before + encoded + after)
    assert "[redacted:canary]" in text
    # The last base64 character may remain. It is shared with the following data and reveals less than 6 bits.
    assert encoded[: max(6, len(encoded) - 6)] not in text.replace("[redacted:canary]", "")


@given(secret=st.binary(min_size=9, max_size=30), before=st.binary(max_size=7), after=st.binary(max_size=7))
def test_value_in_longer_base64_data_is_redacted_at_any_alignment(secret, before, after):
    redactor = Redaction()
    redactor.protect(secret, "canary")
    assert "[redacted:canary]" in redactor.text(base64.b64encode(before + secret + after).decode())


@given(SECRETS)
def test_keys_nested_values_and_bytes_are_redacted(secret):
    redactor = Redaction()
    redactor.protect(secret, "canary")
    data = redactor.data({"a": [{secret: (secret,)}], "b": secret.encode() + b"!"})
    assert secret not in json.dumps(data, ensure_ascii=False, default=lambda raw: raw.decode())


def test_number_that_is_a_known_value_is_redacted():
    redactor = Redaction()
    redactor.protect("314159", "pin")
    assert redactor.data({"n": 314159, "m": 27}) == {"n": "[redacted:pin]", "m": 27}


@pytest.mark.parametrize("key", ["password", "Authorization", "X-Api-Key", "set-cookie", "clientSecret"])
def test_any_value_under_a_sensitive_key_is_redacted(key):
    assert Redaction().data({key: {"deep": 1}}) == {key: "[redacted]"}


def test_null_under_a_sensitive_key_is_unchanged():
    assert Redaction().data({"password": None}) == {"password": None}


def test_redaction_of_sensitive_keys_is_optional():
    assert Redaction().data({"password": "x"}, sensitive_keys=False) == {"password": "x"}


def test_longer_form_is_redacted_before_a_form_it_contains():
    redactor = Redaction()
    redactor.protect("abcd", "short")
    redactor.protect("xxabcdxx", "long")
    assert redactor.text("xxabcdxx") == "[redacted:long]"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}, {"a": object()}])
def test_value_that_json_cannot_represent_is_rejected_with_its_location(value):
    with pytest.raises(Unserializable, match="result"):
        Redaction().data(value)


def test_short_values_are_not_redacted():
    redactor = Redaction()
    redactor.protect("abc", "tiny")
    assert redactor.text("abc") == "abc"


@pytest.mark.parametrize(
    ("secret", "number"),
    [
        ("91827364", 91827364),
        ("91827364", 91827364.0),
        ("91827364", -91827364.0),
        ("-91827364", 91827364),
        ("918273.64", 918273.64),
        ("918273645546372819", 918273645546372819),
        ("918273645546372819", 918273645546372819.0),
    ],
)
def test_value_is_redacted_in_integers_and_floats(secret, number):
    redactor = Redaction()
    redactor.protect(secret, "pin")
    assert redactor.data([number, {"a": number}]) == ["[redacted:pin]", {"a": "[redacted:pin]"}]
    assert redactor.data({1: number}) == {"1": "[redacted:pin]"}


@pytest.mark.parametrize("secret", ["0000000", "1e400", "9" * 400, "12345678.", "nan", "infinity"])
def test_value_without_a_distinctive_number_redacts_no_numbers(secret):
    redactor = Redaction()
    redactor.protect(secret, "pin")
    assert redactor.data([0, 0.5, 12345678, 1e300]) == [0, 0.5, 12345678, 1e300]
