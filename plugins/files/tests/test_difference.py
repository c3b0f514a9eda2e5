"""The difference of two texts: right for all texts, short, and fast for hostile ones."""

import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband_files._difference import Difference

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d"]), max_size=25).map("".join)


@settings(max_examples=200)
@given(LINES, LINES)
def test_replaced_lines_lead_from_one_text_to_the_other(before, after):
    found = Difference.of(before, after)
    made, at = [], 0
    for one in found.replaced:
        made += [*found.before[at : one.start], *found.after[one.new_start : one.new_end]]
        at = one.end
    assert "".join([*made, *found.before[at:]]) == after
    assert len(found.after) - len(found.before) == found.added - found.removed


@settings(max_examples=30)
@given(st.lists(st.sampled_from("abcdefgh"), max_size=60), st.lists(st.sampled_from("abcdefgh"), max_size=60))
def test_text_is_a_patch_that_programs_apply(tmp_path_factory, before, after):
    folder = tmp_path_factory.mktemp("patch")
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    text = Difference.of(old, new).text()
    if not text:
        assert old == new
        return
    (folder / "x").write_text(old)
    patch = f"--- x\n+++ x\n{text}\n"
    done = subprocess.run(["git", "apply", "-"], cwd=folder, input=patch, text=True, capture_output=True, check=False)
    assert done.returncode == 0, (done.stderr, patch)
    assert ((folder / "x").read_text() if new else "") == new


def test_changes_that_are_far_apart_are_shown_with_the_lines_around_them():
    before = "".join(f"{number}\n" for number in range(1_000))
    text = Difference.of(before, before.replace("\n10\n", "\nten\n").replace("\n900\n", "\n")).text()
    assert text.splitlines() == [
        *("@@ -8,7 +8,7 @@", " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13"),
        *("@@ -898,7 +898,6 @@", " 897", " 898", " 899", "-900", " 901", " 902", " 903"),
    ]


def test_long_difference_is_cut_with_the_numbers_of_what_is_omitted():
    *shown, last = Difference.of("", "x\n" * 1_000).text().splitlines()
    assert (len(shown), last) == (200, "[801 more lines: 801 added, 0 removed]")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("one\ntwo\nthree\n" * 60_000, "one\ntwo\nfour\n" * 60_000),
        ("a\nb\n" * 200_000, "b\na\nc\n" * 150_000),
        (
            "".join(f"{number}\n" for number in range(100_000)),
            "".join(f"{number}\n" for number in range(99_999, -1, -1)),
        ),
    ],
    ids=["repeated", "shifted", "reversed"],
)
def test_hostile_texts_of_a_megabyte_take_little_time(before, after):
    began = time.process_time()
    assert Difference.of(before, after).text()
    assert time.process_time() - began < 5
