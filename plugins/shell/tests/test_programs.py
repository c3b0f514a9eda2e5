"""The parameters of programs, their limits, and their results."""

import os
import shutil

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.ops import OpDenied
from sideband_shell import (
    ShellArguments,
    ShellDenied,
    ShellEnvironment,
    ShellFolder,
    ShellMissing,
    ShellNotExecutable,
    ShellOutput,
    ShellPlace,
    ShellStart,
    ShellTimeout,
)
from sideband_shell._kept_output import KeptOutput
from sideband_shell._programs import find_program, safe_folders

pytestmark = pytest.mark.anyio


async def test_result_has_exit_code_and_output(run):
    answer = await run("sh", "-c", "cat; echo bad >&2; exit 3", input="good\n")
    assert (answer["exit_code"], answer["stdout"], answer["stderr"]) == (3, "good\n", "bad\n")
    assert (answer["signal"], answer["timed_out"], answer["truncated"]) == (None, False, False)
    again = await run("sh", "-c", "cat; echo bad >&2; exit 3", input="good\n")
    assert again | {"seconds": answer["seconds"]} == answer


async def test_result_says_how_long_the_program_ran(run):
    before = anyio.current_time()
    answer = await run("true")
    assert 0 < answer["seconds"] <= anyio.current_time() - before


async def test_result_names_the_signal(run):
    answer = await run("sh", "-c", "kill -SEGV $$")
    assert (answer["exit_code"], answer["signal"]) == (-1, "SIGSEGV")


METACHARACTERS = [
    "$(id)",
    "`id`",
    "; id",
    "&& id",
    "| id",
    "> /tmp/x",
    "*",
    "~",
    "$HOME",
    "a b",
    "'",
    '"',
    "\\",
    "",
    "#",
    "é",
]


async def test_arguments_are_passed_unchanged(run):
    answer = await run("printf", "%s\\0", *METACHARACTERS, "two\nlines")
    assert answer["stdout"].split("\0")[:-1] == [*METACHARACTERS, "two\nlines"]


async def test_output_that_is_not_utf_8_is_returned_as_bytes(run):
    assert (await run("printf", "\\377\\000"))["stdout"] == b"\xff\x00"


async def test_input_may_be_bytes_and_is_empty_by_default(run):
    assert (await run("cat", input=b"\x00\xff"))["stdout"] == b"\x00\xff"
    assert (await run("cat"))["stdout"] == ""


async def test_large_input_and_output_do_not_deadlock(run):
    data = "x" * 4_000_000
    answer = await run("cat", input=data)
    assert answer["stdout_omitted"] == len(data) - 256 * 1024
    assert answer["truncated"]


async def test_program_may_exit_without_reading_its_input(run):
    assert (await run("true", input="x" * 1_000_000))["exit_code"] == 0


async def test_long_output_keeps_its_beginning_and_end(run):
    answer = await run("seq", "1", "200000")
    assert answer["stdout"].startswith("1\n2\n")
    assert answer["stdout"].endswith("199999\n200000\n")
    whole = sum(len(str(number)) + 1 for number in range(1, 200_001))
    assert answer["stdout_omitted"] == whole - 256 * 1024
    assert f"\n[… {answer['stdout_omitted']:,} bytes left out …]\n" in answer["stdout"]


@pytest.mark.parametrize("settings", [{"max_total_bytes": 1_000_000}])
async def test_output_limit_kills_the_program(run):
    with pytest.raises(ShellOutput, match="1,000,000") as caught:
        await run("yes")
    assert (caught.value.code, bool(caught.value.hint)) == ("shell.output", True)


async def test_expired_timeout_raises(run):
    with pytest.raises(ShellTimeout, match=r"0\.3 s") as caught:
        await run("sleep", "1000", timeout=0.3)
    assert (caught.value.code, "stream" in caught.value.hint) == ("shell.timeout", True)


async def test_expired_timeout_with_stream_returns_the_output(run):
    answer = await run("sh", "-c", "echo early; sleep 1000", timeout=1, stream=True)
    assert (answer["timed_out"], answer["exit_code"], answer["stdout"]) == (True, -1, "early\n")


