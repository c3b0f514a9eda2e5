"""Plugins in local files, from the command line."""

import hashlib
import json

import pytest

CLOCK = """
from pydantic import BaseModel
from sideband import Level, OpContext, OpFamily, op

class NowParams(BaseModel):
    zone: str = "UTC"

@op("clock.now", level=Level.SAFE)
async def now(params: NowParams, ctx: OpContext) -> str:
    return f"noon in {params.zone}"

def sideband_ops():
    return OpFamily(name="clock", ops=(now,))
"""
HELLO = """
from sideband.commands import Command

def sideband_commands():
    return Command("hello", "Greet.", lambda parser: None, lambda arguments: print("hello") or 0)
"""
GUARD = """
class Guard:
    pass

def sideband_guards():
    return [Guard]
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()

    def write(label, source):
        path = folder / f"{label}.py"
        path.write_text(source)
        (folder / "sideband.toml").write_text(f'[policy.files]\n"{label}" = "{path.name}"\n')
        return path

    return write


def test_file_of_a_trusted_project_is_used_once_it_is_trusted_itself(sideband, project):
    path = project("op.clock", CLOCK)
    done = sideband("op", "clock.now", "--trust", folder=path.parent)
    assert done.returncode == 5
    assert f"the file is not trusted; read it, and run `sideband plugins trust {path}`" in done.stderr
    assert "[plugin.untrusted]" in done.stderr
    sideband("plugins", "trust", path.name, folder=path.parent)
    done = sideband("op", "clock.now", "zone=Vienna", folder=path.parent)
    assert (done.stdout, done.returncode) == ("noon in Vienna\n", 0)


def test_trust_in_a_file_is_not_enough_if_its_project_is_not_trusted(sideband, project):
    path = project("op.clock", CLOCK)
    sideband("plugins", "trust", path, folder=path.parent)
    done = sideband("op", "clock.now", folder=path.parent)
    assert "unknown op `clock.now`" in done.stderr


def test_trust_is_shown_with_the_digest_and_the_name_of_the_plugin(sideband, project):
    path = project("op.clock", CLOCK)
    done = sideband("plugins", "trust", path.name, "--trust", "--json", folder=path.parent)
    digest = hashlib.sha256(CLOCK.encode()).hexdigest()
    assert json.loads(done.stdout) == [{"file": str(path), "digest": digest, "plugin": "op.clock"}]


def test_file_that_no_setting_names_is_trusted_with_a_hint(sideband, tmp_path):
    (tmp_path / "one.py").write_text("")
    done = sideband("plugins", "trust", "one.py")
    assert f'add a line such as "hook.NAME" = "{tmp_path}/one.py" under [policy.files]' in done.stdout


def test_distrusted_file_is_not_used(sideband, project):
    path = project("op.clock", CLOCK)
    sideband("plugins", "trust", path, folder=path.parent)
    done = sideband("plugins", "distrust", path.name, folder=path.parent)
    assert done.stdout == f"{path} is no longer trusted\n"
    assert sideband("op", "clock.now", "--trust", folder=path.parent).returncode == 5
    done = sideband("plugins", "distrust", path.name, folder=path.parent)
    assert done.stdout == f"{path} was not trusted\n"


def test_list_and_why_show_the_file_and_its_digest(sideband, project):
    path = project("op.clock", CLOCK)
    digest = hashlib.sha256(CLOCK.encode()).hexdigest()
    sideband("plugins", "trust", path, "--trust", folder=path.parent)
    listed = sideband("plugins", "list", "--kind", "op", folder=path.parent, COLUMNS="400").stdout
    assert any(f"{path} {digest[:12]}" in line and line.endswith("local file") for line in listed.splitlines())
    records = json.loads(sideband("plugins", "list", "--kind", "op", "--json", folder=path.parent).stdout)
    assert [one["digest"] for one in records if one["file"] == str(path)] == [digest]
    assert (
        f"  file       {path}\n  digest     {digest}\n"
        in sideband("plugins", "why", "clock", folder=path.parent).stdout
    )


def test_command_in_a_local_file_is_run_with_trust_only(sideband, project):
    path = project("command.hello", HELLO)
    sideband("doctor", "--trust", folder=path.parent)
    done = sideband("hello", folder=path.parent)
    assert (done.returncode, "the file is not trusted" in done.stderr) == (5, True)
    sideband("plugins", "trust", path, folder=path.parent)
    assert sideband("hello", folder=path.parent).stdout == "hello\n"


def test_changed_guard_in_a_local_file_denies_until_it_is_trusted(sideband, project):
    path = project("guard.night", GUARD)
    sideband("plugins", "trust", path, "--trust", folder=path.parent)
    assert sideband("op", "demo.hello", folder=path.parent).stderr.count("[op.denied]") == 0
    path.write_text(GUARD + "# changed\n")
    done = sideband("op", "blobs.list", folder=path.parent)
    assert done.returncode == 3
    assert "the guard `night`" in done.stderr
    assert f"the file has changed since it was trusted; read it, and run `sideband plugins trust {path}`" in done.stderr


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('"hok.notes" = "a.py"', ["`hok.notes`", "did you mean `hook`"]),
        ('hook = "a.py"', ["KIND.NAME", "`hook`"]),
        ('hook.notes = "a.py"', ['quote the name, as in "hook.notes" = "FILE"']),
        ('"skill.notes" = "a.py"', ["`skill.notes` is a skill", "[skills] folders"]),
        ('"hook.notes" = ""', ["`hook.notes`", "empty"]),
        ('"hook.notes" = 5', ["policy.files.hook.notes", "5"]),
    ],
)
def test_invalid_setting_names_the_key_and_the_remedy(sideband, tmp_path, setting, words):
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "sideband.toml").write_text(f"[policy.files]\n{setting}\n")
    done = sideband("ops", "list")
    assert done.returncode == 5
    assert all(word in done.stderr for word in words), done.stderr
