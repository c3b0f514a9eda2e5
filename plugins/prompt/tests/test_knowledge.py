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


async def test_without_an_index_the_files_and_folders_are_found(shelf, write, consult):
    write(shelf / "b.md", "# Bees")
    write(shelf / "a/index.md", "no heading")
    write(shelf / "a/other.md", "not listed")
    write(shelf / "c/notes.md", "no index.md")
    write(shelf / "d.txt", "no document")
    write(shelf / ".hidden.md", "hidden")
    answer = await consult(action="list")
    assert [(one["path"], one["title"]) for one in answer["documents"]] == [("a/index.md", "a"), ("b.md", "Bees")]
    assert answer["notices"] == []


async def test_an_index_says_exactly_what_there_is_and_in_which_order(shelf, write, consult):
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


def test_what_is_always_loaded_is_whole_and_the_rest_by_title(shelf, write, section):
    write(shelf / "rules.md", "# Rules\n\nTwo watches.")
    write(shelf / "ropes.md", "# Ropes\n\nKnots.")
    write(shelf / "index.yaml", "- {path: rules.md, always_load: true}\n- {path: ropes.md, tags: [knots]}\n")
    text = section("knowledge", tools=TOOL)
    assert '<document path="rules.md">\n# Rules\n\nTwo watches.\n</document>' in text
    assert "- ropes.md: Ropes [knots]" in text
    assert "Knots." not in text


def test_titles_are_only_listed_if_the_tool_is_there(shelf, write, section):
    write(shelf / "ropes.md", "# Ropes")
    assert section("knowledge", tools=("other",)) is None
    assert "Ropes" in section("knowledge", tools=TOOL)


def test_a_document_that_is_too_long_to_be_always_there_is_listed_with_a_notice(shelf, write, section):
    write(shelf / "long.md", "# Long\n" + "x" * 100)
    write(shelf / "short.md", "# Short")
    write(shelf / "index.yaml", "- {path: long.md, always_load: yes}\n- {path: short.md, always_load: yes}\n")
    text = section("knowledge", {"knowledge_limit": 50}, tools=TOOL)
    assert "# Short" in text
    assert "xxx" not in text
    assert "- long.md: Long" in text
    assert "[long.md would always be here, and is too long for it]" in text


def test_titles_beyond_the_most_are_counted(shelf, write, section):
    for number in range(205):
        write(shelf / f"{number:03}.md", "# T")
    text = section("knowledge", tools=TOOL)
    assert "- 199.md: T" in text
    assert "- 200.md" not in text
    assert "[5 more documents are not listed here; `prompt__knowledge` lists them]" in text


async def test_the_first_place_wins_document_by_document(home, project, shelf, write, consult):
    write(shelf / "a.md", "# global a")
    write(shelf / "b.md", "# global b")
    write(home / "profiles/work/knowledge/a.md", "# profile a")
    write(project / ".sideband/knowledge/b.md", "# project b")
    answer = await consult({"profile": "work"}, project, action="list")
    assert [(one["title"], one["place"]) for one in answer["documents"]] == [
        ("profile a", "profile"),
        ("project b", "project"),
    ]


async def test_the_tool_reads_of_a_project_only_what_the_session_was_given(make_host, use, project, write):
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


async def test_a_child_without_a_prompt_of_its_own_reads_what_its_parent_does(make_host, use, project, write):
    write(project / ".sideband/knowledge/plan.md", "# The plan")
    async with make_host() as host:
        await host.hooks.collect(Sections(session="parent", project=project))
        answer = await use(host, "prompt.knowledge", "child", action="read", path="plan.md")
    assert answer["text"] == "# The plan"


async def test_a_document_is_read(shelf, write, consult):
    write(shelf / "a.md", "# A\n\n<b> & text")
    assert await consult(action="read", path="a.md") == {
        "path": "a.md",
        "title": "A",
        "text": "# A\n\n<b> & text",
        "characters": 15,
    }


async def test_a_long_document_is_read_a_page_at_a_time(shelf, write, make_host, use):
    whole = "".join(f"{number:09}\n" for number in range(5_000)).strip()
    write(shelf / "a.md", whole)
    text, offset = "", 0
    async with make_host() as host:
        while offset is not None:
            page = await use(host, "prompt.knowledge", action="read", path="a.md", offset=offset)
            assert len(page["text"]) <= 20_000
            text, offset = text + page["text"], page.get("next_offset")
    assert text == whole


async def test_a_document_beyond_the_limit_is_cut_with_a_notice(shelf, write, consult):
    write(shelf / "a.md", "x" * ((4 << 20) + 1))
    page = await consult(action="read", path="a.md", offset=4 << 20)
    assert (page["text"], page["characters"]) == ("", 4 << 20)
    assert "is cut here" in page["notice"]


async def test_a_document_that_is_not_there_names_the_closest(shelf, write, consult):
    write(shelf / "ropes.md", "# Ropes")
    with pytest.raises(LookupError, match=r"did you mean `ropes\.md`") as caught:
        await consult(action="read", path="rope.md")
    assert caught.value.code == "knowledge.missing"


@pytest.mark.parametrize(
    "path",
    ["../SYSTEM.md", "/etc/passwd", "a/../../SYSTEM.md", "./../SYSTEM.md", "index.yaml", "sub/deep.md", ".", "\0", "~"],
)
async def test_nothing_but_documents_can_be_read(path, home, shelf, write, consult):
    write(home / "prompt/SYSTEM.md", "not for you")
    write(shelf / "a.md", "# A")
    write(shelf / "sub/deep.md", "# deep")
    with pytest.raises(LookupError):
        await consult(action="read", path=path)