@pytest.mark.parametrize("settings", [{"max_seconds": 0.3}])
async def test_configuration_limits_the_timeout(run):
    with pytest.raises(ShellTimeout):
        await run("sleep", "1000", timeout=1000)


@pytest.mark.parametrize("settings", [{"environment": {"TZ": "UTC"}}])
async def test_environment_does_not_include_that_of_the_host(run, monkeypatch):
    monkeypatch.setenv("FROM_THE_HOST", "leaked")
    lines = (await run("env", env={"MINE": "1"}))["stdout"].splitlines()
    names = {line.partition("=")[0] for line in lines}
    assert names == {"GIT_CONFIG_NOSYSTEM", "HOME", "LANG", "MINE", "PATH", "TMPDIR", "TZ"}


@pytest.mark.parametrize("name", ["LD_PRELOAD", "ld_preload", "PATH", "BASH_ENV", "HOME", "IFS", "GLIBC_TUNABLES"])
async def test_reserved_variable_is_rejected_with_any_grant(run, name):
    with pytest.raises(ShellEnvironment, match=name) as caught:
        await run("env", env={name: "x"})
    assert (caught.value.code, bool(caught.value.hint)) == ("shell.environment", True)


async def test_program_without_a_working_directory_runs_in_its_temporary_folder(run):
    answer = await run("sh", "-c", 'echo x >new && [ "$PWD" -ef "$HOME" ] && ls')
    assert answer["stdout"] == "new\n"


async def test_place_is_writable_only_if_requested(run, place):
    assert (await run("cat", "known", cwd=str(place)))["stdout"] == "known\n"
    assert (await run("touch", "new", cwd=str(place)))["exit_code"] != 0
    assert (await run("touch", "new", cwd=str(place), write=[str(place)]))["exit_code"] == 0
    assert (place / "new").stat().st_uid == os.geteuid()


async def test_file_in_a_writable_place_is_executed_only_if_requested(run, place):
    (place / "made.sh").write_text("#!/bin/sh\necho made\n")
    (place / "made.sh").chmod(0o755)
    script = "cp /bin/true copy && ./copy && ./made.sh"
    refused = await run("sh", "-c", script, cwd=str(place), write=[str(place)])
    assert (refused["stdout"], "Permission denied" in refused["stderr"]) == ("", True)
    grants = ["shell:binary=sh,runs=any,place=*,mode=execute"]
    ran = await run("sh", "-c", script, cwd=str(place), execute=[str(place)], grants=grants)
    assert (ran["stdout"], ran["stderr"]) == ("made\n", "")


async def test_program_in_an_executable_place_runs_without_the_right_to_run_others(run, place):
    program = shutil.copy("/bin/cat", place / "mycat")
    params = {"execute": [str(place)], "cwd": str(place), "grants": [f"shell:binary={program},place=*,mode=execute"]}
    assert (await run(str(program), "known", **params))["stdout"] == "known\n"


async def test_relative_place_is_in_the_files_of_the_host(run, home):
    (home / "files" / "work").mkdir(parents=True)
    assert (await run("touch", "work/new", cwd=".", write=["work"]))["exit_code"] == 0
    assert (home / "files" / "work" / "new").exists()


async def test_link_to_a_place_is_resolved_before_the_grant_is_checked(run, place, tmp_path):
    (tmp_path / "link").symlink_to(place)
    grants = [f"shell:binary=cat,place={place}"]
    answer = await run("cat", "known", cwd=str(tmp_path / "link"), grants=grants)
    assert answer["stdout"] == "known\n"
    with pytest.raises(OpDenied):
        await run("cat", "known", cwd=str(tmp_path / "link"), grants=[f"shell:binary=cat,place={tmp_path / 'link'}"])


async def test_link_in_the_files_of_the_host_is_rejected(run, home, place):
    (home / "files").mkdir(parents=True)
    (home / "files" / "link").symlink_to(place)
    with pytest.raises(ShellPlace, match="symbolic link"):
        await run("cat", "known", cwd="link")


