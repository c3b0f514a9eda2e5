"""Scripts: they run with their interpreter, and so with what it can do, unless the grant names them."""

import os
import shutil
from pathlib import Path

import pytest
from sideband.ops import OpDenied
from sideband_shell import ShellDenied

pytestmark = pytest.mark.anyio

MARK = "ran a file"
PERL = os.path.realpath("/usr/bin/perl")
REFUSED = {
    "a shell": "#!/bin/sh\n. ./evil\n",
    "a shell after spaces": "#! \t/bin/sh -e\n. ./evil\n",
    "a shell without a line end in the first bytes": f"#!/bin/sh {' ' * 300}\n. ./evil\n",
    "an interpreter with a version": f"#!{PERL} -w\nprint `cat evil`;\n",
    "env": "#!/usr/bin/env sh\n. ./evil\n",
    "env with options": "#!/usr/bin/env -S sh -e\n. ./evil\n",
    "a path with dots": "#!/usr/bin/../bin/sh\n. ./evil\n",
    "a program that runs others": "#!/usr/bin/make -f\nall:\n\techo ran\n",
}


@pytest.fixture
def script(tmp_path):
    """Return a function that writes a script with an ordinary name, and returns its path."""

    def script(text, name="report"):
        path = tmp_path.resolve() / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    return script


@pytest.fixture
def evil(place):
    """Return a place with a file of code."""
    (place / "evil").write_text(f"echo {MARK}\n")
    (place / "evil.py").write_text(f"print('{MARK}')\n")
    return place


@pytest.mark.parametrize("case", REFUSED)
async def test_script_needs_what_its_interpreter_needs(run, script, evil, case):
    path = script(REFUSED[case])
    with pytest.raises(ShellDenied, match="is a script of"):
        await run(path, cwd=str(evil), grants=[f"shell:binary=*,place={evil}"])


async def test_script_of_a_script_needs_what_the_last_interpreter_needs(run, script, evil):
    inner = script("#!/bin/sh\n. ./evil\n", "inner")
    outer = script(f"#!{inner}\n", "outer")
    with pytest.raises(ShellDenied, match="is a script of"):
        await run(outer, cwd=str(evil), grants=[f"shell:binary=*,place={evil}"])


async def test_link_to_an_interpreter_does_not_hide_it(run, script, tmp_path, evil):
    (tmp_path / "harmless").symlink_to("/bin/sh")
    path = script(f"#!{tmp_path.resolve()}/harmless\n. ./evil\n")
    with pytest.raises(ShellDenied, match="is a script of"):
        await run(path, cwd=str(evil), grants=[f"shell:binary=*,place={evil}"])


async def test_listed_name_of_an_interpreter_counts_too(run, script, tmp_path, evil):
    shutil.copy("/bin/sh", tmp_path / "lister")
    (tmp_path / "sh").symlink_to("lister")
    path = script(f"#!{tmp_path.resolve()}/sh\n. ./evil\n")
    with pytest.raises(ShellDenied, match="is a script of"):
        await run(path, cwd=str(evil), grants=[f"shell:binary=*,place={evil}"])


async def test_script_with_a_relative_interpreter_is_refused(run, script, evil):
    path = script("#!tools/interpreter\n")
    with pytest.raises(ShellDenied, match="relative"):
        await run(path, cwd=str(evil), grants=[f"shell:binary={path},place={evil}"])


async def test_script_needs_both_rights_of_an_interpreter(run, script, evil):
    path = script("#!/bin/sh\n. ./evil\n")
    for missing in ("code=yes|no", "runs=any"):
        with pytest.raises(ShellDenied, match="is a script of"):
            await run(path, cwd=str(evil), grants=[f"shell:binary=*,place={evil},{missing}"])
    grants = [f"shell:binary=*,place={evil},code=yes|no,runs=any"]
    assert MARK in (await run(path, cwd=str(evil), grants=grants))["stdout"]


async def test_script_that_the_grant_names_runs(run, script, evil):
    path = script("#!/bin/sh\n. ./evil\n")
    answer = await run(path, cwd=str(evil), grants=[f"shell:binary={path},place={evil}"])
    assert MARK in answer["stdout"], answer


async def test_grant_that_names_a_script_in_one_place_does_not_apply_to_another(run, script, evil):
    path = script("#!/bin/sh\n. ./evil\n")
    with pytest.raises(ShellDenied, match="is a script of"):
        await run(path, cwd=str(evil), grants=[f"shell:binary={path}", f"shell:binary=*,place={evil}"])


async def test_script_of_an_ordinary_program_runs(run, script):
    path = script("#!/bin/cat\nhello\n")
    assert "hello" in (await run(path, grants=["shell:binary=*"], read=[]))["stdout"]


@pytest.mark.skipif(not Path("/usr/bin/pydoc3").exists(), reason="needs pydoc3")
async def test_installed_script_that_runs_files_needs_a_grant_by_name(run, evil):
    with pytest.raises(OpDenied, match="code=yes"):
        await run("pydoc3", "./evil.py", cwd=str(evil), grants=[f"shell:binary=*,place={evil}"])
    with pytest.raises(OpDenied, match="code=yes"):
        await run("pydoc3", "./evil.py", cwd=str(evil), grants=[f"shell:binary=*,place={evil},runs=any"])
    grants = [f"shell:binary=pydoc3,place={evil},runs=any"]
    assert MARK in (await run("pydoc3", "./evil.py", cwd=str(evil), grants=grants))["stdout"]
