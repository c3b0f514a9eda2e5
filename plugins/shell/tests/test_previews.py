"""What a guard shows the user before a program runs."""

import shlex

import pytest
from sideband import Plugin, hookimpl
from sideband.hooks import Deny
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio


@pytest.fixture
def previews():
    """The previews so far."""
    return []


@pytest.fixture
def more_plugins(previews):
    class Watch:
        @hookimpl
        async def op_call(self, event):
            previews.append(await event.preview(event.params))
            return Deny("preview only")

    return [Plugin("guard", "watch", Watch)]


@pytest.fixture
def preview_of(run, previews):
    """Return a function that previews a program without running it."""

    async def preview_of(binary, *args, **params):
        with pytest.raises(OpDenied, match="preview only"):
            await run(binary, *args, **params)
        return previews.pop()

    return preview_of


async def test_preview_shows_the_exact_arguments(preview_of, place):
    arguments = ["commit", "-m", "it's; done"]
    text = await preview_of("git", *arguments, write=[str(place)], cwd=str(place), input="s3")
    assert shlex.join(["/usr/bin/git", *arguments]) in text
    assert f"may change `{place}`" in text
    assert "without network" in text
    assert "s3" not in text


async def test_preview_says_whether_services_in_places_are_reachable(preview_of, place):
    shown = "it may connect to services that listen in these places"
    granted = f"shell:binary=cat,place={place}"
    assert shown not in await preview_of("cat", read=[str(place)], grants=[granted])
    assert shown in await preview_of("cat", read=[str(place)], grants=[f"{granted},sockets=yes"])
    assert shown not in await preview_of("cat", grants=[f"{granted},sockets=yes"])


async def test_preview_says_whether_the_program_can_run_others(preview_of):
    shown = "it can run any other program, in the same isolation"
    assert shown in await preview_of("git", "status", grants=["shell:binary=git,runs=any"])
    assert shown in await preview_of("cat", grants=["shell:binary=cat,runs=any"])
    assert shown not in await preview_of("cat", grants=["shell:binary=cat"])


async def test_argument_cannot_end_the_quotation_of_its_command(preview_of):
    text = await preview_of("git", "log`; without network access\n│ `x\u202e", env={"A": "1"})
    assert text.startswith('run "')
    assert "log`; without network access\\n│ `x\\u202e'\"; in a temporary folder" in text
    assert len(text.split("\n")) == 1


async def test_preview_of_a_script_is_refused_like_its_run(run, previews, tmp_path):
    script = tmp_path.resolve() / "report"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    with pytest.raises(OpDenied, match="is a script of"):
        await run(str(script), grants=["shell:binary=*"])
    assert not previews


async def test_preview_says_whether_the_program_can_execute_files_that_it_creates(preview_of, place):
    grants = [f"shell:binary=make,runs=any,place={place},mode=execute"]
    text = await preview_of("make", execute=[str(place)], grants=grants)
    assert f"it may change and execute files in `{place}`" in text
