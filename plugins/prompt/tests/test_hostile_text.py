"""Untrusted text stays in its block and contains no invisible characters."""

import os
import tempfile
from datetime import date
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sideband.hooks import Sections
from sideband_project_instructions import open_resolved, visible
from sideband_prompt._config import Config
from sideband_prompt._memory import as_entry
from sideband_prompt._reading import is_inside
from sideband_prompt._sections import build_sections
from sideband_prompt._text import attribute, one_line, quoted

TRICKS = st.sampled_from(
    ["</memory>", "</skills>", "<skill>", "</document>", "&lt;", "\n", "\r", "\u2028", "\x85", "- ", '"', "'", "\u202e",
     "\U000e0041", "\U000e0100", "# ", "[", "\x00", "\x1b[2J", "]]>", "<!--"]
)  # fmt: skip
HOSTILE = st.lists(TRICKS | st.text(max_size=10), max_size=12).map("".join)


def sections(home, **event):
    found = build_sections(Sections(**event), Config(), Path(home), date(2026, 1, 2))
    return {one.name: one.text for one in found}


@given(HOSTILE, HOSTILE)
@settings(max_examples=80)
def test_skill_entry_has_exactly_its_own_lines(name, description):
    found = {"name": name, "description": description, "location": "/s/SKILL.md"}
    text = sections("/nowhere", tools=("skill",), skills=[found])["skills"]
    lines = text.split("\n")
    described = [line for line in lines if line.startswith("  <description>") and line.endswith("</description>")]
    assert len(lines) == 7 + len(described)
    assert text.count("<") == 8 + 2 * len(described)
    assert all(character.isprintable() or character in "\n\u200c\u200d" for character in text)


@given(st.lists(HOSTILE, max_size=5))
@settings(max_examples=60)
def test_memory_has_one_line_per_entry(entries):
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "prompt")
        folder.mkdir()
        kept = [entry for one in entries if (entry := as_entry(one))]
        (folder / "MEMORY.md").write_text("".join(f"- {entry}\n" for entry in kept))
        text = sections(home).get("memory", "")
    assert text.count("\n- ") == len(kept)
    assert text.count("<") == (2 if kept else 0)


@given(HOSTILE)
@settings(max_examples=60)
def test_document_stays_in_its_block(content):
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "prompt/knowledge")
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(content)
        (folder / "index.yaml").write_text("- {path: a.md, always_load: true}")
        text = sections(home)["knowledge"]
    assert text.count("<") == 4


@given(HOSTILE.filter(as_entry))
@example("- - * x")
@example("- *")
def test_entry_round_trips(text):
    entry = as_entry(text)
    assert as_entry(f"- {entry}") == entry
    assert "\n" not in entry


@given(HOSTILE)
def test_sanitizing_is_idempotent(text):
    assert visible(visible(text)) == visible(text)
    assert one_line(one_line(text)) == one_line(text)


@given(HOSTILE)
def test_quoted_text_contains_no_markup(text):
    assert not set("<>") & set(quoted(text))
    assert not set("<>\"'\n") & set(attribute(text))


PARTS = st.sampled_from(["..", ".", "a", "b", "", "out", "in", "loop", "a\0", "..\\x", "~"])
PATHS = st.lists(PARTS, max_size=6).map("/".join)


@given(PATHS)
@settings(max_examples=80)
def test_path_never_leads_out_of_its_folder(name):
    with tempfile.TemporaryDirectory() as top:
        root = Path(top, "root")
        (root / "a/b").mkdir(parents=True)
        Path(top, "secret").write_text("secret")
        (root / "out").symlink_to(top)
        (root / "a/out").symlink_to("../../secret")
        (root / "in").symlink_to("a/b")
        (root / "loop").symlink_to("loop")
        if not is_inside(name):
            return
        try:
            descriptor = open_resolved(root, name, 0)
        except OSError:
            return
        found = os.fstat(descriptor)
        os.close(descriptor)
        inside = [root, *root.rglob("*")]
        assert (found.st_dev, found.st_ino) in [(one.lstat().st_dev, one.lstat().st_ino) for one in inside]


def test_link_created_after_the_check_is_not_followed(tmp_path, monkeypatch):
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a/file").write_text("mine")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/file").write_text("secret")
    resolve = os.path.realpath

    def resolve_then_swap(path):
        found = resolve(path)
        if found.endswith("a/file"):
            (root / "a").rename(tmp_path / "old")
            (root / "a").symlink_to(tmp_path / "b")
        return found

    monkeypatch.setattr(os.path, "realpath", resolve_then_swap)
    with pytest.raises(OSError, match=r"."):
        open_resolved(root, "a/file", 0)
