"""The search for forms of secrets: with an automaton, with tables, and one form after the other, with equal results."""

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.broker import Redaction
from sideband.broker import _form_search as form_search
from sideband.broker._form_parts import PartAutomata, PartTable, form_parts
from sideband.broker._streams import TextRedaction


class AllForms:
    """An index for which every form may occur, so that each is searched."""

    def __init__(self):
        self.forms = []

    def add(self, forms):
        self.forms += forms

    def candidates(self, data):
        return self.forms


def automata():
    from ahocorasick_rs import BytesAhoCorasick

    return PartAutomata(BytesAhoCorasick)


def redactor_with(index, values):
    """Return a redactor that searches with the index. Values are found as soon as they are added."""
    redactor = Redaction()
    redactor._search._parts = index
    for number, value in enumerate(values):
        redactor.protect(value, f"N{number}", origins=[f"https://{number}.test"])
        if number % 2:
            redactor.text("x")
    return redactor


LETTERS = st.text(st.sampled_from("abA/ \n\\é€\U0001f600\t1"), max_size=30)
VALUES = st.lists(LETTERS | st.binary(max_size=14) | st.sampled_from(["", "a", "abab", "abababab", "1111"]), max_size=6)
TEXTS = st.lists(LETTERS | st.integers(0, 400), max_size=8)


def content(values, pieces, redactor):
    """Return a text with values and their forms. A number selects one of them."""
    forms = [form_search._joined(form) for form in redactor._search._parts.forms]
    plain = [value for value in values if isinstance(value, str)]
    known = plain + [form.encode("latin-1").decode("utf-8", "replace") for form in forms]
    return "".join(known[one % len(known)] if known and isinstance(one, int) else str(one) for one in pieces)


def found(redactor, text):
    """Return everything that can be found out about a text, in all ways."""
    raw = text.encode("utf-8", "surrogatepass")
    return [
        redactor.text(text),
        list(redactor.value_spans(text)),
        redactor.data({"a": [text, {text: 1111.0}], "b": "c", "n": 1111}),
        redactor.data([raw]),
        {redactor.unbound(text, None) is None, redactor.unbound(raw, None) is None},
        redactor.unbound(raw, "https://0.test") is None,
        [redactor.cut(raw[:at], raw[at:]) for at in range(len(raw))],
    ]


@settings(max_examples=150, deadline=None)
@given(VALUES, TEXTS)
def test_automaton_and_tables_find_what_is_found_one_after_the_other(values, pieces):
    plain = redactor_with(AllForms(), values)
    text = content(values, pieces, plain)
    expected = found(plain, text)
    assert found(redactor_with(automata(), values), text) == expected
    assert found(redactor_with(PartTable(), values), text) == expected


@settings(max_examples=40, deadline=None)
@given(VALUES, TEXTS)
def test_stream_cut_at_any_position_is_redacted_like_the_whole_text(values, pieces):
    plain = redactor_with(AllForms(), values)
    text = content(values, pieces, plain)
    redactors = [redactor_with(index, values) for index in (automata(), PartTable())]
    for at in range(len(text) + 1):
        for redactor in redactors:
            stream = TextRedaction(redactor)
            assert stream.feed(text[:at]) + stream.feed(text[at:]) + stream.end() == plain.text(text)


@pytest.mark.parametrize("make", [automata, PartTable])
@pytest.mark.parametrize("at", [0, 1, 4_080, 4_094, 4_095, 4_096, 4_110, 8_191])
def test_form_is_found_at_the_borders_of_searched_pieces(make, at):
    index = make()
    index.add(["s3cr3t-value-with-more-than-a-part"])
    data = "." * at + "s3cr3t-value-with-more-than-a-part" + "." * 70_000
    assert set(index.candidates(data)) == {"s3cr3t-value-with-more-than-a-part"}
    assert not index.candidates("." * 200_000)


@pytest.mark.parametrize("make", [automata, PartTable])
def test_part_that_many_forms_have_in_common_is_not_theirs(make):
    index = make()
    common = "postgres://database.internal.example.test:5432/"
    index.add(f"{number:08d}{common}{number:08d}" for number in range(1_000))
    assert len(index.candidates(common * 3)) < 50
    assert f"00000123{common}00000123" in index.candidates(f"<00000123{common}00000123>")


def test_each_automaton_is_at_least_twice_as_large_as_the_next_one():
    from ahocorasick_rs import BytesAhoCorasick

    built = []

    def build(parts):
        built.append(len(parts))
        return BytesAhoCorasick(parts)

    index = PartAutomata(build)
    for number in range(500):
        index.add([f"value-{number:05d}-{part}" for part in range(10)])
    sizes = [len(parts) for _, parts in index._automata]
    assert sum(sizes) == 5_000
    assert all(large >= 2 * small for large, small in pairwise(sizes))
    assert sum(built) < 5_000 * 10, "adding one secret rebuilds too much; a form may be rebuilt log(n) times"