@pytest.mark.parametrize("name", [".", "sideband", "sideband/ledger"])
async def test_place_must_not_overlap_the_folder_of_the_host(run, home, name):
    (home / "ledger").mkdir(exist_ok=True, parents=True)
    place = home.parent if name == "." else home / name.removeprefix("sideband").strip("/")
    with pytest.raises(ShellPlace, match="own folder") as caught:
        await run("true", read=[str(place)])
    assert (caught.value.code, bool(caught.value.hint)) == ("shell.place", True)


@pytest.mark.parametrize("name", ["envs", "skills"])
async def test_folders_of_packages_and_snapshots_can_be_read_and_not_changed(run, home, name):
    folder = home / name / ("0" * 64)
    folder.mkdir(parents=True)
    (folder / "a").write_text("text")
    assert (await run("cat", str(folder / "a"), read=[str(folder)]))["stdout"] == "text"
    for refused in ({"write": [str(folder)]}, {"read": [str(folder.parent)]}):
        with pytest.raises(ShellPlace, match="own folder"):
            await run("cat", str(folder / "a"), **refused)


@pytest.mark.parametrize("place", ["", ".sideband", ".sideband/locks"])
async def test_place_must_not_contain_the_locks_of_the_users_hosts(run, tmp_path, monkeypatch, place):
    (tmp_path / "user/.sideband/locks").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    with pytest.raises(ShellPlace, match="own folder"):
        await run("true", read=[str(tmp_path / "user" / place)])


@pytest.mark.parametrize("name", ["/proc", "/proc/self", "/sys", "/dev", "/", "/none", "/dev/null"])
async def test_kernel_file_system_or_missing_path_is_rejected_as_a_place(run, name):
    with pytest.raises(ShellPlace):
        await run("true", read=[name])


@pytest.mark.parametrize("settings", [{"max_places": 2}])
async def test_configuration_limits_the_number_of_places(run, place, tmp_path):
    others = [tmp_path / name for name in ("one", "two")]
    for other in others:
        other.mkdir()
    assert (await run("true", read=[str(place)], cwd=str(others[0])))["exit_code"] == 0
    with pytest.raises(ShellPlace, match="at most 2") as caught:
        await run("true", read=[str(place), str(others[0])], write=[str(others[1])])
    assert "max_places" in caught.value.hint


async def test_working_directory_must_be_a_folder(run, place):
    with pytest.raises(ShellFolder, match="not a folder") as caught:
        await run("true", cwd=str(place / "known"))
    assert (caught.value.code, bool(caught.value.hint)) == ("shell.cwd", True)


async def test_missing_program_error_lists_the_searched_folders(run):
    with pytest.raises(ShellMissing, match="no-such-program") as caught:
        await run("no-such-program")
    assert caught.value.code == "shell.missing"
    assert "/usr/bin" in caught.value.hint
    with pytest.raises(ShellMissing):
        await run("/none/program")


async def test_world_writable_folder_is_not_searched(run, settings, host, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "tool").chmod(0o755)
    folder.chmod(0o777)
    with pytest.raises(ShellMissing) as caught:
        find_program("tool", [str(folder)], tmp_path / "home")
    assert str(folder) in caught.value.hint


async def test_file_that_is_not_executable_is_rejected(run, place):
    with pytest.raises(ShellNotExecutable) as caught:
        await run(str(place / "known"))
    assert (caught.value.code, bool(caught.value.hint)) == ("shell.not_executable", True)


async def test_world_writable_program_is_rejected(run, place):
    (place / "known").chmod(0o777)
    with pytest.raises(ShellDenied, match="world-writable") as caught:
        await run(str(place / "known"))
    assert (caught.value.code, bool(caught.value.hint)) == ("shell.denied", True)


async def test_program_in_the_folder_of_the_host_is_rejected(run, home):
    (home / "files").mkdir(parents=True)
    (home / "files" / "tool").write_text("#!/bin/sh\n")
    (home / "files" / "tool").chmod(0o755)
    with pytest.raises(ShellDenied, match="own folder"):
        await run(str(home / "files" / "tool"))


async def test_program_path_that_became_a_link_is_rejected(place):
    (place / "link").symlink_to("/bin/cat")
    with pytest.raises(ShellDenied, match="symbolic link"):
        find_program(str(place / "link"), [], place / "home")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
