"""Loaders have a context, and may return the files of skills from memory, which other loaders read."""

import threading
from types import SimpleNamespace

import anyio
import pytest
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.calls import _catalog, _skill_copies
from sideband.loading import LoadedSkills, SkillBundle, SkillSpec
from sideband.ops import OpContext, OpFamily, op
from sideband.workers import snapshot

pytestmark = pytest.mark.anyio

MANIFEST = b"---\nname: hello\ndescription: Says hello.\n---\nBe kind.\n"
CODE = b"from sideband.skill import tool\n@tool\nasync def greet(name: str) -> str:\n    'Greet.'\n    return name\n"
HELLO = {"SKILL.md": MANIFEST, "tools.py": CODE}
READER = Plugin("loader", "skills", sideband_skills.plugin)


@pytest.fixture
def anyio_backend():
    return "asyncio"


def loader(load, name="net", **more):
    one = SimpleNamespace(name=name, load=load)
    return Plugin("loader", name, SimpleNamespace(sideband_loaders=lambda: [one], **more))


def returning(*files):
    async def load(sources):
        return LoadedSkills(files=files)

    return loader(load)


async def found(host):
    loaded = await host.catalog.all()
    return [skill.key for skill in loaded.skills], [problem.reason for problem in loaded.problems]


async def test_files_from_memory_are_a_skill_whose_snapshot_is_the_copy(hosting, tmp_path):
    async with hosting(returning(SkillBundle("hello", HELLO)), READER) as host:
        (skill,) = (await host.catalog.all()).skills
        assert (skill.name, skill.origin, skill.problems) == ("hello", "loader net", ())
        assert [tool.full_name for tool in skill.tools] == ["hello.greet"]
        assert skill.source.parent == tmp_path / "home" / "skills"
        assert snapshot(skill, tmp_path / "home").path == skill.source


async def test_equal_content_has_one_digest_whether_it_is_from_a_folder_or_from_memory(hosting, tmp_path):
    folder = tmp_path / "hello"
    folder.mkdir()
    for name, content in HELLO.items():
        (folder / name).write_bytes(content)
    async with hosting(returning(SkillBundle("hello", HELLO)), READER) as host:
        (copied,) = (await host.catalog.all()).skills
    plugins = [Plugin("store", "sqlite", sideband_store_sqlite.plugin), READER]
    async with Host(home=tmp_path / "home", plugins=plugins, skill_dirs=[folder], autoload=False) as host:
        (read,) = (await host.catalog.all()).skills
    assert snapshot(read, tmp_path / "home").digest == copied.source.name


async def test_code_from_memory_does_not_run_in_the_host(hosting, tmp_path):
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\n".encode() + CODE
    async with hosting(returning(SkillBundle("hello", {**HELLO, "tools.py": code})), READER) as host:
        assert (await found(host))[0] == ["hello"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"/etc/passwd": b""}, "must be relative and normalized"),
        ({"../x": b""}, "must be relative and normalized"),
        ({"a/../x": b""}, "must be relative and normalized"),
        ({"a//x": b""}, "must be relative and normalized"),
        ({"": b""}, "must be relative and normalized"),
        ({"a\0b": b""}, "has a character that is not allowed"),
        ({"a\\b": b""}, "has a character that is not allowed"),
        ({"a\ud800": b""}, "has a character that is not allowed"),
        ({"x" * 256: b""}, "is longer than 512 bytes"),
        ({"/".join(["xyz"] * 200): b""}, "is longer than 512 bytes"),
        ({"README": b"", "readme": b""}, "`readme` collides with `README`"),
        ({"A/x": b"", "a/y": b""}, "`a/y` collides with `A`"),
        ({"a": b"", "a/b": b""}, "`a/b` collides with `a`"),
        ({"\u00e9": b"", "e\u0301": b""}, "collides with"),
        ({"a": "text"}, "must map paths to bytes, got `a`: str"),
        ({1: b""}, "must map paths to bytes, got `1`: bytes"),
        ([("a", b"")], "must map paths to bytes, got a list"),
        ({}, "it has no files"),
        ({f"f{number}": b"" for number in range(2_001)}, "it has 2,001 files; the limit is 2,000"),
    ],
)
async def test_files_that_cannot_be_stored_as_they_are_are_refused_and_other_skills_are_used(
    hosting, tmp_path, files, reason
):
    async with hosting(returning(SkillBundle("bad", files), SkillBundle("hello", HELLO)), READER) as host:
        keys, (problem,) = await found(host)
    assert keys == ["hello"]
    assert problem.startswith("the skill `bad`: ")
    assert reason in problem
    assert len(list((tmp_path / "home" / "skills").iterdir())) == 1


@given(st.lists(st.text(alphabet="aA./\\\0é\u0301", max_size=6), max_size=4))
@settings(max_examples=200, deadline=None)
def test_no_path_leads_out_of_a_copy(paths):
    try:
        files = _skill_copies._checked(dict.fromkeys(paths, b"x"), 1_000)
    except ValueError:  # refused
        return
    assert {file.path for file in files} == set(paths)
    assert len({file.path.lower() for file in files}) == len(files)
    for file in files:
        assert not file.path.startswith("/")
        assert not {"", ".", ".."} & set(file.path.split("/"))


async def test_size_of_the_files_of_one_loader_is_limited(hosting, monkeypatch):
    monkeypatch.setattr(_skill_copies, "MAX_BYTES", 1 << 20)
    big = SkillBundle("big", {**HELLO, "data": b"x" * (1 << 20)})
    half = [SkillBundle(f"s{number}", {"SKILL.md": MANIFEST, "data": b"x" * (600 << 10)}) for number in (1, 2)]
    async with hosting(returning(big, *half), READER) as host:
        keys, problems = await found(host)
    assert keys == ["hello"]
    assert [one for one in problems if "exceed the limit of 1 MiB" in one] == [
        "the skill `big`: the files of this loader exceed the limit of 1 MiB",
        "the skill `s2`: the files of this loader exceed the limit of 1 MiB",
    ]


