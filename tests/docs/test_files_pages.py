"""The examples in the READMEs of files and blobs work."""

import pytest
from sideband import Host

FILES, BLOBS = "plugins/files/README.md", "plugins/blobs/README.md"


@pytest.fixture
def open_host(tmp_path, make_skill):
    """Return a host with the skill of a page."""

    def open_it(page, words, capabilities):
        folder = make_skill("example", page.example("python", words), " ".join(capabilities))
        settings = {"policy": {"isolation": "none"}, "grants": {"example": capabilities}}
        return Host(home=tmp_path / "home", settings=settings, skill_dirs=[folder.parent])

    return open_it


@pytest.mark.anyio
async def test_files_example_skill_counts(page, open_host):
    async with open_host(page(FILES), "read_json", ["files:mode=read|write"]) as host:
        assert [await host.call("example.count", name=name) for name in ("ann", "bob", "ann")] == [1, 1, 2]


@pytest.mark.anyio
async def test_blobs_example_skill_returns_the_stored_text(page, open_host):
    async with open_host(page(BLOBS), "blobs.put", ["blobs"]) as host:
        assert await host.call("example.remember", text="größe") == "größe"


def test_files_example_program_undoes_its_change(page, tmp_path, run_program):
    program = page(FILES).example("python", "plan_undo")
    done = run_program(f"{program}\nimport anyio\nanyio.run(main)", tmp_path)
    assert (done.stdout, done.returncode) == ("restore `a.txt` (5 bytes)\nfirst\n", 0), done.stderr
