"""The context of plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from attrs import frozen

from ._op import EffectContext


@frozen
class SkillUses:
    """Capabilities that a plugin uses for one version of a skill: they are given to this version, not to the plugin.

    A question about them names the skill, and the answer is stored by its digest. So a changed skill has no rights of
    its older version, and is asked about again. All of them are asked for at once, before the effect: it happens with
    all of them, or not at all.

    Attributes:
        name: the name of the skill, for the question.
        key: its identifier form, by which a configuration gives rights.
        digest: the digest of its files, as of its snapshot.
        source: where the skill is from, for the question.
        capabilities: the capabilities.
        of_project: whether it is from a project, which could have the name of a skill to which the user gave rights.
    """

    name: str
    key: str
    digest: str
    source: str
    capabilities: tuple[str, ...]
    of_project: bool = False

    def __iter__(self) -> Iterator[str]:
        return iter(self.capabilities)


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

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
        uses: Iterable[str] | None = None,
    ) -> Any:
        """Run an op through the broker.

        Args:
            op: the name of the op.
            params: its parameters.
            capabilities: narrows the rights to these capabilities.
            key: an idempotency key: an effect with this key happens at most once.
            uses: limits the rights to these capabilities, as far as the user or a policy gave them to the plugin
                (``[grants] "plugin:NAME"``). The user may be asked for those that are missing. A tool passes all that
                it needs for its work here, so that a model can reach nothing else with it, and one question covers it.
                Those of families that are not installed are ignored.
                With ``SkillUses``, the rights are those of a version of a skill instead.

        Example:
            >>> async def read(ctx: PluginContext) -> str:
            ...     uses = ["files:path=/srv/notes/*,mode=read|write"]
            ...     return (await ctx.dispatch("files.read", {"path": "/srv/notes/a.txt"}, uses=uses))["content"]
        """

    async def is_granted(self, uses: SkillUses) -> bool:
        """Return whether these capabilities are given to this version of a skill now. The user is not asked.

        Args:
            uses: the version of the skill, and the capabilities.
        """


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