async def test_number_of_skills_of_one_loader_is_limited(hosting, monkeypatch):
    monkeypatch.setattr(_skill_copies, "MAX_SKILLS", 1)
    other = SkillBundle("other", {"SKILL.md": MANIFEST.replace(b"hello", b"other")})
    async with hosting(returning(SkillBundle("hello", HELLO), other), READER) as host:
        keys, problems = await found(host)
    assert (keys, problems) == (["hello"], ["the loader `net` failed: it returned 2 skills; the limit is 1"])


@pytest.mark.parametrize("files", ["hello", ("hello",)])
async def test_other_objects_than_files_are_reported(hosting, files):
    async def load(sources):
        return LoadedSkills(files=files)

    async with hosting(loader(load), READER) as host:
        assert "SkillBundle, got a str" in (await found(host))[1][0]


async def test_skill_of_the_user_is_used_instead_of_one_from_memory(hosting, tmp_path):
    async def load(sources):
        return LoadedSkills((SkillSpec(name="hello", key="hello", description="", source=tmp_path),))

    async with hosting(returning(SkillBundle("hello", HELLO)), loader(load, "own"), READER) as host:
        (skill,) = (await host.catalog.all()).skills
        _, problems = await found(host)
    assert skill.source == tmp_path
    assert problems == [f"the skill `hello` of loader net is not used: {tmp_path} has its name"]


async def test_skills_of_two_loaders_with_the_same_name_are_both_omitted(hosting):
    async def load(sources):
        return LoadedSkills(files=(SkillBundle("hello", {**HELLO, "more.py": b""}),))

    async with hosting(returning(SkillBundle("hello", HELLO)), loader(load, "other"), READER) as host:
        keys, (problem,) = await found(host)
    assert keys == []
    assert problem.startswith("several skills have the name `hello`: loader net (")
    assert " and loader other (" in problem


async def test_same_skill_of_two_loaders_is_used_once(hosting):
    async def load(sources):
        return LoadedSkills(files=(SkillBundle("hello", HELLO),))

    async with hosting(returning(SkillBundle("hello", HELLO)), loader(load, "other"), READER) as host:
        assert await found(host) == (["hello"], [])


async def test_first_of_equal_names_of_one_loader_is_used(hosting):
    twice = SkillBundle("hello", {**HELLO, "more.py": b""})
    async with hosting(returning(SkillBundle("hello", HELLO), twice), READER) as host:
        keys, (problem,) = await found(host)
    assert keys == ["hello"]
    assert problem.startswith("duplicate skill `hello`: using the first")


async def test_skill_that_no_loader_recognizes_is_reported(hosting):
    async with hosting(returning(SkillBundle("hello", HELLO))) as host:
        assert await found(host) == ([], ["no loader recognizes this skill"])


async def test_skill_without_a_manifest_is_reported_once(hosting):
    async with hosting(returning(SkillBundle("hello", {"tools.py": CODE})), READER) as host:
        keys, problems = await found(host)
    assert (keys, problems) == ([], ["loader net returned a skill without SKILL.md"])


async def test_loader_causes_effects_of_its_plugin_and_has_its_configuration(hosting, tmp_path):
    class Config(BaseModel):
        url: str = "https://skills.example"

    class Url(BaseModel):
        url: str

    asked = []

    @op("web.get", egress=True)
    async def get(params: Url, ctx: OpContext) -> bytes:
        asked.append((params.url, ctx.origin.plugin))
        return CODE

    async def load(sources, ctx):
        code = await ctx.dispatch("web.get", {"url": ctx.config.url})
        return LoadedSkills(files=(SkillBundle("hello", {**HELLO, "tools.py": code}),))

    web = Plugin("op", "web", SimpleNamespace(sideband_ops=lambda: OpFamily("web", (get,))))
    async with hosting(loader(load, Config=Config), web, READER) as host:
        assert await found(host) == (["hello"], [])
    assert asked == [("https://skills.example", "net")]


async def test_synchronous_loader_runs_in_a_thread(hosting):
    def load(sources, ctx):
        assert ctx.plugin == "net"
        assert threading.current_thread() is not threading.main_thread()
        return LoadedSkills(files=(SkillBundle("hello", HELLO),))

    async with hosting(loader(load), READER) as host:
        assert await found(host) == (["hello"], [])


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_loader_that_hangs_fails_and_the_others_are_used(hosting, monkeypatch, kind):
    monkeypatch.setattr(_catalog, "LOAD_SECONDS", 0.05)
    released = threading.Event()

    async def hang(sources):
        await anyio.sleep_forever()

    def block(sources):
        released.wait(60)

    async def load(sources):
        return LoadedSkills((SkillSpec(name="own", key="own", description="", source=sources.home),))

    slow = loader(hang if kind == "async" else block, "a-slow")
    async with hosting(slow, loader(load, "own")) as host:
        keys, (problem,) = await found(host)
        released.set()
    assert keys == ["own"]
    assert "the loader `a-slow` failed: TimeoutError: `load` did not return within 0.05 s" in problem


async def test_problem_of_a_loader_that_reads_no_copies_is_reported_once(hosting):
    async def fail(sources):
        raise OSError("bad luck")

    async with hosting(returning(SkillBundle("hello", HELLO)), loader(fail, "broken"), READER) as host:
        keys, problems = await found(host)
    assert (keys, problems) == (["hello"], ["the loader `broken` failed: OSError: bad luck"])
