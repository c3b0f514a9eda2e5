"""Fixtures with real workers: an SDK folder, inline skills, and pools."""

import itertools
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import attrs
import pytest
from sideband.workers import (
    CallHandler,
    LaunchRequest,
    LogLine,
    PlainSandbox,
    WorkerCall,
    WorkerPool,
    WorkerReport,
    runtime_files,
)


@pytest.fixture
def anyio_backend():
    """Use asyncio, unless a test is parametrized with both backends, because it concerns concurrency in the host."""
    return "asyncio"


@pytest.fixture(scope="session")
def sdk(tmp_path_factory) -> Path:
    """Return an SDK folder like that of a host, without generated families."""
    folder = tmp_path_factory.mktemp("sdk")
    for name, source in runtime_files().items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    return folder


@attrs.define
class Taker(CallHandler):
    """A handler that answers the ops of one call and collects its output."""

    skill: "Skill"
    call: str
    answer: Callable[..., Any] | None
    silent: tuple[str, ...]

    async def dispatch(self, op: str, params: Mapping[str, Any]) -> Any:
        self.skill.dispatched.append((self.call, op, params))
        return params if self.answer is None else await self.answer(op, params)

    def is_fire_and_forget(self, op: str) -> bool:
        return op in self.silent

    def log(self, line: LogLine) -> None:
        self.skill.logged.append((self.call, line))


@attrs.define
class Skill:
    """A skill with one module, and the dispatches and output of its calls."""

    folder: Path
    sdk: Path
    dispatched: list[tuple[str, str, Mapping[str, Any]]]
    logged: list[tuple[str, LogLine]]
    ids: itertools.count = attrs.Factory(itertools.count)

    def call(self, function: str, *, handler: Callable[..., Any] | None = None, **options: Any) -> WorkerCall:
        """Return a call of a function. ``handler(op, params)`` answers its ops; the default returns the parameters."""
        identifier = options.pop("id", None) or f"call-{self.folder.name}-{next(self.ids)}"

        taker = Taker(self, identifier, handler, silent=options.pop("silent", ("progress.report",)))
        call = WorkerCall(
            id=identifier,
            tool=f"skill.{function}",
            domain=options.pop("domain", self.folder.name),
            launch=LaunchRequest(snapshot=self.folder, sdk=self.sdk),
            module=str(self.folder / options.pop("module", "tools.py")),
            function=function,
            arguments=options.pop("arguments", {}),
            timeout=options.pop("timeout", 20),
            handler=taker,
        )
        return attrs.evolve(call, **options)

    def add_module(self, name: str, source: str) -> str:
        """Add a module to the skill, and return its file name."""
        header = "import asyncio, os, sys, threading, time\nfrom sideband.skill import OpError, dispatch, echo, tool\n"
        (self.folder / f"{name}.py").write_text(header + textwrap.dedent(source))
        return f"{name}.py"

    def output(self, stream: str) -> list[str]:
        """Return the lines that any call logged on a stream."""
        return [line.text for _, line in self.logged if line.stream == stream]


@pytest.fixture
def make_skill(tmp_path, sdk) -> Callable[..., Skill]:
    """Return a function that writes a skill with one module, ``tools.py``."""

    def make(source: str, name: str = "skill") -> Skill:
        folder = tmp_path / name
        folder.mkdir()
        skill = Skill(folder, sdk, [], [])
        skill.add_module("tools", source)
        return skill

    return make


@pytest.fixture
def reports() -> list[WorkerReport]:
    return []


@pytest.fixture
def make_pool(reports) -> Callable[..., WorkerPool]:
    """Return a function that creates a pool with short timeouts, whose reports are collected."""

    def make(**options: Any) -> WorkerPool:
        times = {"idle_seconds": 60, "cancel_grace": 0.5, "write_timeout": 1.0}
        return WorkerPool(options.pop("sandbox", PlainSandbox()), report=reports.append, **{**times, **options})

    return make


@pytest.fixture
def gather() -> Callable[..., Any]:
    """Return a function that runs coroutines concurrently and returns their results and exceptions in order."""

    async def run(*coroutines: Any) -> list[Any]:
        outcomes: list[Any] = [None] * len(coroutines)

        async def one(index: int, coroutine: Any) -> None:
            try:
                outcomes[index] = await coroutine
            except Exception as error:  # noqa: BLE001  the test checks the outcomes
                outcomes[index] = error

        async with anyio.create_task_group() as tasks:
            for index, coroutine in enumerate(coroutines):
                tasks.start_soon(one, index, coroutine)
        return outcomes

    return run


async def until(condition: Callable[[], Any]) -> None:
    """Wait for a condition that another process causes."""
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110  another process cannot set an event here
            await anyio.sleep(0.002)


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., Any]:
    return until


@pytest.fixture
def answers() -> SimpleNamespace:
    """Return a handler whose ops block until released: ``handler``, ``arrived(count)``, ``release(key)``."""
    waiting: dict[Any, anyio.Event] = {}
    cancelled: list[Any] = []

    async def handler(op: str, params: Mapping[str, Any]) -> Any:
        event = waiting[params["key"]] = anyio.Event()
        try:
            await event.wait()
        except anyio.get_cancelled_exc_class():
            cancelled.append(params["key"])
            raise
        return f"answer {params['key']}"

    async def arrived(count: int) -> None:
        await until(lambda: len(waiting) >= count)

    return SimpleNamespace(
        handler=handler,
        arrived=arrived,
        release=lambda key: waiting[key].set(),
        waiting=waiting,
        cancelled=cancelled,
    )
