"""What every plugin must do, whatever its kind."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import anyio
import pytest
from sideband import Host, Plugin, SidebandError
from sideband.plugins import PluginRecord, State

from ._failing import fail
from ._importing import ModuleImport, import_alone
from ._leftovers import held, left_since
from ._overrides import check_overrides
from ._stepping import Steps, cancel_at, chosen
from ._subject import entry_points, module_of, resolve

_HEAVY = frozenset(
    """
    aiohttp anthropic boto3 botocore cryptography django duckdb fastapi flask google httpx keyring matplotlib numpy
    openai pandas PIL playwright polars psycopg pyarrow requests scipy selenium sklearn sqlalchemy tensorflow torch
    transformers urllib3
    """.split()  # noqa: SIM905  a list would be four times as long
)
_SECRET_NAME = re.compile(r"(?:^|_)(?:pass(?:word|phrase|wd)|secret|token|(?:api|access|secret|private)_?key)s?$")
CANARY = "canary-5f1e0c7d-do-not-show"
SECONDS = 30.0


class Conformance:
    """The tests of a plugin that are the same for all kinds. Derive a test class from the class of its kind.

    In texts of ``config``, examples and events, ``{folder}`` stands for a folder of the running example, and ``{NAME}``
    for ``self.values["NAME"]``, which a fixture of the class may set.

    Attributes:
        plugin: the plugin: ``"kind.name"`` of an installed one, or a ``sideband.Plugin``.
        config: its configuration, as in ``[plugins.NAME]``.
        also: other plugins that the host needs.
        settings: other settings of the host.
        overrides: the reason for each standard test that does not apply, by name. The class may define its own instead.
        max_modules: the maximum number of modules that its import adds to those of a host; ``None`` for no limit.
        needs_modules: heavy modules that its import needs, such as ``numpy``.
        seconds: the time limit of each part of a test.
        max_steps: at how many of the places where an example waits it is cancelled, and at how many its host is killed.
    """

    kind: ClassVar[str] = ""
    plugin: ClassVar[Plugin | str] = ""
    config: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    also: ClassVar[Sequence[Plugin | str]] = ()
    settings: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    overrides: ClassVar[Mapping[str, str]] = MappingProxyType({})
    max_modules: ClassVar[int | None] = None
    needs_modules: ClassVar[Sequence[str]] = ()
    seconds: ClassVar[float] = SECONDS
    max_steps: ClassVar[int] = 24
    _resolved: ClassVar[Plugin | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_overrides(cls, Conformance)

    @pytest.fixture(autouse=True)
    def _conform(
        self, request: pytest.FixtureRequest, tmp_path: Path, sideband_host: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Prepare a test, and skip it if it is overridden and not replaced."""
        name = getattr(request.node, "originalname", "") or request.node.name
        if name in self.overrides and _is_standard(type(self), name):
            pytest.skip(f"overridden: {self.overrides[name]}")
        self._request = request
        self._root = tmp_path
        self._hosts = sideband_host
        self._number = 0
        (tmp_path / "temporary").mkdir(exist_ok=True)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
        monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))

    # What a class may extend ------------------------------------------------------------------------------------------

    @property
    def values(self) -> dict[str, str]:
        """The texts for which names in braces stand."""
        found: dict[str, str] = self.__dict__.setdefault("_values", {})
        return found

    def prepare(self, folder: Path) -> None:
        """Create in ``folder`` what an example needs. It is empty and called before each run of an example."""

    def observe(self, folder: Path, home: Path) -> Any:
        """Return what the plugin may change, to compare it. By default, the files of ``folder`` with their content.

        Args:
            folder: the folder of the example.
            home: the state folder of the host.
        """
        del home
        return tree_of(folder)

    # What all kinds must do -------------------------------------------------------------------------------------------

    def test_import_has_no_side_effects(self) -> None:
        """Check that importing the plugin does nothing but import."""
        found = self._import()
        if found.acts:
            fail(
                self.label,
                expected="its import opens no file, socket or process and changes nothing of its process",
                happened="; ".join(found.acts),
                remedy="do it in `lifespan`, or at the first use",
            )

    def test_import_is_cheap(self, record_property: Callable[[str, object], None]) -> None:
        """Check that importing the plugin imports no heavy module that its kind does not need."""
        found = self._import()
        record_property("modules", len(found.modules))
        heavy = sorted({one.partition(".")[0] for one in found.modules} & _HEAVY - {*self.needs_modules})
        if heavy:
            fail(
                self.label,
                expected="its import does not import heavy modules, which every command and start would wait for",
                happened=f"it imports {', '.join(heavy)}",
                remedy="import them in the function that needs them, or list them in `needs_modules`",
            )
        if self.max_modules is not None and len(found.modules) > self.max_modules:
            fail(
                self.label,
                expected=f"its import adds at most {self.max_modules} modules to those of a host",
                happened=f"it adds {len(found.modules)}: {', '.join(found.modules)}",
                remedy="import what is rarely needed in the function that needs it, or raise `max_modules`",
            )

    def test_metadata_and_registration_agree(self) -> None:
        """Check that a host finds the plugin under the name of its entry point, and can use it."""
        self._check_metadata()

        async def load() -> PluginRecord:
            async with self.open_host() as host:
                try:
                    await host.plugins.load(self.kind, self.subject.name)
                except SidebandError as error:
                    fail(
                        self.label,
                        expected="a host can load it, and its name is that of its entry point",
                        happened=error.message,
                        remedy=error.hint or "correct what it registers",
                    )
                return next(one for one in host.plugins.records if one.label == self.label)

        record = self.run(load)
        if record.state is not State.ACTIVE:
            fail(self.label, expected="it becomes active", happened=record.reason, remedy="correct what it registers")

    def test_configuration_hides_secrets(self) -> None:
        """Check that the representation of its configuration does not show the values of secrets."""
        model = getattr(self.subject.value, "Config", None)
        fields = [name for name in getattr(model, "model_fields", {}) if _SECRET_NAME.search(name)]
        for name in fields:
            try:
                shown = repr(model.model_validate({**self.fill(self.config), name: CANARY}))  # type: ignore[union-attr]
            except ValueError:
                continue  # no text
            if CANARY in shown:
                fail(
                    self.label,
                    expected="`repr` of its configuration shows no secret: logs and errors contain it",
                    happened=f"it shows the value of `{name}`",
                    remedy=f"declare `{name}: SecretStr`, or `{name}: str = Field(repr=False)`",
                )

    def test_closed_host_leaves_nothing_behind(self) -> None:
        """Check that what the plugin opened is closed with its host."""

        async def use() -> tuple[str, ...]:
            async with self.open_host() as host:  # shared caches and threads are there then
                await self._load_and_exercise(host)
            temporary = [self._root / "temporary"]
            before = held(temporary)
            async with self.open_host() as host:
                await self._load_and_exercise(host)
            return await left_since(before, temporary)

        if left := self.run(use):
            fail(
                self.label,
                expected="when its host is closed, it leaves no task, thread, descriptor, process or temporary file",
                happened=f"it leaves {', '.join(left)}",
                remedy="close it at the end of `lifespan`, in `finally`",
            )

    def test_runs_on_each_declared_event_loop(self) -> None:
        """Check that the plugin does the same on each event loop that it declares in ``backends``."""
        for backend in self.backends:
            try:
                self.run(self._use_once, backend=backend)
            except pytest.fail.Exception:
                raise
            except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001  whatever it raises there
                fail(
                    self.label,
                    expected=f"it works on {backend}, which its `backends` contain (by default asyncio and trio)",
                    happened=f"{type(error).__name__}: {error}",
                    remedy="use anyio instead of one event loop's functions, or set `backends` in its module",
                )

    # What the classes of kinds use ------------------------------------------------------------------------------------

    @property
    def subject(self) -> Plugin:
        """The plugin."""
        found = vars(type(self)).get("_resolved")
        if found is None:
            found = type(self)._resolved = resolve(self.plugin, kind=self.kind)  # noqa: SLF001  its own
        return found

    @property
    def label(self) -> str:
        """The plugin as ``kind.name``."""
        return self.plugin if isinstance(self.plugin, str) else f"{self.plugin.kind}.{self.plugin.name}"

    @property
    def backends(self) -> tuple[str, ...]:
        """The event loops that it declares."""
        return tuple(sorted(getattr(self.subject.value, "backends", ("asyncio", "trio"))))

    def run(self, main: Callable[[], Awaitable[Any]], *, backend: str | None = None) -> Any:
        """Run an async function in an event loop of its own, until the time limit."""
        __tracebackhide__ = True
        chosen = backend or self.backends[0]
        self._check_backend(chosen)

        async def limited() -> Any:
            with anyio.fail_after(self.seconds):
                return await main()

        try:
            return anyio.run(limited, backend=chosen)
        except TimeoutError:
            fail(
                self.label,
                expected=f"each part of a test ends within {self.seconds:g} s",
                happened="it did not",
                remedy="find what waits for ever, or raise `seconds`",
            )

    def _check_backend(self, backend: str) -> None:
        if backend == "trio":
            pytest.importorskip("trio", reason="the plugin declares trio, which is not installed: pip install trio")

    @asynccontextmanager
    async def open_host(self, *, plugin: Plugin | None = None, home: Path | None = None) -> AsyncIterator[Host]:
        """Open a host with the plugin, its configuration and the others that it needs.

        Args:
            plugin: the plugin instead of ``subject``, such as a watched copy.
            home: the folder for its state, by default a new one.
        """
        chosen = self.subject if plugin is None else plugin
        async with self._hosts(*self._with_others(chosen), **self._host_options(home)) as host:
            yield host

    def _with_others(self, plugin: Plugin) -> list[Plugin]:
        """Return the plugin and the others of the host. Those of its module share its object, and so its state."""
        return [plugin, *(resolve(one, among=[plugin]) for one in self.also)]

    def _host_options(self, home: Path | None) -> dict[str, Any]:
        settings = {name: self.fill(table) for name, table in self.settings.items()}
        tables = dict(settings.get("plugins", {}))
        if self.config:
            tables[self.subject.name] = self.fill(self.config)
        return {"home": home or self.new_folder("home"), "settings": {**settings, "plugins": tables}}

    def new_folder(self, name: str) -> Path:
        """Return a new empty folder."""
        self._number += 1
        folder = self._root / f"{name}-{self._number}"
        folder.mkdir()
        return folder

    @property
    def world(self) -> Path:
        """The folder for which ``{folder}`` stands."""
        folder = self._root / "world"
        folder.mkdir(exist_ok=True)
        return folder

    def reset_world(self) -> Path:
        """Empty that folder, and create in it what an example needs."""
        shutil.rmtree(self.world)
        self.prepare(self.world)
        return self.world

    def fill(self, value: Any) -> Any:
        """Return data in which the texts in braces are replaced."""
        if isinstance(value, str):
            for name, text in {"folder": str(self.world), **self.values}.items():
                value = value.replace("{" + name + "}", text)
            return value
        if isinstance(value, Mapping):
            return {key: self.fill(item) for key, item in value.items()}
        return [self.fill(item) for item in value] if isinstance(value, list | tuple) else value

    async def cancel_everywhere(
        self,
        what: str,
        steps: Steps,
        act: Callable[[], Awaitable[object]],
        *,
        arrange: Callable[[], Awaitable[object]] | None = None,
        left: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """Run something, cancelled each time at another place where it waits, and check that it leaves nothing.

        Args:
            what: what is run, for messages.
            steps: watches it.
            act: runs it. Its errors are ignored.
            arrange: prepares a run.
            left: returns what else it has left.
        """

        async def once(run: Callable[[], Awaitable[object]]) -> None:
            if arrange is not None:
                await arrange()
            steps.count = 0
            with suppress(Exception):  # also of a cancelled one
                await run()

        folders = [self._root / "temporary"]
        for _ in range(2):  # what a first use opens for all later ones is open then
            await once(act)
        end = steps.count
        before = held(folders)
        for number in chosen(end, self.max_steps):
            await once(lambda: cancel_at(number, steps, act))  # noqa: B023
            found = [*await left_since(before, folders), *left()]
            if steps.running:
                found.append("its function, which still runs")
            if found:
                fail(
                    self.label,
                    expected=f"{what}, cancelled where it waits for the {number}. time of {end}, leaves nothing",
                    happened=f"it leaves {listed(found)}",
                    remedy="release it in `finally` or by `with`, also if the code before it was cancelled",
                )

    async def exercise(self, host: Host) -> None:
        """Use the plugin once, as far as the class knows how."""

    async def _load_and_exercise(self, host: Host) -> None:
        if self.kind not in ("skill", "store", "sandbox"):
            await host.plugins.load(self.kind, self.subject.name)
        await self.exercise(host)

    async def _use_once(self) -> None:
        async with self.open_host() as host:
            await self._load_and_exercise(host)

    def _import(self) -> ModuleImport:
        name = module_of(self.subject)
        if not name:
            pytest.skip("it is an object in memory: there is no module to import")
        found = _imports.get(name)
        if found is None:
            found = _imports[name] = import_alone(name)
        if found.error:
            fail(
                self.label,
                expected=f"its module `{name}` can be imported in a process of its own",
                happened=found.error,
                remedy="import what it needs itself, and declare its dependencies",
            )
        return found

    def _check_metadata(self) -> None:
        if not isinstance(self.plugin, str):
            return
        found = next(one for one in entry_points(self.kind) if one.name == self.subject.name)
        if not found.requires:
            fail(
                self.label,
                expected=f"its distribution `{found.distribution}` requires `sideband-core` in a range of versions",
                happened="it does not, so a host cannot know whether it fits",
                remedy='add `"sideband-core>=0.1,<1"` to its dependencies',
            )


_imports: dict[str, ModuleImport] = {}


def _is_standard(cls: type, name: str) -> bool:
    """Return whether a test is the standard one, not one that a class outside of this package defines."""
    owner = next(one for one in cls.__mro__ if name in vars(one))
    return owner.__module__.startswith(f"{__package__}.")


def tree_of(folder: Path) -> list[tuple[str, str]]:
    """Return the files and folders below a folder, each with the digest of its content."""
    return [(str(path.relative_to(folder)), _digest(path)) for path in sorted(folder.rglob("*"))]


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"


@contextmanager
def typed_errors(label: str, what: str) -> Iterator[None]:
    """Fail the check if anything but a ``SidebandError`` is raised."""
    try:
        yield
    except SidebandError:
        raise
    except Exception as error:  # noqa: BLE001  that is what is checked
        fail(
            label,
            expected=f"{what} fails with an error that has a code, a message and a hint",
            happened=f"it raised {type(error).__name__}: {error}",
            remedy="raise a subclass of `sideband.SidebandError`",
        )


def listed(values: Iterable[object]) -> str:
    """Return values for a message."""
    return ", ".join(map(str, values)) or "none"
