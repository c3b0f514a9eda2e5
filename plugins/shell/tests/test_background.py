"""Programs in the background: their output, their end, and who may use them."""

import os
import signal

import anyio
import pytest
from sideband.broker import CallProgress, delivered
from sideband.ops import OpDenied, Origin
from sideband_shell import ShellProgramUnknown, ShellTooMany
from sideband_shell._background import Owner

pytestmark = pytest.mark.anyio
ALL = ["shell:binary=*,code=yes|no,runs=any,place=*,mode=read|write|execute"]


def pid_of(host, program):
    programs = host.plugins.active("op", "shell").context.state
    return programs.get(program, Owner("plugin:tools", "user", "s1")).process.pid


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def text(found):
    return "".join(one["content"] for one in found["parts"])


async def test_output_and_exit_code_are_returned(session):
    program = await session.start("echo one; echo two >&2; exit 3")
    found = await session.whole(program)
    assert {one["stream"]: one["content"] for one in found["parts"]} == {"stdout": "one\n", "stderr": "two\n"}
    assert (found["running"], found["exit_code"], found["end"], found["next"]) == (False, 3, "exit", 8)


async def test_input_is_passed(session):
    program = await session.start("cat", input="hello")
    assert text(await session.whole(program)) == "hello"


async def test_program_survives_the_call_that_started_it_and_waiting_ends_with_the_next_output(session, place):
    script = "mkfifo fifo; echo ready; read line < fifo; echo $line; sleep 60"
    program = await session.start(script, cwd=str(place), write=[str(place)])
    first = await session("output", program=program, wait=30)
    assert (text(first), first["running"], first["exit_code"]) == ("ready\n", True, None)
    async with anyio.create_task_group() as tasks:

        async def answer():
            await session("start", binary="sh", args=["-c", "echo go > fifo"], cwd=str(place), write=[str(place)])

        tasks.start_soon(answer)
        second = await session("output", program=program, offset=first["next"], wait=30)
    assert (text(second), second["offset"], second["running"]) == ("go\n", 6, True)


async def test_waiting_ends_without_output(session):
    program = await session.start("sleep 60")
    found = await session("output", program=program, wait=0.05)
    assert (found["parts"], found["running"], found["next"]) == ([], True, 0)


async def test_negative_offset_counts_from_the_end(session):
    program = await session.start("printf 0123456789")
    await session.whole(program)
    found = await session("output", program=program, offset=-4)
    assert (text(found), found["offset"], found["next"]) == ("6789", 6, 10)


async def test_size_of_the_result_is_limited_and_reading_continues(session):
    program = await session.start("printf 'ab\\303\\251cd'")
    await session.whole(program)
    first = await session("output", program=program, max_bytes=3)
    second = await session("output", program=program, offset=first["next"])
    assert (text(first), text(second)) == ("ab", "écd")


async def test_output_that_is_not_text_is_bytes(session):
    program = await session.start("printf 'a\\377b'")
    assert [one["content"] for one in (await session.whole(program))["parts"]] == [b"a\xffb"]


@pytest.mark.parametrize("settings", [{"max_background_bytes": 1_024}])
async def test_dropped_output_is_a_gap_with_its_size(session):
    program = await session.start("seq 1 10000")
    await session.whole(program)
    found = await session("output", program=program, offset=5)
    whole = "".join(f"{number}\n" for number in range(1, 10_001))
    assert text(found) == whole[found["offset"] :]
    assert found["omitted"] == found["offset"] - 5 > 40_000
    assert (found["size"], found["next"]) == (len(whole), len(whole))


async def test_secret_is_not_returned_in_two_parts(session, host, place):
    host.redactor.protect("canary-7f3a9c51", "canary")
    script = "mkfifo fifo; printf 'is canary-'; read line < fifo; printf '7f3a9c51!'"
    program = await session.start(script, cwd=str(place), write=[str(place)])
    first = await session("output", program=program, wait=30)
    await session("start", binary="sh", args=["-c", "echo go > fifo"], cwd=str(place), write=[str(place)])
    await session.whole(program)
    second = await session("output", program=program, offset=first["next"])
    assert (text(first), text(second)) == ("is ", "[redacted:canary]!")


async def test_output_is_emitted_while_a_call_waits(session, host):
    texts = []
    program = await session.start("echo one; echo two")
    progress = CallProgress("c1", "shell.output", host.redactor)

    async def take(event):
        if event.text is not None:
            texts.append(event.text)

    async with delivered(progress, take):
        await host.context_for("tools").dispatch_for(
            Origin(session="s1"),
            "shell.output",
            {"program": program, "wait": 30, "until": "end"},
            capabilities=ALL,
            hooks=session.hooks,
            progress=progress,
        )
    assert "".join(texts) == "one\ntwo\n"


