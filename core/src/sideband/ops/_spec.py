"""What an op is: a handler with everything that the broker must know about it before it runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, get_type_hints

from attrs import field, frozen
from pydantic import BaseModel, TypeAdapter

from ..contexts import CredentialResolver, ModelContext
from ._levels import Level
from ._recorded import Reconciled, Recorded, Undo
from ._scope import Scope

_OP_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\.[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")

# A handler names the context that it needs; what the host hands over has everything that any of them may name.
Handler = Callable[[Any, ModelContext], Awaitable[Any]]
Preview = Callable[[Any, ModelContext], Awaitable[str]]
Reconcile = Callable[[Recorded, ModelContext], Awaitable[Reconciled | None]]
PlanUndo = Callable[[Recorded, ModelContext], Awaitable[Undo]]


@frozen
class OpSpec:
    """One op. Made by the decorator ``op``; calling it calls the handler.

    Attributes:
        name: ``family.verb``.
        handler: the coroutine function ``(params, ctx) -> result``.
        params: the pydantic model of the parameters.
        result: the type of the result, as annotated (``None`` for no result).
        requires: the family of the capability that a call must hold, or ``None`` for none.
        scope: from validated parameters to what must be covered by the grant; ``None`` means that any capability of
            the family will do.
        level: how much it can do to the world.
        timeout: seconds, or ``None`` for the host's default. A call's own deadline also holds.
        idempotent: whether doing it twice is the same as once.
        fire_and_forget: whether nobody waits for an answer.
        record: the parameters whose values may enter the ledger; the others are only named there.
        reveals: whether handing a secret value to its caller is the op's purpose; its reply is then not redacted
            (records of it are).
        foreign_names: whether the names in its reply are somebody else's, such as those of a tool's arguments: then a
            value is not removed for being called ``password``. Known secret values are removed all the same.
        preview: what would happen, as text for people, without doing it.
        reconcile: asks the world whether a lost effect happened.
        undo: plans how an effect can be taken back, without doing it.
    """

    name: str
    handler: Handler = field(repr=False)
    params: type[BaseModel] = field(repr=False)
    result: Any = field(repr=False)
    requires: str | None = None
    scope: Callable[[Any], Scope | Iterable[Scope]] | None = field(default=None, repr=False)
    level: Level = Level.MONITORED
    timeout: float | None = None
    idempotent: bool = False
    fire_and_forget: bool = False
    record: tuple[str, ...] = ()
    reveals: bool = False
    foreign_names: bool = False
    preview: Preview | None = field(default=None, repr=False)
    reconcile: Reconcile | None = field(default=None, repr=False)
    undo: PlanUndo | None = field(default=None, repr=False)
    result_adapter: TypeAdapter[Any] = field(init=False, repr=False, eq=False)

    @result_adapter.default
    def _build_result_adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.result)

    def __call__(self, params: Any, ctx: ModelContext) -> Awaitable[Any]:
        """Call the handler."""
        return self.handler(params, ctx)

    @property
    def family(self) -> str:
        """The part of the name before the dot."""
        return self.name.partition(".")[0]

    @property
    def verb(self) -> str:
        """The part of the name after the dot."""
        return self.name.partition(".")[2]

    @property
    def doc(self) -> str:
        """The handler's docstring, without its indentation."""
        return inspect.getdoc(self.handler) or ""

    @property
    def durable(self) -> bool:
        """Whether its intent must be on disk before it runs."""
        return self.level >= Level.CONTROLLED or not self.idempotent


def op(
    name: str,
    *,
    requires: str | None = None,
    scope: Callable[[Any], Scope | Iterable[Scope]] | None = None,
    level: Level = Level.MONITORED,
    timeout: float | None = None,
    idempotent: bool | None = None,
    fire_and_forget: bool = False,
    record: Iterable[str] = (),
    reveals: bool = False,
    foreign_names: bool = False,
    preview: Preview | None = None,
    reconcile: Reconcile | None = None,
    undo: PlanUndo | None = None,
) -> Callable[[Handler], OpSpec]:
    """Declare an op. The arguments are the attributes of ``OpSpec``; the models come from the handler's annotations.

    Args:
        idempotent: by default, ops of level SAFE and MONITORED are.

    Raises:
        TypeError: the name, the handler or its annotations can't be used; the message says which.

    Example:
        >>> class EchoParams(BaseModel):
        ...     text: str
        >>> @op("echo.say", level=Level.SAFE, record=["text"])
        ... async def say(params: EchoParams, ctx: OpContext) -> str:
        ...     '''Say it again.'''
        ...     return params.text
        >>> say.family, say.verb, say.durable
        ('echo', 'say', False)
    """

    def declare(handler: Handler) -> OpSpec:
        if not _OP_NAME.match(name):
            raise TypeError(f"op `{name}`: a name is family.verb, each of lower-case words joined with `_`")
        params = params_model(f"op `{name}`", "handler", handler)
        hints = get_type_hints(handler)
        if "return" not in hints:
            raise TypeError(f"op `{name}`: annotate what it returns (`None` for nothing)")
        unknown = sorted(set(record) - set(params.model_fields))
        if unknown:
            raise TypeError(f"op `{name}`: record names {', '.join(unknown)}, which {params.__name__} does not have")
        return OpSpec(
            name=name,
            handler=handler,
            params=params,
            result=hints["return"],
            requires=requires,
            scope=scope,
            level=level,
            timeout=timeout,
            idempotent=level <= Level.MONITORED if idempotent is None else idempotent,
            fire_and_forget=fire_and_forget,
            record=tuple(record),
            reveals=reveals,
            foreign_names=foreign_names,
            preview=preview,
            reconcile=reconcile,
            undo=undo,
        )

    return declare


def params_model(declared: str, kind: str, function: Callable[..., Any]) -> type[BaseModel]:
    """The pydantic model of the parameters of an async function ``(params, ctx)``.

    Args:
        declared: what is declared with it, for messages.
        kind: what the function is called there.
        function: the function.

    Raises:
        TypeError: it is no such function; the message says why.
    """
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{declared}: its {kind} must be `async def`")
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) != 2:
        raise TypeError(f"{declared}: its {kind} takes (params, ctx), not ({', '.join(parameters)})")
    model = get_type_hints(function).get(parameters[0])
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise TypeError(f"{declared}: annotate `{parameters[0]}` with a pydantic model")
    return model


@frozen
class OpFamily:
    """What a plugin of the group ``sideband.v1.op`` registers through ``sideband_ops()``: all ops of one family.

    Args:
        name: the entry-point name; each op's name begins with it and a dot.
        ops: the ops.
        scope: the fields that capabilities of this family may use; ``None`` if it has none.
        sdk: a standard-library-only module with conveniences for skills, whose public names join the generated ones.
        credentials: what turns handles into credentials, if this family keeps secrets.
        doc: one sentence for lists.

    Example:
        >>> def sideband_ops():
        ...     return OpFamily(name="echo", ops=(say,), doc="Says things again.")
    """

    name: str
    ops: tuple[OpSpec, ...]
    scope: type[Scope] | None = None
    sdk: Path | None = None
    credentials: CredentialResolver | None = None
    doc: str = ""
