"""A worker for hosts in other languages: the protocol over standard input and output."""

import json
import os
import subprocess
import sys

import pytest


class Conversation:
    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sideband.worker", "--stdio", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ},
        )

    def say(self, **message) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, skill, function, **kwargs) -> None:
        request = {
            "module": str(skill.folder / "tools.py"),
            "function": function,
            "kwargs": kwargs,
            "working_dir": str(skill.folder),
            "capabilities": ["http"],
            "env": {"timezone": "UTC", "locale": "C"},
        }
        self.say(__type__="call", __id__=function, __call__=request)

    def hear(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def end(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=10)
        return self.process.returncode, errors.decode()


@pytest.fixture
def talk():
    conversations = []

    def start(*arguments: str) -> Conversation:
        conversations.append(Conversation(*arguments))
        return conversations[-1]

    yield start
    for conversation in conversations:
        conversation.process.kill()
        conversation.process.communicate()


def test_call_with_an_op_is_four_messages(make_skill, talk):
    skill = make_skill("async def one(n):\n    return (await echo.get(n=n))['n'] + 1")
    worker = talk()
    worker.call(skill, "one", n=1)
    dispatch = worker.hear()
    assert dispatch == {
        "__type__": "dispatch",
        "__id__": "one",
        "__dispatch_id__": "d-1",
        "__caps__": ["http"],
        "__dispatch__": {"op": "echo.get", "params": {"n": 1}},
    }
    worker.say(__type__="dispatch_result", __dispatch_id__="d-1", payload={"n": 41})
    assert worker.hear() == {"__type__": "result", "__id__": "one", "value": 42}
    assert worker.end() == (0, "")


def test_error_may_be_a_string(make_skill, talk):
    skill = make_skill("""
        async def one():
            try:
                await echo.get()
            except OpError as error:
                return {"code": error.code, "message": error.message}
    """)
    worker = talk()
    worker.call(skill, "one")
    worker.say(__type__="dispatch_result", __dispatch_id__=worker.hear()["__dispatch_id__"], __error__="no")
    assert worker.hear() == {"__type__": "result", "__id__": "one", "code": "op.failed", "message": "no"}


def test_printed_output_does_not_corrupt_the_protocol(make_skill, talk):
    skill = make_skill("""
        async def one():
            print("printed")
            os.write(1, b"written\\n")
            os.system("echo from a child")
    """)
    worker = talk()
    worker.call(skill, "one")
    assert worker.hear() == {"__type__": "result", "__id__": "one", "value": None}
    assert worker.end() == (0, "printed\nwritten\nfrom a child\n")


def test_host_that_sends_hello_gets_log_messages(make_skill, talk):
    skill = make_skill("async def one():\n    print('printed')")
    worker = talk()
    worker.say(__type__="hello", version=1)
    assert worker.hear() == {"__type__": "ready", "version": 1, "python": ".".join(map(str, sys.version_info[:3]))}
    worker.call(skill, "one")
    assert worker.hear() == {"__type__": "log", "stream": "stdout", "text": "printed", "__id__": "one"}


def test_objects_of_the_runtime_are_exempt_from_garbage_collection(make_skill, talk):
    skill = make_skill("async def one():\n    import gc\n    return gc.get_freeze_count() > 1_000")
    worker = talk()
    worker.call(skill, "one")
    assert worker.hear()["value"] is True


def test_call_cancelled_before_its_first_step_reports_the_cancellation(make_skill, talk):
    skill = make_skill("async def one():\n    await asyncio.sleep(100)")
    worker = talk()
    worker.process.stdin.write(b"")
    message = json.dumps({"__type__": "cancel", "__id__": "one"}).encode() + b"\n"
    worker.call(skill, "one")
    worker.process.stdin.write(message)
    worker.process.stdin.flush()
    assert worker.hear()["__error__"]["code"] == "call.cancelled"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"hello\n", "not JSON"),
        (b'{"__type__":"result"}\n', "message type 'result'"),
        (b'{"__type__":"call"}\n', "invalid message"),
        (b"[]\n", "not an object"),
    ],
)
def test_protocol_violation_of_the_host_is_printed(talk, line, problem):
    worker = talk()
    worker.process.stdin.write(line)
    code, errors = worker.end()
    assert code == 2
    assert problem in errors


@pytest.mark.parametrize(
    "arguments", [[], ["--stdio", "--fd", "3"], ["--fd"], ["--lockdown", "x", "--stdio"], ["what"]]
)
def test_invalid_command_line_prints_the_usage(arguments):
    found = subprocess.run(
        [sys.executable, "-m", "sideband.worker", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert found.returncode == 2
    assert found.stderr.startswith("usage: python -m sideband.worker")


def test_sdk_option_adds_the_generated_sdk(make_skill, talk, tmp_path):
    (tmp_path / "sdk" / "sideband_sdk").mkdir(parents=True)
    (tmp_path / "sdk" / "sideband_sdk" / "moon.py").write_text("async def phase():\n    return 'full'\n")
    skill = make_skill("from sideband.skill import moon\nasync def one():\n    return await moon.phase()")
    worker = talk("--sdk", str(tmp_path / "sdk"))
    worker.call(skill, "one")
    assert worker.hear()["value"] == "full"
