import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_skills._skill_names import NAME_PART, key_of


def test_documented_keys_are_read(load_one):
    skill = load_one(
        "---\nname: demo\ndescription: Does it.\nlicense: MIT\ncompatibility: sideband\n"
        "allowed-tools: Bash(git:*, ls) Read, Write\n"
        "metadata:\n  sideband.capabilities: http:host=api.test,method=GET secrets:name=x\n"
        "  sideband.timeout: 90\n  author: me\n---\n# Body\n\nText.\n"
    )
    assert skill.description == "Does it."
    assert skill.capabilities == ("http:host=api.test,method=GET", "secrets:name=x")
    assert skill.timeout == 90
    assert skill.allowed_tools == ("Bash(git:*, ls)", "Read", "Write")
    assert (skill.license, skill.compatibility) == ("MIT", "sideband")
    assert skill.metadata["author"] == "me"
    assert skill.instructions == "# Body\n\nText."
    assert skill.problems == ()


def test_connections_are_read_and_reported_as_unsupported(load_one, codes):
    skill = load_one("---\nname: demo\ndescription: x\nmetadata:\n  sideband.connections: one two\n---\n")
    assert skill.connections == ("one", "two")
    assert codes(skill.problems) == ["connections.unused"]
    (problem,) = skill.problems
    assert "'one two'" in problem.reason


def test_nested_metadata_is_equivalent_to_dotted_keys(load_one):
    skill = load_one(
        "---\nname: demo\ndescription: x\nmetadata: {sideband: {capabilities: [http, sql], timeout: 5}}\n---\n"
    )
    assert skill.capabilities == ("http", "sql")
    assert skill.timeout == 5


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        ("---\nname: other\ndescription: x\n---\n", "name.folder"),
        ("---\nname: demo\ndescription: x\nversion: 1.10\n---\n", "key.unknown"),
        ("---\nname: demo\ndescription: x\ncapabilities: [http]\n---\n", "key.place"),
        ("---\nname: demo\ndescription: ''\n---\nThe text.\n", "description.missing"),
        ("---\ndescription: x\n---\n", "name.missing"),
        ("---\nname: demo\ndescription: x\nmetadata: 3\n---\n", "metadata"),
        ("---\nname: demo\ndescription: x\nmetadata: {sideband.timeot: 3}\n---\n", "metadata.unknown"),
        ("---\nname: demo\ndescription: x\nmetadata: {isolation: call}\n---\n", "metadata.unknown"),
        ("---\nname: demo\ndescription: x\nmetadata: {sideband.timeout: soon}\n---\n", "timeout"),
        ("---\nname: demo\ndescription: x\nmetadata: {sideband.timeout: nan}\n---\n", "timeout"),
        ("---\nname: demo\ndescription: x\nmetadata: {sideband.capabilities: 'Http!'}\n---\n", "capability"),
        (f"---\nname: demo\ndescription: {'x' * 1025}\n---\n", "description.long"),
        ("# Just text\n", "frontmatter.missing"),
        ("", "frontmatter.missing"),
        ("---\nname: demo\ndescription: a: b\n---\n", "frontmatter.yaml"),
        (b"---\nname: demo\ndescription: caf\xe9\n---\n", "encoding"),
        ("---\nname: demo\ndescription: x\n---\n".encode("utf-16"), "encoding"),
        (b"---\nname: demo\ndescription: x\n---\n# Some text with \0 in it\n", "encoding"),
        ("---\nname: demo\ndescription: x\ndisable-model-invocation: maybe\n---\n", "metadata.hidden"),
    ],
)
def test_manifest_problem_is_a_warning_and_the_skill_loads(load_one, codes, manifest, code):
    skill = load_one(manifest)
    assert codes(skill.problems) == [code]
    assert skill.key in ("demo", "other")
    assert not skill.problems[0].fatal


def test_byte_order_mark_is_accepted(load_one):
    assert load_one("\ufeff---\nname: demo\ndescription: x\n---\n".encode()).problems == ()


def test_unknown_key_is_kept_with_a_suggestion(load_one):
    skill = load_one("---\nname: demo\ndescription: x\nlicence: MIT\n---\n")
    assert "`license`" in skill.problems[0].reason
    assert skill.metadata["licence"] == "MIT"


def test_name_and_description_default_to_folder_and_first_paragraph(load_one):
    skill = load_one("# Title\n\nFirst words\nof it.\n\nMore.\n")
    assert (skill.name, skill.description) == ("demo", "First words of it.")


def test_capabilities_are_accepted_at_the_top_level(load_one):
    assert load_one("---\nname: demo\ndescription: x\ncapabilities: [http, http, sql]\n---\n").capabilities == (
        "http",
        "sql",
    )


def test_long_description_is_cut(load_one):
    description = load_one(f"---\nname: demo\ndescription: {'word ' * 400}\n---\n").description
    assert len(description) <= 1024
    assert description.endswith("…")


