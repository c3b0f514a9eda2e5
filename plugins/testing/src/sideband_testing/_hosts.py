"""The fixture `sideband_host`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import pytest
import sideband_store_sqlite
import sideband_store_sqlite.plugin
from sideband import Host, Plugin, SidebandError
from sideband.broker import Redaction
from sideband.hooks import HookReport
from sideband.plugins import PluginPolicy, PluginRecord, list_plugins
from sideband.settings import LoadedSettings
from sideband.suggestions import did_you_mean

from ._errors import ArgumentInvalid
from ._keyrings import REFUSING, VARIABLE
from ._recorder import RecorderPlugin

_NAME = "sideband_host"


class HostFactory:
    """Makes hosts that share nothing with the user's: the fixture ``sideband_host``.

    The state of a host is in a temporary folder. It ignores the user's configuration, and variables ``SIDEBAND_*`` that
    were set before the fixture; later ones apply, and so does a ``sideband.toml`` in ``home``. The same holds for
    variables with the name of a secret, such as ``OPENAI_API_KEY``, unless ``--sideband-record`` lets effects really
    happen. It cannot use the keyring of the operating system. Its workers get the strongest isolation that its sandbox
    plugins offer on this machine, unless ``settings`` set ``policy.isolation``.

    A test that leaves a host open fails.

    Args:
        home: the folder for the state of hosts that are given no other.
        monkeypatch: changes the environment until the end of the test.

    Attributes:
        home: that folder. Hosts that are opened one after the other have the same state.
        remedy: what a test can do if the replay of its cassette stops.

    Example:
        >>> async def test_time(sideband_host):
        ...     async with sideband_host(Plugin("op", "clock", sideband_clock.plugin)) as host:
        ...         assert await host.op("clock.now", {"zone": "UTC"})
    """

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.remedy = ""
        self._hosts: list[_TrackedHost] = []
        for name in [name for name in os.environ if name.startswith("SIDEBAND_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("SIDEBAND_HOME", str(home))
        monkeypatch.setenv(VARIABLE, REFUSING)

    def __call__(self, *plugins: Plugin | str, installed: bool = False, **options: Any) -> Host:
        """Return a host, to be opened with ``async with``.

        Args:
            plugins: its plugins: a ``sideband.Plugin``, or ``"kind.name"`` of an installed one. Without a plugin of the
                kind ``store``, it gets the store ``sqlite``.
            installed: whether it has all installed plugins too.
            options: other arguments of ``sideband.Host``, such as ``settings``, ``grants`` and ``approver``.

        Raises:
            ArgumentInvalid: if a plugin is not installed, or an argument is not one of these.
        """
        for name, remedy in (("plugins", "pass them one by one, as in `sideband_host(one, two)`"),
                             ("autoload", "use `installed=True` for all installed plugins")):  # fmt: skip
            if name in options:
                raise ArgumentInvalid(_NAME, name, "not an argument of this fixture", hint=remedy)
        home = options.pop("home", self.home)
        recorders = [plugin.recorder for plugin in plugins if isinstance(plugin, RecorderPlugin)]
        if recorders:
            options["on_hook"] = _on_each(*(one.take for one in recorders), options.get("on_hook"))
        inline = [plugin for plugin in plugins if isinstance(plugin, Plugin) and not isinstance(plugin, RecorderPlugin)]
        labels = self._checked_labels(plugins, home)
        kinds = {plugin.kind for plugin in inline} | {label.partition(".")[0] for label in labels}
        policy: dict[str, Any] = {"isolation": "none"}
        if labels and not installed:
            policy["only"] = labels
        elif installed and (stores := self._other_stores(home, kinds, labels)):
            policy["deny"] = dict.fromkeys(stores, "a host has one store")
        if not installed and "store" not in kinds:
            inline.insert(0, _sqlite())
        host = _TrackedHost(
            home=home,
            plugins=inline,
            autoload=installed or bool(labels),
            settings=_settings(options.pop("settings", None), policy),
            **options,
        )
        host.remedy = self.remedy
        self._hosts.append(host)
        return host

    def check_closed(self) -> None:
        """Fail the test if it left hosts open."""
        if homes := [str(host.home) for host in self._hosts if host.is_open]:
            pytest.fail(
                f"the test left hosts of `{_NAME}` open, whose state is in {', '.join(homes)}: "
                f"open each with `async with {_NAME}(…) as host:`",
                pytrace=False,
            )

    async def close(self) -> None:
        """Close the hosts that are open, the latest first."""
        for host in reversed(self._hosts):
            if host.is_open:
                await host.__aexit__(None, None, None)

    def _checked_labels(self, plugins: tuple[Plugin | str, ...], home: Path) -> list[str]:
        """Return the plugins that were given as texts, in order."""
        labels = []
        for number, plugin in enumerate(plugins):
            if isinstance(plugin, Plugin):
                continue
            argument = f"plugins[{number}]"
            if not isinstance(plugin, str):
                problem = f"expected a plugin or a text, got a {type(plugin).__name__}"
                raise ArgumentInvalid(_NAME, argument, problem, hint='write `Plugin("op", "NAME", module)`')
            known = {record.label for record in _installed(home)}
            if plugin not in known:
                named = [label for label in sorted(known) if label.partition(".")[2] == plugin]
                hint = f"write {' or '.join(f'`{label}`' for label in named)}" if named else "install its distribution"
                problem = f"no plugin `{plugin}` is installed{'' if named else did_you_mean(plugin, known)}"
                raise ArgumentInvalid(_NAME, argument, problem, hint=hint)
            labels.append(plugin)
        return labels

    def _other_stores(self, home: Path, kinds: set[str], labels: list[str]) -> list[str]:
        """Return the installed stores that are in the way of the one that the host is to have."""
        kept = labels if "store" in kinds else [*labels, "store.sqlite"]
        return [one.label for one in _installed(home) if one.kind == "store" and one.label not in kept]


class _TrackedHost(Host):
    """A host that knows whether it is open, and adds the remedy to a replay that stops."""

    is_open = False
    remedy = ""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.is_open = True
        return self

    async def __aexit__(self, kind: object, raised: BaseException | None, traceback: object) -> None:
        self.is_open = False
        self._explain(raised)
        try:
            await super().__aexit__(kind, raised, traceback)
        except SidebandError as error:
            self._explain(error)
            raise

    def _explain(self, error: object) -> None:
        if isinstance(error, SidebandError) and error.code == "cassette.divergence" and self.remedy:
            error.add_note(self.remedy)


def forget_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove variables with the name of a secret, such as ``OPENAI_API_KEY``, until the end of the test."""
    shown = Redaction().data(dict.fromkeys(os.environ, ""))
    for name in [name for name in os.environ if shown[name]]:
        monkeypatch.delenv(name)


