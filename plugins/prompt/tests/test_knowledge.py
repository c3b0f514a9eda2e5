import pytest
from sideband.hooks import Sections
from sideband.ops import Level
from sideband_prompt._state import Projects

pytestmark = pytest.mark.anyio

TOOL = ("prompt__knowledge",)


@pytest.fixture
def shelf(home):
    return home / "prompt/knowledge"


@pytest.fixture
def consult(make_host, use):
    async def consult(config=None, project=None, **arguments):
        async with make_host(**(config or {})) as host:
            await host.hooks.collect(Sections(session="s1", project=project))
            return await use(host, "prompt.knowledge", **arguments)

    return consult


async def paths(consult, **options):
    return [one["path"] for one in (await consult(action="list", **options))["documents"]]


async def test_files_and_folders_are_found_without_an_index(shelf, write, consult):
    write(shelf / "b.md", "# Bees")
    write(shelf / "a/index.md", "no heading")
    write(shelf / "a/other.md", "not listed")
    write(shelf / "c/notes.md", "no index.md")
    write(shelf / "d.txt", "no document")
    write(shelf / ".hidden.md", "hidden")
    answer = await consult(action="list")
    assert [(one["path"], one["title"]) for one in answer["documents"]] == [("a/index.md", "a"), ("b.md", "Bees")]
    assert answer["notices"] == []


async def test_index_defines_the_documents_and_their_order(shelf, write, consult):
    for name in "abcd":
        write(shelf / f"{name}.md", f"# {name}")
    write(
        shelf / "index.yaml",
        "- {path: a.md, priority: low}\n- {path: b.md}\n- {path: c.md, priority: high, tags: [sea, salt]}\n",
    )
    answer = await consult(action="list")
    assert [one["path"] for one in answer["documents"]] == ["c.md", "b.md", "a.md"]
    assert answer["documents"][0] == {
        "path": "c.md",
        "title": "c",
        "place": "global",
        "priority": "high",
        "tags": ["sea", "salt"],
        "always_loaded": False,
    }


def test_always_loaded_documents_are_complete_and_others_by_title(shelf, write, section):
    write(shelf / "rules.md", "# Rules\n\nTwo watches.")
    write(shelf / "ropes.md", "# Ropes\n\nKnots.")
    write(shelf / "index.yaml", "- {path: rules.md, always_load: true}\n- {path: ropes.md, tags: [knots]}\n")
    text = section("knowledge", tools=TOOL)
    assert '<document path="rules.md">\n# Rules\n\nTwo watches.\n</document>' in text
    assert "- ropes.md: Ropes [knots]" in text
    assert "Knots." not in text


def test_titles_are_listed_only_if_the_tool_is_available(shelf, write, section):
    write(shelf / "ropes.md", "# Ropes")
    assert section("knowledge", tools=("other",)) is None
    assert "Ropes" in section("knowledge", tools=TOOL)


def test_overlong_always_loaded_document_is_listed_with_a_notice(shelf, write, section):
    write(shelf / "long.md", "# Long\n" + "x" * 100)
    write(shelf / "short.md", "# Short")
    write(shelf / "index.yaml", "- {path: long.md, always_load: yes}\n- {path: short.md, always_load: yes}\n")
    text = section("knowledge", {"knowledge_limit": 50}, tools=TOOL)
    assert "# Short" in text
    assert "xxx" not in text
    assert "- long.md: Long" in text
    assert "[long.md is marked `always_load` but is too long]" in text


def test_titles_over_the_limit_are_counted(shelf, write, section):
    for number in range(205):
        write(shelf / f"{number:03}.md", "# T")
    text = section("knowledge", tools=TOOL)
    assert "- 199.md: T" in text
    assert "- 200.md" not in text
    assert "[5 more documents are not listed here; `prompt__knowledge` lists them]" in text


async def test_most_specific_level_provides_each_document(home, project, shelf, write, consult):
    write(shelf / "a.md", "# global a")
    write(shelf / "b.md", "# global b")
    write(home / "profiles/work/knowledge/a.md", "# profile a")
    write(project / ".sideband/knowledge/b.md", "# project b")
    answer = await consult({"profile": "work"}, project, action="list")
    assert [(one["title"], one["place"]) for one in answer["documents"]] == [
        ("profile a", "profile"),
        ("project b", "project"),
    ]


