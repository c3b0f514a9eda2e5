"""Hostile skills next to an ordinary skill, the neighbor, on one real host. Used by the fixture ``fight``.

A hostile skill is the body of a tool ``attack(victim)``, or a module that contains it; ``victim`` is the ID of a call
of the neighbor that runs for the whole attack. The skill also has a tool ``fine``, which is called after the attack,
and a module ``forge``, which writes raw lines of the protocol.
"""

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import attrs
import sideband_progress.plugin
import sideband_sandbox.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel, ConfigDict
from sideband import CallRequest, Host, Plugin
from sideband.ledger import Verification, verify
from sideband.ops import OpContext, OpFamily, Scope, op
from sideband.workers import CallTimeout, WorkerError

OWN, NEIGHBORS = ("vault:name=own",), ("vault:name=neighbor",)
KEPT, ANSWERS = "what own keeps", [["what neighbor keeps", number] for number in range(3)]
LARGE = "x" * (4 << 20)
DEADLINE = 300
PLUGINS = [
    ("store", "sqlite", sideband_store_sqlite.plugin),
    ("sandbox", "sandbox", sideband_sandbox.plugin),
    ("loader", "skills", sideband_skills.plugin),
    ("op", "progress", sideband_progress.plugin),
]

FORGE = '''
import json, os, select
from sideband.workers.runtime import running

left = []

def me():
    return running()[1].id

def raw(data):
    """Write all data to the protocol's descriptor, which is non-blocking."""
    rest = memoryview(data)
    while rest:
        select.select([], [3], [])
        try:
            rest = rest[os.write(3, rest):]
        except BlockingIOError:
            pass

def line(**fields):
    raw(json.dumps(fields).encode() + b"\\n")

def next_id():
    dispatches = running()[0].dispatches
    dispatches._last += 1
    return f"d-{dispatches._last}"

def messages():
    """Return one valid message of each type."""
    request = {"op": "vault.read", "params": {"name": "own"}}
    return {
        "dispatch": {"__id__": me(), "__dispatch_id__": next_id(), "__caps__": [], "__dispatch__": request},
        "result": {"__id__": me(), "value": 1},
        "cancel": {"__dispatch_id__": next_id()},
        "log": {"__id__": me(), "stream": "stdout", "text": "a line"},
        "progress": {"__id__": me(), "current": 1, "total": 2, "message": "half of it"},
        "ready": {"version": 1, "python": "3.11.7"},
    }

def ask(call, name="neighbor", id=None, caps=(), op="vault.read", **fields):
    line(__type__="dispatch", __id__=call, __dispatch_id__=id or next_id(), __caps__=list(caps),
         __dispatch__={"op": op, "params": {"name": name}}, **fields)

def later(function):
    """Run the function in the next call, after the host has received the result of this one."""
    left.append(function)
'''
FINE = """
import forge
from sideband.skill import tool, vault

@tool
async def fine() -> str:
    while forge.left:
        forge.left.pop()()
    return await vault.read(name="own")
"""
HEADER = """
import asyncio, gc, os, sys, threading, time
from forge import ask, later, line, me, messages, next_id, raw
from sideband.skill import OpError, dispatch, progress, tool, vault
"""
NEIGHBOR = """
from sideband.skill import tool, vault

@tool
async def ask(number: int) -> list:
    return [await vault.read(name="neighbor"), number]

@tool
async def stay(key: str) -> str:
    return await vault.stay(key=key)
"""


def module(source: str) -> str:
    """Return a hostile module, given its source or only the body of its tool."""
    if "async def attack" not in source:
        source = "@tool\nasync def attack(victim: str) -> object:\n" + textwrap.indent(source.strip(), "    ")
    return HEADER + source


