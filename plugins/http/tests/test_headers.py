import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_http import HeaderRefused
from sideband_http._request._header_rules import check_cookies, check_credential_headers, check_headers

RESERVED = ["Connection", "Content-Length", "Expect", "Host", "HTTP2-Settings", "Keep-Alive", "TE", "Trailer"]
RESERVED += ["Transfer-Encoding", "Upgrade", "Proxy-Authorization", "Proxy-Connection", "Proxy-Anything"]


@pytest.mark.parametrize("name", [*RESERVED, "Cookie", "Cookie2", "HOST", "Content_Length", "Transfer_Encoding"])
def test_skill_may_not_set_a_reserved_header(name):
    with pytest.raises(HeaderRefused) as caught:
        check_headers({name: "x"})
    assert caught.value.code == "http.header"


@pytest.mark.parametrize("name", RESERVED)
def test_credential_may_not_set_a_reserved_header(name):
    with pytest.raises(HeaderRefused, match="reserved"):
        check_credential_headers({name: "x"})


@pytest.mark.parametrize("character", [chr(code) for code in (*range(9), *range(10, 32), 127, 128, 0x85, 0xFF, 0x2028)])
@pytest.mark.parametrize("form", ["a{}b", "{}a", "a{}", "a{} b"])
def test_control_character_in_a_field_is_rejected(form, character):
    text = form.format(character)
    for check, fields in [(check_headers, {"X-A": text}), (check_headers, {text: "x"}), (check_cookies, {"c": text})]:
        with pytest.raises(HeaderRefused):
            check(fields)
    with pytest.raises(HeaderRefused):
        check_cookies({text: "x"})
    with pytest.raises(HeaderRefused):
        check_credential_headers({"X-A": text})
    with pytest.raises(HeaderRefused):
        check_credential_headers({text: "x"})


@given(st.dictionaries(st.text(max_size=10), st.text(max_size=20), max_size=4))
def test_accepted_headers_are_one_line_each(headers):
    try:
        checked = check_headers(headers)
    except HeaderRefused:
        return
    lines = "".join(f"{name}: {value}\r\n" for name, value in checked.items())
    parsed = h11.Connection(h11.SERVER)
    parsed.receive_data(f"GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n".encode("ascii"))
    request = parsed.next_event()
    assert [(name.decode(), value.decode()) for name, value in request.headers][1:] == list(checked.items())


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", " a", "a ", "ä", "\x7f"])
def test_invalid_header_value_is_rejected(value):
    with pytest.raises(HeaderRefused):
        check_headers({"X-Test": value})


@pytest.mark.parametrize("name", ["", "X Test", "X:Test", "X\r\nEvil", "Xä"])
def test_invalid_header_name_is_rejected(name):
    with pytest.raises(HeaderRefused):
        check_headers({name: "x"})


def test_duplicate_header_in_another_case_is_rejected():
    with pytest.raises(HeaderRefused):
        check_headers({"X-A": "1", "x-a": "2"})


def test_too_many_headers_are_rejected():
    with pytest.raises(HeaderRefused):
        check_headers({f"x-{number}": "y" for number in range(101)})


def test_header_of_the_credential_may_not_be_set():
    with pytest.raises(HeaderRefused):
        check_headers({"Authorization": "mine"}, attached=["authorization"])
    with pytest.raises(HeaderRefused):
        check_headers({"X_Api_Key": "mine"}, attached=["x-api-key"])


def test_header_names_are_lowered():
    assert check_headers({"X-Test": "a b"}) == {"x-test": "a b"}


@pytest.mark.parametrize(
    "cookies",
    [{"a": "b; c=d"}, {"a": "b\r\nX: 1"}, {"a;b": "c"}, {"a": 'b"'}, {"a": "b,c"}, {"": "x"}, {"a": "ä"}],
    ids=str,
)
def test_invalid_cookie_is_rejected(cookies):
    with pytest.raises(HeaderRefused):
        check_cookies(cookies)


def test_error_about_an_invalid_credential_does_not_contain_it():
    with pytest.raises(HeaderRefused) as caught:
        check_credential_headers({"X-Key": "s3cr3t\r\n"})
    assert "s3cr3t" not in str(caught.value)