async def test_tool_reads_the_project_of_its_own_session_only(make_host, use, project, write):
    write(project / ".sideband/knowledge/plan.md", "# The plan")
    async with make_host() as host:
        await host.hooks.collect(Sections(session="trusted", project=project))
        await host.hooks.collect(Sections(session="other", project=None))

        async def titles(session):
            answer = await use(host, "prompt.knowledge", session, action="list")
            return [one["title"] for one in answer["documents"]]

        assert await titles("trusted") == ["The plan"]
        assert await titles("other") == []
        assert await titles("unknown") == []


async def test_child_session_reads_its_parents_project(make_host, use, project, write):
    write(project / ".sideband/knowledge/plan.md", "# The plan")
    async with make_host() as host:
        await host.hooks.collect(Sections(session="parent", project=project))
        answer = await use(host, "prompt.knowledge", "child", action="read", path="plan.md")
    assert answer["text"] == "# The plan"


async def test_document_is_read(shelf, write, consult):
    write(shelf / "a.md", "# A\n\n<b> & text")
    assert await consult(action="read", path="a.md") == {
        "path": "a.md",
        "title": "A",
        "text": "# A\n\n<b> & text",
        "characters": 15,
    }


async def test_long_document_is_read_page_by_page(shelf, write, make_host, use):
    whole = "".join(f"{number:09}\n" for number in range(5_000)).strip()
    write(shelf / "a.md", whole)
    text, offset = "", 0
    async with make_host() as host:
        while offset is not None:
            page = await use(host, "prompt.knowledge", action="read", path="a.md", offset=offset)
            assert len(page["text"]) <= 20_000
            text, offset = text + page["text"], page.get("next_offset")
    assert text == whole


async def test_document_over_the_limit_is_truncated_with_a_notice(shelf, write, consult):
    write(shelf / "a.md", "x" * ((4 << 20) + 1))
    page = await consult(action="read", path="a.md", offset=4 << 20)
    assert (page["text"], page["characters"]) == ("", 4 << 20)
    assert "is truncated here" in page["notice"]


async def test_unknown_document_suggests_the_closest(shelf, write, consult):
    write(shelf / "ropes.md", "# Ropes")
    with pytest.raises(LookupError, match=r"did you mean `ropes\.md`") as caught:
        await consult(action="read", path="rope.md")
    assert caught.value.code == "knowledge.missing"


@pytest.mark.parametrize(
    "path",
    ["../SYSTEM.md", "/etc/passwd", "a/../../SYSTEM.md", "./../SYSTEM.md", "index.yaml", "sub/deep.md", ".", "\0", "~"],
)
async def test_path_that_is_not_a_document_is_rejected(path, home, shelf, write, consult):
    write(home / "prompt/SYSTEM.md", "not for you")
    write(shelf / "a.md", "# A")
    write(shelf / "sub/deep.md", "# deep")
    with pytest.raises(LookupError):
        await consult(action="read", path=path)


@pytest.mark.parametrize("path", ["../SYSTEM.md", "/etc/passwd", "a/../../SYSTEM.md", "", ".", "a\0b", "x\ny.md"])
async def test_index_entry_does_not_lead_out_of_the_folder(path, home, shelf, write, consult):
    import json

    write(home / "prompt/SYSTEM.md", "not for you")
    write(shelf / "index.yaml", json.dumps([{"path": path, "always_load": True}]))
    answer = await consult(action="list")
    assert answer["documents"] == []
    assert "leads out of the folder" in str(answer["notices"]) or "invalid YAML" in str(answer["notices"])