@pytest.mark.parametrize("path", ["../SYSTEM.md", "/etc/passwd", "a/../../SYSTEM.md", "", ".", "a\0b", "x\ny.md"])
async def test_an_index_cannot_lead_out_of_the_folder(path, home, shelf, write, consult):
    import json

    write(home / "prompt/SYSTEM.md", "not for you")
    write(shelf / "index.yaml", json.dumps([{"path": path, "always_load": True}]))
    answer = await consult(action="list")
    assert answer["documents"] == []
    assert "leads out of the folder" in str(answer["notices"]) or "not YAML" in str(answer["notices"])


async def test_links_that_lead_out_are_left_out_with_a_notice(tmp_path, shelf, write, consult):
    secret = write(tmp_path / "secrets/index.md", "# launch codes")
    write(shelf / "fine.md", "# Fine")
    (shelf / "file.md").symlink_to(secret)
    (shelf / "folder").symlink_to(secret.parent)
    answer = await consult(action="list")
    assert [one["path"] for one in answer["documents"]] == ["fine.md"]
    assert "launch" not in str(answer)
    assert "knowledge/file.md was not read: it leads out of its folder" in answer["notices"]


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ("- path: [", "it is not YAML"),
        ("path: a.md", "it is no list"),
        ("- a.md", "entry 1 of index.yaml of the global folder is left out"),
        ("- {path: a.md, priority: urgent}", "priority"),
        ("- {path: a.md, wings: 2}", "wings"),
        ("- !!python/object/apply:os.system [echo]", "is left out"),
        ("[" * 60_000, "it is nested deeper than 8"),
        ("{" * 60_000, "it is nested deeper than 8"),
        ("- &a [*a]", "it is not YAML"),
        ("- {path: a.md, path: [*x]}", "it is not YAML"),
        ("- {path: missing.md}", "missing.md is named in index.yaml, and is not there"),
    ],
)
async def test_a_bad_index_is_told_and_not_fatal(index, says, shelf, write, consult):
    write(shelf / "a.md", "# A")
    write(shelf / "index.yaml", index)
    answer = await consult(action="list")
    assert answer["documents"] == []
    assert says in str(answer["notices"])


def test_problems_are_shown_in_the_prompt_but_not_all_of_them(shelf, write, section):
    write(shelf / "index.yaml", "".join(f"- {{path: missing{number}.md}}\n" for number in range(30)))
    text = section("knowledge", tools=TOOL)
    assert "[missing0.md is named" in text
    assert "[and 20 more problems like these]" in text


async def test_more_documents_than_the_most_are_told(shelf, write, consult):
    write(shelf / "a.md", "# A")
    write(shelf / "index.yaml", "".join(f"- {{path: a.md, tags: [t{number}]}}\n" for number in range(501)))
    assert (await consult(action="list"))["notices"] == ["1 documents of the global folder are left out: more than 500"]


async def test_a_title_counts_more_than_a_text_and_all_words_more_than_one(shelf, write, consult):
    write(shelf / "a.md", "# Other\n\nrope rope rope rope rope")
    write(shelf / "b.md", "# Rope\n\nnothing")
    write(shelf / "c.md", "# Other\n\na rope, and a knot")
    write(shelf / "d.md", "# Nothing")
    answer = await consult(action="query", query="ROPE knot")
    assert [one["path"] for one in answer["results"]] == ["c.md", "b.md", "a.md"]
    assert answer["results"][0]["excerpt"] == "a rope, and a knot"


async def test_tags_are_searched(shelf, write, consult):
    write(shelf / "a.md", "# A")
    write(shelf / "index.yaml", "- {path: a.md, tags: [Windlass]}")
    assert [one["path"] for one in (await consult(action="query", query="windlass"))["results"]] == ["a.md"]


async def test_what_is_found_beyond_the_most_is_counted(shelf, write, consult):
    for number in range(13):
        write(shelf / f"{number}.md", "rope")
    answer = await consult(action="query", query="rope")
    assert len(answer["results"]) == 10
    assert answer["notices"] == ["3 more documents have some of the words; add words to narrow it down"]


async def test_documents_that_are_not_looked_into_for_their_length_are_told(shelf, write, consult):
    for number in range(5):
        write(shelf / f"{number}.md", "x" * (4 << 20))
    answer = await consult(action="query", query="rope")
    assert answer["notices"] == ["1 documents were looked at by title only, since all together are too long"]


def test_the_projects_of_the_oldest_sessions_are_forgotten(project):
    projects = Projects()
    for number in range(10_001):
        projects.remember(str(number), project if number else None)
    assert projects.of("0") == project  # as for any session that is not known, since all others work there


@pytest.mark.parametrize("query", ["((((", "[a-z]+", "*", "\\"])
async def test_signs_are_no_words(query, shelf, write, consult):
    write(shelf / "a.md", "# ((((")
    assert isinstance((await consult(action="query", query=query))["results"], list)


async def test_it_is_a_tool_that_changes_nothing(make_host):
    async with make_host() as host:
        tool = (await host.tools.view()).get("prompt__knowledge")
    assert (tool.level, tool.read_only) == (Level.SAFE, True)