class Read(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str


class Stay(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key: str


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


@attrs.frozen
class VaultScope(Scope, family="vault"):
    name: str | None = None


@attrs.frozen
class Attack:
    """The outcome of a hostile call, and of the other calls around it.

    Attributes:
        skill: the hostile skill.
        call: the ID of the call; empty if it raised.
        output: the returned value.
        error: the raised error.
        logs: the printed lines.
        stayed: the outcome of the neighbor's call that ran for the whole attack.
        neighbors: the outcomes of the neighbor's calls that started during the attack.
        after: the outcomes of the next calls of the same skill: one, and a second one if the first lost its worker.
    """

    skill: str
    call: str
    output: Any
    error: Exception | None
    logs: tuple
    stayed: Any
    neighbors: list
    after: list

    @property
    def code(self) -> str:
        """The code of the error; empty if the call returned."""
        return "" if self.error is None else getattr(self.error, "code", type(self.error).__name__)


@attrs.define
class _Stay:
    """A call of the neighbor that runs for a whole attack."""

    call: str = ""
    begun: anyio.Event = attrs.Factory(anyio.Event)
    ended: anyio.Event = attrs.Factory(anyio.Event)


@attrs.define
class Arena:
    """One host with its skills, and the outcomes of all attacks.

    Args:
        folder: the folder of its home and its skills.
        seconds: the timeout of a hostile call.
        patience: the timeout of the next call of its skill.
        together: the number of concurrent attacks.
        policy: the policy of the host.

    Attributes:
        attacks: the attacks by name.
        executed: the executed effects: the skill, and the name that it read.
        isolations: the tiers of the calls that returned.
        lines: the number of lines that each hostile skill printed.
        stays: the neighbor's long calls, by the name of the attack.
        verdict: the verification of the ledger.
    """

    folder: Path
    seconds: float = 30.0
    patience: float = 60.0
    together: int = 4
    policy: Mapping[str, Any] = attrs.Factory(dict)
    attacks: dict[str, Attack] = attrs.Factory(dict)
    executed: list[tuple[str, str]] = attrs.Factory(list)
    isolations: set[str] = attrs.Factory(set)
    lines: Counter = attrs.Factory(Counter)
    stays: dict[str, _Stay] = attrs.Factory(dict)
    verdict: Verification | None = None

    async def fight(self, sources: Mapping[str, str]) -> None:
        """Run each hostile skill next to the neighbor."""
        folders = [self._write("neighbor", {"tools.py": NEIGHBOR})]
        names = {name: f"hostile-{number}" for number, name in enumerate(sources)}
        for name, source in sources.items():
            code = {"tools.py": FINE, "forge.py": FORGE, "attack.py": module(source)}
            folders.append(self._write(names[name], code))
        limiter = anyio.CapacityLimiter(self.together)
        with anyio.fail_after(DEADLINE):
            async with self._host(folders) as host:
                async with anyio.create_task_group() as tasks:
                    for name, skill in names.items():
                        tasks.start_soon(self._attack, host, limiter, name, skill.replace("-", "_"))
                self.verdict = await verify(host.ledger.folder, host.store)

    def _write(self, name: str, files: Mapping[str, str]) -> Path:
        folder = self.folder / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: A skill of a test.\n---\n")
        for file, text in files.items():
            (folder / file).write_text(text)
        return folder

    def _host(self, folders: list[Path]) -> Host:
        vault = Plugin(kind="op", name="vault", value=SimpleNamespace(sideband_ops=self._vault))
        return Host(
            home=self.folder / "home",
            plugins=[*(Plugin(kind=kind, name=name, value=value) for kind, name, value in PLUGINS), vault],
            autoload=False,
            skill_dirs=folders,
            settings={"policy": {"isolation": "full", **self.policy}},
        )

    def _vault(self) -> OpFamily:
        @op("vault.read", requires="vault", scope=lambda params: VaultScope(name=params.name), record=["name"])
        async def read(params: Read, ctx: OpContext) -> str:
            self.executed.append((ctx.origin.skill, params.name))
            return f"what {params.name} keeps"

        @op("vault.stay", requires="vault", scope=lambda _: VaultScope(name="neighbor"))
        async def stay(params: Stay, ctx: OpContext) -> str:
            stay = self.stays[params.key]
            stay.call = ctx.call
            stay.begun.set()
            await stay.ended.wait()
            return f"stayed for {params.key}"

        @op("vault.large")
        async def large(params: Nothing, ctx: OpContext) -> str:
            return LARGE

        return OpFamily(name="vault", ops=(read, stay, large), scope=VaultScope)

    async def _attack(self, host: Host, limiter: anyio.CapacityLimiter, name: str, skill: str) -> None:
        fine = CallRequest(f"{skill}.fine", grants=OWN, timeout=self.patience)
        found: dict[str, Any] = {}
        neighbors: list[Any] = []
        stay = self.stays[name] = _Stay()

        async def call(key: str, request: CallRequest) -> None:
            found[key] = await outcome(host, request)

        async def ask_the_neighbor() -> None:
            for number in range(3):
                request = CallRequest("neighbor.ask", {"number": number}, NEIGHBORS, timeout=60)
                neighbors.append(answer(await outcome(host, request)))

        async with limiter:
            # Start the worker before the attack, so that its start does not count against the timeout.
            await outcome(host, fine)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, "stayed", CallRequest("neighbor.stay", {"key": name}, NEIGHBORS, timeout=120))
                await stay.begun.wait()
                async with anyio.create_task_group() as attack:
                    attack.start_soon(ask_the_neighbor)
                    request = CallRequest(
                        f"{skill}.attack",
                        {"victim": stay.call},
                        grants=OWN,
                        timeout=self.seconds,
                        on_log=lambda _: self.lines.update([skill]),
                    )
                    attack.start_soon(call, "attack", request)
                after = [answer(await outcome(host, fine))]
                if isinstance(after[0], WorkerError | CallTimeout):
                    after.append(answer(await outcome(host, fine)))
                stay.ended.set()
        result = found["attack"]
        failed = isinstance(result, Exception)
        if not failed:
            self.isolations.add(result.isolation)
        self.attacks[name] = Attack(
            skill=skill,
            call="" if failed else result.call,
            output=None if failed else result.output,
            error=result if failed else None,
            logs=() if failed else result.logs,
            stayed=answer(found["stayed"]),
            neighbors=neighbors,
            after=after,
        )

    def refused(self, code: str) -> list[dict]:
        """Return the origins of the ledger's entries with this error code."""
        files = sorted((self.folder / "home" / "ledger").glob("*.jsonl"))
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [line["origin"] for line in lines if line.get("content", {}).get("error", {}).get("code") == code]

    def unexpected(self, names: Iterable[str], is_expected: Callable[[Attack], bool]) -> dict[str, str]:
        """Return the attacks whose outcome is not as expected, with their outcomes."""
        failed = {name: self.attacks[name] for name in names if not is_expected(self.attacks[name])}
        return {name: f"{attack.error!r}, {attack.output!r}, {attack.after!r}"[:500] for name, attack in failed.items()}

    def check_others(self) -> None:
        """Check that no attack affected the neighbor, and that the next call of each skill works."""
        affected = {
            name: (attack.stayed, attack.neighbors, attack.after)
            for name, attack in self.attacks.items()
            if (attack.stayed, attack.neighbors, attack.after[-1]) != (f"stayed for {name}", ANSWERS, KEPT)
        }
        assert affected == {}

    def check_record(self) -> None:
        """Check that each executed effect is covered by the grant of its call, and that the ledger is valid."""
        assert {(skill, name) for skill, name in self.executed if skill == "neighbor"} == {("neighbor", "neighbor")}
        assert {name for skill, name in self.executed if skill != "neighbor"} == {"own"}
        assert self.verdict.ok, self.verdict.problems


def answer(result: Any) -> Any:
    """Return the output of a call, or its error."""
    return result if isinstance(result, Exception) else result.output


async def outcome(host: Host, request: CallRequest) -> Any:
    """Make a call. Return its result, or the error that it raised."""
    try:
        return await host.run(request)
    except Exception as error:  # noqa: BLE001  the test judges the outcome
        return error