def test_occurrence_that_goes_beyond_that_of_a_longer_value_is_replaced_too():
    redactor = redactor_with(automata(), ["bbabab", "abab"])
    assert redactor.text("bbababab.bbababbb") == "[redacted:N0].[redacted:N0]bb"
    assert redactor.text("bbababbabab") == "[redacted:N0]"


LETTERS_AB = st.sampled_from("ab")


@settings(max_examples=400, deadline=None)
@given(st.lists(st.text(LETTERS_AB, min_size=4, max_size=12), max_size=6), st.text(LETTERS_AB, max_size=40))
def test_occurrences_that_contain_each_other_are_replaced_like_those_found_one_after_the_other(values, text):
    redactor = redactor_with(AllForms(), values)
    redactor.text("x")
    spans = []
    for form in {form for form in redactor._search._parts.forms if form in text}:
        starts = [at for at in range(len(text)) if text.startswith(form, at)]
        spans += [(start, start + len(form), form) for start in starts]
    expected = []
    for start, end, form in sorted(spans):
        if expected and start < expected[-1][1]:
            first, last, known = expected.pop()
            expected.append((first, max(last, end), max(known, form, key=len)))
        else:
            expected.append((start, end, form))
    names = redactor._names
    assert redactor._spans(text) == [(start, end, names[form.encode()]) for start, end, form in expected]


def test_data_that_consists_of_matches_is_searched_once_for_each_of_its_pieces():
    index, data = automata(), ("a" * 50 + "b") * 20_000
    index.add(["s3cr3t-value-with-more", *("a" * length for length in range(4, 16))])
    searched = []

    class Watched:
        def __init__(self, automaton):
            self.automaton = automaton

        def find_matches_as_indexes(self, raw, *, overlapping):
            searched.append(len(raw))
            return self.automaton.find_matches_as_indexes(raw, overlapping=overlapping)

    index._automata = [(Watched(automaton), parts) for automaton, parts in index._automata]
    assert len(index.candidates(data)) == 12
    assert sum(searched) < 20_000, "search equal pieces of repetitive data once"
    for length in range(256, 512, 3):
        assert "s3cr3t-value-with-more" in index.candidates(
            "a" * 5_000 + "b" * length + "s3cr3t-value-with-more" + data[:10_000]
        )


def test_tables_are_used_where_the_automaton_is_not_installed(monkeypatch):
    assert isinstance(form_parts(), PartAutomata)
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    assert isinstance(form_parts(), PartTable)


def test_automaton_is_loaded_only_once_a_secret_is_searched():
    code = """if True:
        import sys
        from sideband import Host
        from sideband.broker import Redaction
        redactor = Redaction()
        redactor.data({"a": "text"})
        redactor.protect("s3cr3t-value", "demo")
        assert "ahocorasick_rs" not in sys.modules
        redactor.text("text")
        assert "ahocorasick_rs" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


OBJECT = {
    "url": "https://api.test/v1/users?page=3",
    "headers": {"accept": "application/json", "password": "x"},
    "rows": [{"id": number, "name": f"user {number}", "done": False} for number in range(20)],
}


@pytest.mark.usefixtures("each_search")
def test_work_does_not_depend_on_the_number_of_secrets(count_calls):
    work = []
    for secrets in (5, 500):
        redactor = Redaction()
        for number in range(secrets):
            redactor.protect(f"sk-{number:04d}-{number * 7919:012d}", f"N{number}")
        redactor.data(OBJECT)
        work.append(count_calls(lambda redactor=redactor: redactor.data(OBJECT)))
    few, many = work
    assert many <= few, "the search for secrets may not call a function for each secret"
    assert many <= 85, "redaction searches the texts of an object together: call nothing for each of them"


@pytest.mark.usefixtures("each_search")
def test_adding_secrets_between_searches_takes_linear_work(count_calls):
    def work(secrets):
        redactor = Redaction()

        def run():
            for number in range(secrets):
                redactor.protect(f"sk-{number:04d}-{number * 7919:012d}", f"N{number}")
                redactor.text("hello")
                TextRedaction(redactor).feed("hello")

        return count_calls(run)

    work(2)
    assert work(160) < 5 * work(40), "a new secret may not rebuild what is known about the others"


@pytest.mark.usefixtures("each_search")
def test_values_that_contain_each_other_take_little_work(count_calls):
    redactor = Redaction()
    for length in range(4, 204):
        redactor.protect("a" * length, f"N{length}")
    text = ("a" * 50 + "b") * 1_000
    redactor.text(text)
    assert count_calls(lambda: redactor.text(text)) < 15_700, "search only for what is not within a longer form"


@pytest.mark.usefixtures("each_search")
def test_long_values_of_one_letter_are_protected_with_little_work(count_calls):
    redactor = Redaction()
    for length in range(10_000, 11_000, 10):
        redactor.protect("a" * length, f"N{length}")
    assert count_calls(lambda: redactor.text("x")) < 158_000, "try a few parts of a long form, not all of them"