async def test_links_out_of_the_folder_are_skipped_with_a_notice(tmp_path, shelf, write, consult):
    secret = write(tmp_path / "secrets/index.md", "# launch codes")
    write(shelf / "fine.md", "# Fine")
    (shelf / "file.md").symlink_to(secret)
    (shelf / "folder").symlink_to(secret.parent)
    answer = await consult(action="list")
    assert [one["path"] for one in answer["documents"]] == ["fine.md"]
    assert "launch" not in str(answer)
    assert "knowledge/file.md was not read: it leads out of its folder" in answer["notices"]


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        ("- path: [", "invalid YAML"),
        ("path: a.md", "expected a list"),
        ("- a.md", "entry 1 of index.yaml of the global folder was skipped"),
        ("- {path: a.md, priority: urgent}", "priority"),
        ("- {path: a.md, wings: 2}", "wings"),
        ("- !!python/object/apply:os.system [echo]", "was skipped"),
        ("[" * 60_000, "nested deeper than 8"),
        ("{" * 60_000, "nested deeper than 8"),
        ("- &a [*a]", "invalid YAML"),
        ("- {path: a.md, path: [*x]}", "invalid YAML"),
        ("- {path: missing.md}", "missing.md is listed in index.yaml but does not exist"),
    ],
)
async def test_invalid_index_is_reported_without_an_error(index, problem, shelf, write, consult):
    write(shelf / "a.md", "# A")
    write(shelf / "index.yaml", index)
    answer = await consult(action="list")
    assert answer["documents"] == []
    assert problem in str(answer["notices"])


def test_first_problems_are_shown_in_the_prompt(shelf, write, section):
    write(shelf / "index.yaml", "".join(f"- {{path: missing{number}.md}}\n" for number in range(30)))
    text = section("knowledge", tools=TOOL)
    assert "[missing0.md is listed" in text
    assert "[and 20 more problems]" in text


async def test_documents_over_the_limit_are_reported(shelf, write, consult):
    write(shelf / "a.md", "# A")
    write(shelf / "index.yaml", "".join(f"- {{path: a.md, tags: [t{number}]}}\n" for number in range(501)))
    assert (await consult(action="list"))["notices"] == ["1 documents of the global folder skipped: the limit is 500"]


async def test_more_words_and_titles_rank_higher(shelf, write, consult):
    write(shelf / "a.md", "# Other\n\nrope rope rope rope rope")
    write(shelf / "b.md", "# Rope\n\nnothing")
    write(shelf / "c.md", "# Other\n\na rope, and a knot")
    write(shelf / "d.md", "# Nothing")
    answer = await consult(action="query", query="ROPE knot")
    assert [one["path"] for one in answer["results"]] == ["c.md", "b.md", "a.md"]
    assert answer["results"][0]["excerpt"] == "a rope, and a knot"


async def test_search_includes_tags(shelf, write, consult):
    write(shelf / "a.md", "# A")
    write(shelf / "index.yaml", "- {path: a.md, tags: [Windlass]}")
    assert [one["path"] for one in (await consult(action="query", query="windlass"))["results"]] == ["a.md"]


async def test_matches_over_the_limit_are_counted(shelf, write, consult):
    for number in range(13):
        write(shelf / f"{number}.md", "rope")
    answer = await consult(action="query", query="rope")
    assert len(answer["results"]) == 10
    assert answer["notices"] == ["3 more documents match; add words to narrow the search"]


async def test_documents_searched_by_title_only_are_counted(shelf, write, consult):
    for number in range(5):
        write(shelf / f"{number}.md", "x" * (4 << 20))
    answer = await consult(action="query", query="rope")
    assert answer["notices"] == ["1 documents were searched by title only because the total size is limited"]


def test_projects_of_the_oldest_sessions_are_evicted(project):
    projects = Projects()
    for number in range(10_001):
        projects.remember(str(number), project if number else None)
    assert projects.of("0") == project  # as for any unknown session, since all others have this project


@pytest.mark.parametrize("query", ["((((", "[a-z]+", "*", "\\"])
async def test_query_of_special_characters_is_accepted(query, shelf, write, consult):
    write(shelf / "a.md", "# ((((")
    assert isinstance((await consult(action="query", query=query))["results"], list)


async def test_knowledge_tool_is_safe_and_read_only(make_host):
    async with make_host() as host:
        tool = (await host.tools.view()).get("prompt__knowledge")
    assert (tool.level, tool.read_only) == (Level.SAFE, True)