async def test_program_or_folder_of_another_user_is_rejected(place):
    shutil.copy("/bin/cat", place / "tool")
    os.chown(place / "tool", 61_234, 61_234)
    with pytest.raises(ShellDenied, match="61234"):
        find_program(str(place / "tool"), [], place / "home")
    place.chmod(0o755)
    assert list(safe_folders([str(place)])) == [str(place)]
    os.chown(place, 61_234, 61_234)
    assert list(safe_folders([str(place)])) == []


async def test_pipe_is_rejected_as_a_place(run, place):
    os.mkfifo(place / "pipe")
    with pytest.raises(ShellPlace, match="neither"):
        await run("true", read=[str(place / "pipe")])


async def test_link_to_a_shell_does_not_bypass_the_grant(tmp_path):
    if os.geteuid() == 0:
        tmp_path.chmod(0o755)
        (tmp_path / "harmless").symlink_to("/bin/sh")
        assert list(safe_folders([str(tmp_path)]))
        with pytest.raises(ShellDenied, match="another name"):
            find_program("harmless", [str(tmp_path)], tmp_path / "home")


async def test_invalid_executable_raises_shell_start(run, place):
    (place / "broken").write_bytes(b"\x7fELF but invalid")
    (place / "broken").chmod(0o755)
    with pytest.raises(ShellStart) as caught:
        await run(str(place / "broken"))
    assert (caught.value.code, bool(caught.value.hint)) == ("shell.start", True)


async def test_arguments_over_the_system_limit_are_rejected(run):
    with pytest.raises(ShellArguments, match="131,071") as caught:
        await run("true", "x" * 200_000)
    assert (caught.value.code, bool(caught.value.hint)) == ("shell.arguments", True)
    with pytest.raises(ShellArguments, match="1,048,576"):
        await run("true", *["x" * 100_000] * 11)


@given(data=st.binary(max_size=200), limit=st.integers(2, 50), step=st.integers(1, 60))
def test_kept_and_omitted_bytes_add_up_to_the_output(data, limit, step):
    kept = KeptOutput(limit)
    for start in range(0, len(data), step):
        kept.feed(data[start : start + step])
    printed = kept.finish()
    content = printed.content if isinstance(printed.content, bytes) else printed.content.encode()
    gap = f"\n[… {printed.omitted:,} bytes left out …]\n".encode() if printed.omitted else b""
    head, _, tail = content.partition(gap) if gap else (content, b"", b"")
    assert len(head) + len(tail) + printed.omitted == len(data)
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len(head) + len(tail) <= max(limit, len(data) if not printed.omitted else 0)


@given(text=st.text(max_size=100), limit=st.integers(2, 40))
def test_truncated_text_remains_text(text, limit):
    kept = KeptOutput(limit)
    kept.feed(text.encode())
    assert isinstance(kept.finish().content, str)


async def test_long_line_of_progress_contains_no_partial_secret(host, tmp_path):
    host.redactor.protect("canary-7f3a9c51-0b", "canary")
    reports = []
    file = (tmp_path / "long.txt").resolve()
    file.write_text(f"{'y' * 500} canary-7f3a9c51-0b{'z' * 190}")
    await host.op("shell.run", {"binary": "cat", "args": [str(file)], "read": [str(file)]}, on_progress=reports.append)
    assert "".join(one.message or "" for one in reports) == f"{'y' * 500} [redacted:canary]{'z' * 190}"


@pytest.mark.parametrize("settings", [{"max_output_bytes": 1024}])
@pytest.mark.parametrize("before", [*range(495, 513, 4), 2_980, 3_000])
async def test_truncated_output_contains_no_partial_secret(host, run_python, before):
    host.redactor.protect("canary-7f3a9c51", "canary")
    # The program assembles the secret, because a request that contains it is refused.
    code = f"import sys; sys.stdout.write('x' * {before} + 'canary-' + '7f3a9c51' + 'y' * {3_500 - before})"
    answer = await run_python(code)
    assert answer["stdout_omitted"] > 0
    shown = answer["stdout"].replace("[redacted:canary]", "")
    assert not any(part in shown for part in ("can", "ary-", "7f3", "9c51"))