async def test_stopped_program_gets_a_signal_first(session):
    program = await session.start("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done")
    await session("output", program=program, wait=30)
    state = await session("stop", program=program, grace=30)
    assert (state["exit_code"], state["end"]) == (0, "stop")
    assert text(await session("output", program=program)).endswith("bye\n")


async def test_program_that_ignores_the_signal_is_killed(session):
    program = await session.start("trap '' TERM; echo ready; while :; do sleep 0.01; done")
    await session("output", program=program, wait=30)
    state = await session("stop", program=program, grace=0.05)
    assert (state["running"], state["signal"], state["end"]) == (False, signal.SIGKILL.name, "stop")


async def test_stop_of_a_program_that_has_ended_changes_nothing(session):
    program = await session.start("exit 4")
    await session.whole(program)
    state = await session("stop", program=program)
    assert (state["exit_code"], state["end"]) == (4, "exit")


async def test_expired_timeout_is_reported(session):
    program = await session.start("echo begun; sleep 60", timeout=0.2)
    found = await session.whole(program)
    assert (text(found), found["end"], found["exit_code"]) == ("begun\n", "timeout", -1)


@pytest.mark.parametrize("settings", [{"max_total_bytes": 2_000}])
async def test_program_that_prints_too_much_is_killed(session):
    program = await session.start("yes")
    assert (await session.whole(program))["end"] == "output"


async def test_id_is_useless_in_other_sessions_and_plugins(session_of, session):
    program = await session.start("sleep 60")
    for other in (session_of("s2"), session_of("s1", "other")):
        with pytest.raises(ShellProgramUnknown, match="no program in the background"):
            await other("output", program=program)
        with pytest.raises(ShellProgramUnknown):
            await other("stop", program=program)
    assert (await session("output", program=program))["running"]


async def test_ids_cannot_be_guessed(session):
    found = {await session.start("exit 0") for _ in range(3)}
    assert len(found) == 3
    assert all(len(bytes.fromhex(one)) == 16 for one in found)


async def test_program_ends_with_its_session(host, session, session_of):
    program = await session.start("trap '' TERM; echo ready; while :; do sleep 0.01; done")
    await session("output", program=program, wait=30)
    other = session_of("s2", hooks=session.hooks)
    kept = await other.start("sleep 60")
    pid = pid_of(host, program)
    await session.end()
    assert not is_alive(pid)
    assert (await other("output", program=kept))["running"]
    with pytest.raises(ShellProgramUnknown) as caught:
        await session("output", program=program)
    assert "end with the session" in caught.value.hint


async def test_program_ends_with_its_host(open_host, new_session):
    async with open_host() as host:
        program = await new_session(host).start("trap '' TERM; while :; do sleep 0.01; done")
        pid = pid_of(host, program)
        assert is_alive(pid)
    assert not is_alive(pid)
    async with open_host() as host:
        with pytest.raises(ShellProgramUnknown):
            await new_session(host)("output", program=program)


async def test_program_without_a_session_ends_with_its_call(host):
    found = await host.op("shell.start", {"binary": "sleep", "args": ["60"]}, grants=ALL)
    with pytest.raises(ShellProgramUnknown):
        await host.op("shell.output", {"program": found["program"]}, grants=ALL)


@pytest.mark.parametrize("settings", [{"max_background": 1, "max_background_total": 2}])
async def test_number_of_programs_is_limited(session_of, session):
    first = await session.start("sleep 60")
    with pytest.raises(ShellTooMany, match="at most 1 "):
        await session.start("sleep 60")
    await session_of("s2").start("sleep 60")
    with pytest.raises(ShellTooMany, match="at most 2 "):
        await session_of("s3").start("sleep 60")
    await session("stop", program=first, grace=0)
    await session.start("sleep 60")


@pytest.mark.parametrize("settings", [{"max_background": 1}])
async def test_oldest_program_that_has_ended_is_forgotten(session):
    first = await session.start("exit 0")
    await session.whole(first)
    second = await session.start("exit 0")
    await session.whole(second)
    with pytest.raises(ShellProgramUnknown):
        await session("output", program=first)


async def test_start_needs_the_rights_of_a_run(host, session, place):
    context = host.context_for("tools")
    params = {"binary": "sh", "args": ["-c", "exit"], "write": [str(place)]}
    with pytest.raises(OpDenied, match="mode=write"):
        await context.dispatch_for(
            Origin(session="s1"), "shell.start", params, capabilities=["shell:binary=sh,runs=any"], hooks=session.hooks
        )
