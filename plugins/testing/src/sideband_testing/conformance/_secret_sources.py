"""The conformance class of sources of secrets."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar

import pytest
from sideband import Host, OpFamily, Plugin
from sideband.ops import EgressRefused, SecretsClosed
from sideband.plugins import SecretSource

from .._ops import send
from ._base import Conformance, listed, tree_of
from ._failing import fail
from ._stepping import Steps
from ._traces import CollectingHandler

_ELSEWHERE = "https://elsewhere.invalid"
_GARBAGE = b"\x00\xff\xfe damaged"


_SENDER = Plugin(
    "op",
    "conformance",
    SimpleNamespace(sideband_ops=lambda: OpFamily(name="conformance", ops=(send,))),
    "sideband-testing",
)


class SecretSourceConformance(Conformance):
    """The tests of a plugin in the group ``sideband.v1.secrets``, which registers sources of secrets.

    Attributes:
        holds: the values that ``store_secrets`` stores, each with the origins that it may be sent to; empty to check
            only what needs no secret.

    Example:
        >>> class TestTokens(SecretSourceConformance):
        ...     plugin = "secrets.tokens"
        ...     holds = {"t0ken-of-the-test": ["https://api.example.org"]}
        ...
        ...     async def store_secrets(self, host):
        ...         (host.home / "tokens").mkdir()
        ...         (host.home / "tokens" / "list").write_text("main https://api.example.org t0ken-of-the-test")
    """

    kind = "secrets"
    holds: ClassVar[Mapping[str, Sequence[str]]] = MappingProxyType({})

    async def store_secrets(self, host: Host) -> None:
        """Store the values of ``holds``, as files in ``host.home`` or by ops of ``also``, in a host of its own."""

    def damage(self, home: Path) -> None:
        """Damage what the plugin reads: by default, all files in its folder of the host's state.

        Args:
            home: the state folder of the host.
        """
        for path in (home / self.subject.name).rglob("*"):
            if path.is_file():
                path.write_bytes(_GARBAGE)

    def test_it_is_closed_until_it_is_opened(self) -> None:
        """Check that a source has a name, and a reason in ``closed`` until all its values are registered."""
        sources = self._register()
        if not sources or not all(one.name for one in sources):
            self._wrong("it returns sources, each with a name", listed(one.name for one in sources), "set `name`")
        for source in sources:
            if not source.closed:
                self._wrong(
                    f"`closed` of the source `{source.name}` has a reason before `open`: no value is known then",
                    f"it is {source.closed!r}",
                    'begin with a reason such as "it was not opened"',
                )

    def test_values_are_known_before_the_first_effect(self) -> None:
        """Check that the source is open when its host is, and all values are redacted."""

        async def check(host: Host) -> None:
            if reason := await self._closed(host):
                self._wrong("the source is open when its host is", reason, "set `closed` to `None` in `open`")
            for number, value in enumerate(self.holds, 1):
                if value in host.redactor.text(f"<{value}>"):
                    self._wrong(
                        "each value is redacted from the start of the host on",
                        f"the {number}. value of `holds` is not",
                        "call `ctx.protect` with each value in `open`",
                    )

        for backend in self.backends:
            self._with_secrets(check, backend=backend)

    def test_values_are_sent_to_their_origins_only(self) -> None:
        """Check that each value may be sent to the origins that it was stored for, and nowhere else."""

        async def check(host: Host) -> None:
            everywhere = {origin: None for origins in self.holds.values() for origin in origins}
            for number, (value, origins) in enumerate(self.holds.items(), 1):
                for origin in (*everywhere, _ELSEWHERE, None):
                    try:
                        await host.op("conformance.send", {"content": value, "audience": origin})
                    except EgressRefused:
                        is_sent = False
                    else:
                        is_sent = True
                    if is_sent != (origin in origins):
                        self._wrong(
                            f"the {number}. value of `holds` may be sent to {listed(origins)}, and nowhere else",
                            f"it may {'' if is_sent else 'not '}be sent to {origin or 'a place without an origin'}",
                            "pass `origins` to `ctx.protect`: those that the value was stored for",
                        )

        self._with_secrets(check)

    def test_opening_changes_and_asks_nothing(self) -> None:
        """Check that opening writes nothing into its folder of the host's state, and does not read the input."""
        asked: list[str] = []
        before: tuple[list[tuple[str, str]], ...] = ([], [])

        def look(home: Path) -> Any:
            return tree_of(home / self.subject.name), tree_of(self.world)

        async def check(host: Host) -> None:
            if (now := look(host.home)) != before:
                names = {path for path, _ in {*now[0], *now[1]} ^ {*before[0], *before[1]}}
                self._wrong("opening a source writes nothing", f"it changed {listed(sorted(names))}", "only read")

        def prepared(home: Path) -> None:
            nonlocal before
            before = look(home)

        with _watched_input(asked):
            self._with_secrets(check, prepared=prepared)
        if asked:
            self._wrong(
                "opening a source does not ask the user, since a host starts without one",
                "it reads the standard input",
                "leave the reason in `closed`, and open it by an op",
            )

    def test_damaged_files_close_it(self) -> None:
        """Check that a source that cannot read its values is closed, and its host starts nevertheless."""

        async def check(host: Host) -> None:
            known = all(value not in host.redactor.text(f"<{value}>") for value in self.holds)
            if not known and not await self._closed(host):
                self._wrong(
                    "a source whose files are damaged has a reason in `closed`, or raises",
                    "it is open, though values are unknown",
                    "do not ignore errors of reading",
                )

        def damage(home: Path) -> None:
            before = tree_of(home)
            self.damage(home)
            if tree_of(home) == before:
                pytest.skip("it has no files: define `damage`, to check what it does if it cannot read its values")

        self._with_secrets(check, prepared=damage)

    def test_cancellation_leaves_nothing_behind(self) -> None:
        """Check that ``open``, cancelled wherever it waits, leaves no task, thread, process or file."""

        async def check(host: Host) -> None:
            loaded = await host.plugins.load("secrets", self.subject.name)
            for source in loaded.contribution:
                steps = Steps()
                opening = steps.watch(source.open)
                await self.cancel_everywhere(
                    f"`open` of the source `{source.name}`",
                    steps,
                    lambda: opening(loaded.context),  # noqa: B023
                )

        self._with_secrets(check)

    def test_secrets_stay_hidden(self, capfd: pytest.CaptureFixture[str]) -> None:
        """Check that no value appears in a log, the output, a reason or a representation."""
        lines: list[str] = []
        places: dict[str, str] = {}

        async def check(host: Host) -> None:
            loaded = await host.plugins.load("secrets", self.subject.name)
            places["`repr` of its state and sources"] = repr((loaded.state, loaded.contribution))
            places["a reason"] = " ".join(str(one.closed) for one in loaded.contribution)

        with _collected_logs(lines):
            self._with_secrets(check)
        places |= {"a log": "\n".join(lines), "its output": "".join(capfd.readouterr())}
        for place, text in places.items():
            if any(value in text for value in self.holds):
                self._wrong("a value is not shown anywhere", f"one is in {place}", "show names and numbers only")

    # ------------------------------------------------------------------------------------------------------------------

    async def exercise(self, host: Host) -> None:
        """Open the sources again, as another host does."""
        loaded = await host.plugins.load("secrets", self.subject.name)
        for source in loaded.contribution:
            await source.open(loaded.context)

    def _register(self) -> Sequence[SecretSource]:
        found: Sequence[SecretSource] = self.subject.value.sideband_secret_sources()
        return found

    async def _closed(self, host: Host) -> str:
        """Return why a source of the host is closed; empty if none is."""
        try:
            await host.op("conformance.send", {"content": ""})
        except SecretsClosed as error:
            return error.message
        return ""

    def _with_secrets(
        self,
        check: Callable[[Host], Awaitable[None]],
        *,
        prepared: Callable[[Path], None] = lambda home: None,  # noqa: ARG005
        backend: str | None = None,
    ) -> None:
        """Store the secrets in one host, and check another one that has the same state.

        Args:
            check: gets the other host.
            prepared: called before that with the state folder.
            backend: the event loop.
        """
        __tracebackhide__ = True
        if not self.holds:
            pytest.skip("no secrets: set `holds` in a test class of your own, to check what the source does")

        async def run() -> None:
            home = self.new_folder("home")
            self.reset_world()
            async with self.open_host(home=home) as host:
                await self.store_secrets(host)
            prepared(home)
            async with self.open_host(home=home) as host:
                await check(host)

        self.run(run, backend=backend)

    def _with_others(self, plugin: Plugin) -> list[Plugin]:
        return [*super()._with_others(plugin), _SENDER]

    def _host_options(self, home: Path | None) -> dict[str, Any]:
        """Return the options of the host, in which the plugin is in use, and nothing is sent while it is closed."""
        options = super()._host_options(home)
        settings = options["settings"]
        tables = {self.subject.name: {}, **settings["plugins"]}
        policy = {"require_open_secrets": True, **settings.get("policy", {})}
        return {**options, "settings": {**settings, "plugins": tables, "policy": policy}}

    def _wrong(self, expected: str, happened: str, remedy: str) -> Any:
        fail(self.label, expected=expected, happened=happened, remedy=remedy)


@contextmanager
def _watched_input(asked: list[str]) -> Iterator[None]:
    """Replace the standard input by one that notes that it is read, and is at its end."""

    class Watched:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            raise EOFError

    original, sys.stdin = sys.stdin, Watched()
    try:
        yield
    finally:
        sys.stdin = original


@contextmanager
def _collected_logs(lines: list[str]) -> Iterator[None]:
    root = logging.getLogger()
    handler, level = CollectingHandler(lines), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
