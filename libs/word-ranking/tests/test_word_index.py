"""Descriptions are ranked by the words of a text."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband_word_ranking import WordIndex

TOOLS = [
    ("calendar_create", "Add an appointment to the calendar."),
    ("github__issues", "List the open issues of a repository."),
    ("mail_send", "Send a message by mail."),
    ("weather", "Say whether it rains."),
]


def ranked(index, text, entries=TOOLS):
    return [entries[position][0] for position in index.rank(text)]


@pytest.fixture
def index():
    made = WordIndex(TOOLS)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("How is the WEATHER today?", "weather"),
        ("which issue should I fix first", "github__issues"),
        ("schedule appointments with Ada", "calendar_create"),
        ("mail", "mail_send"),
        ("it is raining", "weather"),
    ],
)
def test_best_entry_shares_the_stem_of_a_word(index, text, best):
    assert ranked(index, text)[0] == best


def test_word_in_a_name_counts_more():
    assert WordIndex([("a", "Send mail."), ("mail", "Something else.")]).rank("mail") == [1, 0]


def test_entries_without_a_common_word_are_not_returned(index):
    assert ranked(index, "mail") == ["mail_send"]
    assert ranked(index, "zebra") == []


def test_words_that_say_nothing_do_not_count(index):
    assert ranked(index, "the of a to it by an") == []


def test_common_words_count_on_request():
    index = WordIndex([("a", "Run make."), ("b", "Run the tests.")])
    assert index.rank("make") == []
    assert index.rank("make", common=True) == [0]


def test_characters_of_scripts_without_spaces_are_words():
    index = WordIndex([("search", "在文件中查找文本"), ("mail", "发送邮件")])
    assert index.rank("请查找所有文件")[0] == 0


def test_index_can_be_used_in_another_thread(index):
    found = []
    thread = threading.Thread(target=lambda: found.extend(ranked(index, "mail")))
    thread.start()
    thread.join()
    assert found == ["mail_send"]


@settings(max_examples=50)
@given(
    st.text(max_size=200)
    | st.sampled_from(['" OR name:*', "NEAR(a b)", "a AND NOT b", "-mail", "mail*", "^mail", "\x00"])
)
def test_no_text_is_read_as_an_expression(text):
    index = WordIndex(TOOLS)
    assert set(ranked(index, text)) <= {name for name, _ in TOOLS}
    index.close()


def test_last_words_of_a_long_text_count(index):
    others = " ".join(f"word{number}" for number in range(100))
    assert ranked(index, f"mail {others} weather") == ["weather"]
