"""JSON text is redacted like the data parsed from it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.broker import Redaction, redact_json_text

KEYS = st.sampled_from(
    ["password", "token", "a", 'x"password', "pass\\word", "\u2028token", "max_tokens", ""]
) | st.text(max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6)
    | st.sampled_from(['"password": "x"', '{"token": 1}', "\\", '\\": "']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(data=VALUES, ascii_only=st.booleans(), indent=st.none() | st.integers(0, 2))
def test_redacted_text_parses_to_the_redacted_data(data, ascii_only, indent):
    text = json.dumps(data, ensure_ascii=ascii_only, indent=indent)
    assert json.loads(redact_json_text(text)) == Redaction().data(data)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ('{"a": 1,\n "b" : [2e3]}', '{"a": 1,\n "b" : [2e3]}'),
        ('{"password" : "x" ,"b":2}', '{"password" : "[redacted]" ,"b":2}'),
        ('{"pass\\u0077ord":"x"}', '{"pass\\u0077ord":"[redacted]"}'),
        ('{"token": {"token": ["x"]}, "b": "token"}', '{"token": "[redacted]", "b": "token"}'),
        ('{"token": "x", "token": null}', '{"token": "[redacted]", "token": null}'),
        ('{"a": {"token": "x"}, "a": 1}', '{"a": {"token": "[redacted]"}, "a": 1}'),
        ('{"a": "\\"token\\": 1"}', '{"a": "\\"token\\": 1"}'),
        ('"token"', '"token"'),
    ],
)
def test_only_values_under_sensitive_keys_change(text, redacted):
    assert redact_json_text(text) == redacted