def test_control_characters_are_removed(load_one):
    skill = load_one('---\nname: "demo\\e[31m"\ndescription: "x\\e]0;title\\a y"\n---\n')
    assert (skill.name + skill.description).isprintable()


@pytest.mark.parametrize(
    ("name", "key"),
    [("My Skill!", "my_skill"), ("Überblick", "uberblick"), ("3d-tools", "skill_3d_tools"), ("a__b", "a_b")],
)
def test_name_with_other_characters_gets_a_valid_name_part(load_one, codes, name, key):
    skill = load_one(f"---\nname: '{name}'\ndescription: x\n---\n", name=name)
    assert (skill.name, skill.key) == (name, key)
    assert codes(skill.problems) == ["name.characters"]


def test_name_part_is_cut_to_leave_room_for_tool_names(load_one, codes):
    skill = load_one(f"---\nname: {'a' * 80}\ndescription: x\n---\n", name="a" * 80)
    assert len(skill.key) == 61
    assert codes(skill.problems) == ["name.long"]


@given(st.text())
def test_every_name_has_a_valid_name_part(name):
    assert NAME_PART.match(key_of(name))


def test_binary_manifest_does_not_load(make_skill, load, codes):
    loaded = load(make_skill(manifest=b"\x00\x01\x02"))
    assert loaded.skills == ()
    assert codes(loaded.problems) == ["encoding", "manifest.unreadable"]
    assert loaded.problems[-1].fatal


AGENTOS = """---
id: hacker-news
name: Hacker News
description: Stories.
color: "#ff6600"
connections:
  public:
    base_url: https://news.test
capabilities: [http]
---
# Hacker News
"""


def test_agentos_manifest_is_read(make_skill, load, codes):
    folder = make_skill("hacker-news", {"readme.md": AGENTOS}, manifest=None)
    (skill,) = load(folder).skills
    assert (skill.name, skill.key, skill.capabilities) == ("hacker-news", "hacker_news", ("http",))
    assert skill.connections == ("public",)
    assert codes(skill.problems) == ["connections.unused"]


def test_ordinary_readme_is_not_a_manifest(skills, make_skill, load):
    make_skill("demo")
    (skills / "README.md").write_text("# A collection\n")
    assert [skill.key for skill in load(skills).skills] == ["demo"]


def test_skill_yaml_alone_is_a_skill(make_skill, load, codes):
    text = "id: demo\nname: A Demo\ndescription: Does it.\ninstructions: Do it.\n"
    (skill,) = load(make_skill(files={"skill.yaml": text}, manifest=None)).skills
    assert (skill.name, skill.description, skill.instructions) == ("demo", "Does it.", "Do it.")
    assert codes(skill.problems) == []


def test_skill_yaml_supplies_keys_missing_in_skill_md(load_one, codes):
    skill = load_one("# Text\n", {"skill.yaml": "description: From YAML.\n"})
    assert skill.description == "From YAML."


def test_skill_md_overrides_skill_yaml_with_a_warning(load_one, codes):
    skill = load_one(files={"skill.yaml": "description: From YAML.\n"})
    assert skill.description == "Does what the test needs."
    assert codes(skill.problems) == ["manifest.both"]


def test_lower_case_skill_md_is_read_with_a_warning(make_skill, load, codes):
    text = "---\nname: demo\ndescription: x\n---\n"
    (skill,) = load(make_skill(files={"skill.md": text}, manifest=None)).skills
    assert codes(skill.problems) == ["manifest.name"]


def test_unknown_keys_are_summarized_in_one_line(load_one):
    keys = "".join(f"key{number}: x\n" for number in range(12))
    skill = load_one(f"---\nname: demo\ndescription: x\nlicence: MIT\n{keys}---\n")
    (problem,) = skill.problems
    assert problem.reason.startswith("unknown keys 'licence' (did you mean `license`?), 'key0',")
    assert problem.reason.endswith("and 3 more; they are kept as metadata")
    assert skill.metadata["key11"] == "x"


def test_nul_byte_in_a_manifest_is_replaced(load_one):
    skill = load_one(b"---\nname: demo\ndescription: Does this \0 and that.\n---\nSome text\0.\n")
    assert (skill.description, skill.instructions) == ("Does this \ufffd and that.", "Some text\ufffd.")
    assert "2 NUL bytes" in skill.problems[0].reason


@pytest.mark.parametrize("place", ["{}\n", "metadata:\n  {}\n"])
@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        *((text, "true") for text in ("true", "True", "TRUE", "yes", "on", "1", "'true'", "' Yes '", "maybe")),
        *((text, "false") for text in ("false", "False", "no", "off", "0", "''", "")),
    ],
)
def test_each_spelling_of_disable_model_invocation_is_understood(load_one, place, value, hidden):
    line = place.format(f"disable-model-invocation: {value}")
    skill = load_one(f"---\nname: demo\ndescription: x\n{line}---\n")
    assert skill.metadata["disable-model-invocation"] == hidden
    assert len(skill.problems) == (value == "maybe")
