"""Redaction of known values in all encoded forms."""

import base64
import hashlib
import html
import json
import textwrap
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sideband.broker import Redaction, Unserializable
from sideband.broker._form_parts import PartTable

pytestmark = pytest.mark.usefixtures("each_search")

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


def test_values_that_overlap_in_equal_steps_are_found_in_one_step(count_calls):
    redactor = Redaction()
    redactor.protect("aaaa", "canary")
    assert count_calls(lambda: redactor.value_spans("a" * 10_000)) < 1_000


@example(values={"xyxxyx"}, text="xyxxyxxyxyxxyx")
@given(values=st.sets(st.text("xy", min_size=4, max_size=14), min_size=1, max_size=3), text=st.text("xy", max_size=60))
def test_each_character_of_overlapping_values_is_redacted_and_no_other(values, text):
    redactor = Redaction()
    for value in values:
        redactor.protect(value, "canary")
    hidden = {
        at
        for value in values
        for start in range(len(text))
        if text.startswith(value, start)
        for at in range(start, start + len(value))
    }
    assert {at for start, end in redactor.value_spans(text) for at in range(start, end)} == hidden


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


@pytest.mark.parametrize(
    "key",
    [
        *("token", "TOKEN", "access_token", "github_token", "GITHUB_TOKEN", "x-vault-token", "token2", "client_token"),
        *("secret", "webhook_secret", "webhookSecret", "clientSecret", "SecretString", "secret_access_key"),
        *("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "openaiApiKey", "private_key"),
        *("credentials", "awsCredentials", "jwt", "id_jwt", "db_password", "DB_PASSWORD", "newPassword", "pass-word"),
        *("backend_token", "send_token", "Proxy-Authorization"),
    ],
)
def test_key_of_a_secret_is_recognized_in_all_spellings(key):
    assert Redaction().data({key: "value"}) == {key: "[redacted]"}


@pytest.mark.parametrize(
    "key",
    [
        *(
            "max_tokens",
            "/etc/passwd",
            "token_count",
            "output_tokens",
            "tokens",
            "tokenizer",
            "token_type",
            "cost_per_token",
        ),
        *("next_page_token", "nextPageToken", "NextToken", "pageToken", "page_token", "nextpagetoken", "next-token"),
        *("continuationToken", "NextContinuationToken", "nextSyncToken", "cursor_token", "eos_token", "pad_token_id"),
        *("secretary", "secret_name", "secrets", "password_changed_at", "passwords_checked", "public_key", "key"),
        *("sort_key", "primaryKey", "idempotency_key", "access-control-allow-credentials", "authorization_url"),
    ],
)
def test_key_that_only_resembles_that_of_a_secret_is_not_redacted(key):
    assert Redaction().data({key: "value"}) == {key: "value"}


def test_booleans_under_a_sensitive_key_are_unchanged():
    assert Redaction().data({"has_password": True, "secret": False}) == {"has_password": True, "secret": False}


LONG = "s3cr3t/Value+99 of the user, which is longer than one line of base64 allows, and therefore broken into lines"
ENCODED = base64.encodebytes(b"user:" + LONG.encode() + b":end").decode()
BROKEN = {
    "base64 of MIME": ENCODED,
    "base64 with CRLF": ENCODED.replace("\n", "\r\n"),
    "base64 with CR": ENCODED.replace("\n", "\r"),
    "base64 of PEM": "\n".join(textwrap.wrap(ENCODED.replace("\n", ""), 64)),
    "indented base64": textwrap.indent(ENCODED, "    "),
    "base64 with trailing spaces": ENCODED.replace("\n", " \t\n"),
    "base64 with empty lines": ENCODED.replace("\n", "\n\n\n"),
    "base64 of one character a line": "\n".join(ENCODED.replace("\n", "")),
    "base64 for URLs in lines": "\n".join(textwrap.wrap(base64.urlsafe_b64encode(LONG.encode()).decode(), 50)),
    "base64 in JSON": json.dumps({"content": ENCODED}),
    "base64 in JSON in JSON": json.dumps(json.dumps({"content": ENCODED})),
    "indented base64 in JSON": json.dumps({"content": textwrap.indent(ENCODED, "  ")}),
    "base64 in a repr": repr(ENCODED),
    "hexadecimal in lines": "\n".join(textwrap.wrap(LONG.encode().hex(), 60)),
    "plain in lines": LONG[:40] + "\n" + LONG[40:],
}


def letters_of(text):
    return "".join(text.replace("\\r", "").replace("\\n", "").replace("\\", "").split())


@pytest.mark.parametrize("form", BROKEN)
def test_value_broken_into_lines_is_found_everywhere(form):
    redactor = Redaction()
    redactor.protect(LONG, "canary", origins=["https://home.test"])
    broken = BROKEN[form]
    text = redactor.text(f"before\n{broken}\nafter")
    assert text.startswith("before\n")
    assert text.endswith("\nafter")
    assert text.count("[redacted:canary]") == 1
    left = letters_of(text.replace("[redacted:canary]", ""))
    assert len(left) <= len("beforeafter") + 30  # what surrounds the value in the encoded data
    assert redactor.unbound(broken, "https://away.test") == "canary"
    assert redactor.unbound(broken.encode(), "https://home.test") is None
    assert b"[redacted:canary]" in redactor.data(broken.encode())
    half = len(broken) // 2
    assert redactor.cut(broken[:half].encode(), broken[half:].encode()) == "canary"


def test_private_key_is_redacted_with_other_line_breaks():
    redactor = Redaction()
    lines = [
        "-----BEGIN KEY-----",
        *textwrap.wrap(base64.b64encode(bytes(range(150))).decode(), 64),
        "-----END KEY-----",
    ]
    redactor.protect("\n".join([*lines, ""]), "key")
    for written in ("\r\n".join(lines), textwrap.indent("\n".join(lines), "  ").strip(), json.dumps("\n".join(lines))):
        assert redactor.text(written).strip('"') in ("[redacted:key]", "[redacted:key]\\n")


def test_short_value_is_not_found_across_lines():
    redactor = Redaction()
    redactor.protect("password", "short")
    for written in ("pass\nword", "pass\\nword"):
        assert redactor.text(written) == written
        assert redactor.unbound(written, None) is None


def test_overlapping_values_are_redacted_together():
    redactor = Redaction()
    redactor.protect("first-secret-value", "first")
    redactor.protect("value-of-the-other-secret", "second")
    assert redactor.text("<first-secret-value-of-the-other-secret>") == "<[redacted:second]>"
    assert redactor.text("<first-secret-valuevalue-of-the-other-secret>") == "<[redacted:first][redacted:second]>"


def test_binary_value_does_not_change_text():
    redactor = Redaction()
    redactor.protect("é".encode()[1:] + "éé".encode() + "é".encode()[:1], "raw")
    assert redactor.text("ééééé") == "ééééé"
    assert b"[redacted:raw]" in redactor.data("ééééé".encode())


def test_lone_surrogates_beside_a_value_are_unchanged():
    redactor = Redaction()
    redactor.protect("s3cr3t-value", "canary")
    assert redactor.text("\ud800s3cr3t-value\udfff é") == "\ud800[redacted:canary]\udfff é"


def crowded():
    """Return a redactor with hundreds of values."""
    redactor = Redaction()
    for number in range(100):
        redactor.protect(f"ghp_{number:03}{hashlib.sha256(bytes([number % 256, 7])).hexdigest()[:30]}", f"long{number}")
        redactor.protect(f"pin-{number:04}", f"short{number}")
    return redactor


@settings(max_examples=60, deadline=None)
@given(
    secret=st.text(min_size=4, max_size=40).filter(lambda text: len(text.strip().encode()) >= 4),
    form=st.sampled_from(sorted(FORMS)),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
)
def test_value_among_hundreds_is_redacted_like_a_single_one(secret, form, before, after):
    one, many = Redaction(), crowded()
    one.protect(secret, "canary")
    many.protect(secret, "canary")
    text = before + FORMS[form](secret) + after
    assert many.text(text) == one.text(text)
    assert (many.unbound(text, None) is None) == (one.unbound(text, None) is None)


def test_hundreds_of_values_are_all_redacted():
    redactor = crowded()
    left = redactor.text(" ".join(value.decode() for value in redactor._names))
    assert left.count("[redacted:long") == 100
    assert left.count("[redacted:short") == 100
    assert "ghp_" not in left


def test_thread_searches_while_values_are_added():
    redactor = crowded()
    text = "\n".join(["ghp_000 pin-0000 and more"] * 2_000)

    def search():
        for _ in range(20):
            redactor.text(text)
            redactor.unbound(text, None)

    with ThreadPoolExecutor() as threads:
        running = [threads.submit(search) for _ in range(3)]
        for number in range(2_000):
            redactor.protect(f"later-value-{number}", "later")
    assert [one.result() for one in running] == [None] * 3


def test_value_is_found_while_another_thread_makes_it_known_to_the_search():
    redactor, found = Redaction(), []
    other = Thread(target=lambda: found.append(redactor.text("s3cr3t-value")))

    class Slow(PartTable):
        def add(self, forms):
            if forms:
                other.start()
                other.join(0.2)  # it waits for this method
            super().add(forms)

    redactor._search._parts = Slow()
    redactor.protect("s3cr3t-value", "canary")
    assert redactor.text("s3cr3t-value") == "[redacted:canary]"
    other.join()
    assert found == ["[redacted:canary]"]


@pytest.mark.parametrize(
    "secret", ["0000001\né", "   1234567890", "1234567890 \n", "\n\n\n1234567\n89", "1234567\n890"]
)
def test_value_that_is_short_without_line_breaks_is_redacted(secret):
    redactor = crowded()
    redactor.protect(secret, "canary")
    for text in (secret, f"a\n{secret}\nb", f"<{secret}>", f" {secret} "):
        assert "[redacted:canary]" in redactor.text(text)
        assert redactor.unbound(text, None) == "canary"
