"""Valid, invalid and hostile frontmatter."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_skills._frontmatter import read_document, read_mapping
from sideband_skills._problems import Problems
from sideband_skills._yaml import NotYaml, read_yaml


@pytest.fixture
def read():
    def run(text):
        problems = Problems("here")
        return read_document(text, problems, file="SKILL.md"), [problem.code for problem in problems.found]

    return run


def test_valid_frontmatter_is_read_without_problems(read):
    document, codes = read("---\nname: demo\ndescription: Does it.\n---\n\n# Body\n")
    assert document.values == {"name": "demo", "description": "Does it."}
    assert document.body == "# Body"
    assert codes == []


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2025-01-31", "2025-01-31"),
        ("2025-99-99", "2025-99-99"),
        ("1.10", "1.10"),
        ("true", "true"),
        ("no", "no"),
        ("0x10", "0x10"),
        ("12:30", "12:30"),
        ("~", ""),
        ("null", ""),
        ('"null"', "null"),
        ("", ""),
        ("[a, 1, true]", ["a", "1", "true"]),
        ("\n  - a\n  - b", ["a", "b"]),
        ("{a: 1, b: [c]}", {"a": "1", "b": ["c"]}),
        ("|\n  one\n  two\n", "one\ntwo\n"),
        (">-\n  one\n  two\n", "one two"),
    ],
)
def test_scalars_stay_as_written(read, written, value):
    document, codes = read(f"---\nkey: {written}\n---\n")
    assert document.values == {"key": value}
    assert codes == []


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("Use when: the user asks", "Use when: the user asks"),
        ('"quoted" and not', '"quoted" and not'),
        ("[file] [--flag]", "[file] [--flag]"),
        ("@scope/name", "@scope/name"),
        ("100% `sure`: yes", "100% `sure`: yes"),
        ("*.py files", "*.py files"),
        ("&anchor\n  *anchor", "&anchor *anchor"),
        ("!!python/object/apply:os.system [id]", "!!python/object/apply:os.system [id]"),
        ("first: line\n  and the next", "first: line and the next"),
        ("\n  - a: b: c\n  - d", ["a: b: c", "d"]),
        ("|\n  bad: x: y\n\tz", "bad: x: y\nz"),
        ("\n  inner: a: b\n  other: c", {"inner": "a: b", "other": "c"}),
    ],
)
def test_invalid_yaml_is_read_line_by_line(read, written, value):
    document, codes = read(f"---\nbroken: @a: b\nkey: {written}\nafter: x\n---\n")
    assert document.values == {"broken": "@a: b", "key": value, "after": "x"}
    assert codes == ["skill.frontmatter.yaml"]


def test_list_in_brackets_is_read_from_invalid_yaml(read):
    document, _ = read("---\nbroken: @a: b\ntags: [a, 'b', ]\n---\n")
    assert document.values["tags"] == ["a", "b"]


def test_invalid_line_is_reported(read):
    document, codes = read("---\nbroken: @a: b\n???\nkey: value\n---\n")
    assert document.values == {"broken": "@a: b", "key": "value"}
    assert codes == ["skill.frontmatter.yaml", "skill.frontmatter.line"]


@pytest.mark.parametrize("text", ["name: a\nname: b", "bad: @a: b\nname: a\nname: b"])
def test_duplicate_key_is_reported(read, text):
    document, codes = read(f"---\n{text}\n---\n")
    assert document.values["name"] == "b"
    assert codes[-1] == "skill.frontmatter.repeated"


def test_windows_line_endings_are_supported(read):
    assert read("---\r\nname: demo\r\n---\r\nBody\r\n")[0].values == {"name": "demo"}


def test_blank_lines_before_the_frontmatter_are_skipped(read):
    assert read("\n\n---\nname: demo\n---\n")[0].values == {"name": "demo"}


def test_unclosed_frontmatter_is_read_up_to_the_body(read):
    document, codes = read("---\nname: demo\ndescription: x\n\n# Body\n")
    assert document.values == {"name": "demo", "description": "x"}
    assert document.body == "# Body"
    assert codes == ["skill.frontmatter.open"]


@pytest.mark.parametrize("text", ["", "# Only text\n", "---\n\nA line, then text.\n"])
def test_file_without_frontmatter_has_no_values(read, text):
    document, codes = read(text)
    assert document.values is None
    assert codes == []


def test_empty_frontmatter_has_no_keys(read):
    assert read("---\n---\nBody")[0].values == {}


def billion_laughs(levels=9):
    lines = ["a0: &a0 [lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        billion_laughs(),
        "a: " + "[" * 2_000 + "]" * 2_000,
        "a: [" + "x," * 20_000 + "]",
        "? [a]\n: b",
        "- a\n- b",
        "a: b\n--- \nc: d",
        "a: !!python/name:os.system",
    ],
)
def test_dangerous_yaml_is_refused_quickly(text):
    started = time.monotonic()
    with pytest.raises(NotYaml):
        read_yaml(text)
    assert time.monotonic() - started < 2


def test_oversized_frontmatter_is_cut_with_a_warning():
    problems = Problems("here")
    values = read_mapping("name: demo\n" + "x: y\n" * 20_000, problems, file="SKILL.md")
    assert values["name"] == "demo"
    assert "skill.frontmatter.large" in [problem.code for problem in problems.found]


LINES = st.sampled_from(
    ["---", "name: x", "a: [", "- b", "  c: d", "|", "\t", "&x *x", "'", '"', "#", "…", "?", "key:"]
)


@given(st.text() | st.lists(LINES, max_size=12).map("\n".join))
def test_reading_never_raises(text):
    for candidate in (text, f"---\n{text}\n---\nbody"):
        document = read_document(candidate, Problems("here"), file="SKILL.md")
        assert document.values is None or all(isinstance(key, str) for key in document.values)


@given(
    st.dictionaries(st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True), st.from_regex(r"\w[\w ]*\w", fullmatch=True))
)
def test_keys_and_values_round_trip(values):
    text = "\n".join(f"{key}: '{value}'" for key, value in values.items())
    assert read_document(f"---\n{text}\n---\n", Problems("here"), file="SKILL.md").values == values
