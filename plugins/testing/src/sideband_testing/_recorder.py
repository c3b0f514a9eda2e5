"""The fixture `recorder`: the hooks that a host calls, in order."""

from __future__ import annotations

from types import SimpleNamespace

from attrs import field, frozen
from sideband import Plugin
from sideband.hooks import Event, HookReport


@frozen
class HookCall:
    """One call of one plugin's hook.

    Attributes:
        hook: the name of the hook, such as ``tool_call``.
        plugin: the entry-point name of the plugin.
        event: the event as the plugin got it, with the changes of the plugins before it.
        outcome: what it did: ``kept`` (nothing), ``changed``, ``added``, ``answered``, ``allowed``, ``asked`` or
            ``denied``; ``failed`` or ``timeout``; ``not reached`` if the deadline passed in an earlier plugin.
        reason: the reason of a denial, the question, the number of added items, or the message of the failure.
    """

    hook: str
    plugin: str
    event: Event = field(repr=False)
    outcome: str
    reason: str = ""


@frozen
class RecorderPlugin(Plugin):
    """What ``recorder.plugin`` is. It implements no hook, so it changes nothing in the host."""

    recorder: Recorder = field(kw_only=True, repr=False)


class Recorder:
    """Records each call of a plugin's hook, in order: the fixture ``recorder``.

    Example:
        >>> async def test_guard_denies(sideband_host, recorder):
        ...     async with sideband_host(ECHO, NO_ECHO, recorder.plugin) as host:
        ...         with pytest.raises(OpDenied):
        ...             await host.op("echo.say", {"text": "hi"})
        ...     assert [(call.plugin, call.outcome) for call in recorder.of("op_call")] == [("no-echo", "denied")]
    """

    def __init__(self) -> None:
        self._calls: list[HookCall] = []

    @property
    def plugin(self) -> Plugin:
        """What to pass to ``sideband_host``, to record the calls in that host."""
        return RecorderPlugin("hook", "recorder", SimpleNamespace(), "sideband-testing", recorder=self)

    @property
    def calls(self) -> tuple[HookCall, ...]:
        """All calls, in the order in which they ended."""
        return tuple(self._calls)

    def of(self, hook: str, *, plugin: str | None = None) -> tuple[HookCall, ...]:
        """Return the calls of one hook, or of one plugin's.

        Args:
            hook: the name of the hook.
            plugin: the entry-point name of the plugin; ``None`` for all plugins.
        """
        return tuple(one for one in self._calls if one.hook == hook and plugin in (None, one.plugin))

    def clear(self) -> None:
        """Forget the calls so far."""
        self._calls.clear()

    def take(self, report: HookReport) -> None:
        """Record a call. It is the argument ``on_hook`` of a ``sideband.Host``."""
        assert report.event is not None  # noqa: S101  hosts set it
        self._calls.append(HookCall(report.hook, report.plugin, report.event, report.result, report.reason))