def _on_each(*receivers: Callable[[HookReport], None] | None) -> Callable[[HookReport], None]:
    """Return a function that passes on each report of a hook."""

    def take(report: HookReport) -> None:
        for receiver in receivers:
            if receiver is not None:
                receiver(report)

    return take


def _sqlite() -> Plugin:
    version = sideband_store_sqlite.__version__
    return Plugin("store", "sqlite", sideband_store_sqlite.plugin, "sideband-store-sqlite", version)


def _installed(home: Path) -> tuple[PluginRecord, ...]:
    return list_plugins(home, PluginPolicy())[0]


def _settings(given: Any, policy: Mapping[str, Any]) -> Any:
    """Return the settings of a host: those of the test, with the policy of the fixture."""
    if isinstance(given, LoadedSettings):
        if {"only", "deny"} & policy.keys():
            problem = "loaded settings cannot be combined with installed plugins"
            raise ArgumentInvalid(_NAME, "settings", problem, hint='pass nested tables: `{"policy": {…}}`')
        return given
    tables = dict(given or {})
    chosen = tables.get("policy", {})
    if "only" in policy and "only" in chosen:
        problem = "`policy.only` is what the fixture sets"
        raise ArgumentInvalid(_NAME, "settings", problem, hint='name the plugins: `sideband_host("op.http")`')
    tables["policy"] = {**policy, **chosen, "deny": {**policy.get("deny", {}), **chosen.get("deny", {})}}
    return tables
