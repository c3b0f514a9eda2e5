"""The context of plugins."""

from __future__ import annotations

from typing import Any, Protocol

from ._op import EffectContext


class PluginContext(EffectContext, Protocol):
    """The context of a plugin's ``lifespan`` and hook implementations.

    Ops that it dispatches are effects of the plugin. Its rights are those that the host granted to the plugin.

    Attributes:
        plugin: the entry-point name.
        config: the plugin's validated ``Config``, or ``None`` if it does not define one.
        state: the value that its ``lifespan`` yielded; ``None`` before that, or without a ``lifespan``.
        principal: the principal on whose behalf the host runs.
        home: the host's state folder (``SIDEBAND_HOME``), in which each plugin uses its own subfolder.
    """

    @property
    def plugin(self) -> str:
        """The entry-point name."""


class SecretSource(Protocol):
    """A source of secrets, returned by ``sideband_secret_sources()`` of a plugin in the group ``sideband.v1.secrets``.

    When a host opens, before its first effect and record, it opens the sources of each such plugin that is in use: that
    has a table ``[plugins.NAME]`` or a subfolder of the host's state folder.

    Attributes:
        name: a name for messages.
        closed: why some values are unknown to the redactor, or ``None``. While a source is closed, records contain
            ``secrets: closed``.
    """

    name: str
    closed: str | None

    async def open(self, ctx: PluginContext) -> None:
        """Register all values with ``ctx.protect``, without asking the user and without writing anything.

        If that is impossible, set ``closed`` or raise; set ``closed`` to ``None`` once all values are registered.
        """


class OwnContext(PluginContext, Protocol):
    """The context as used by the plugin host, which sets ``state`` to the value that the ``lifespan`` yields."""

    state: Any
