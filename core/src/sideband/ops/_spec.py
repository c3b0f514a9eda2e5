"""Op specs: a handler and the metadata that the broker needs before it runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

from attrs import field, frozen
from pydantic import BaseModel, TypeAdapter

from ..contexts import CredentialResolver, HandlerContext, Origin
from ..errors import SidebandError
from ._declaration import (
    check_computed,
    check_fields,
    check_function,
    check_name,
    check_options,
    check_rules,
    params_model,
    takes_config,
)
from ._from_host import host_parameters, with_host_values
from ._levels import LIMITED, Level, Lower
from ._recorded import Reconciled, Recorded, Undo
from ._scope import Scope

_FAMILY_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
_OP_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\.[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")

# A handler may annotate a narrower context; the host always passes one that implements them all.
Handler = Callable[[Any, HandlerContext], Awaitable[Any]]
Preview = Callable[[Any, HandlerContext], Awaitable[str]]
Reconcile = Callable[[Recorded, HandlerContext], Awaitable[Reconciled | None]]
PlanUndo = Callable[[Recorded, HandlerContext], Awaitable[Undo]]
# They are called with the parameters, or with them and the configuration of the plugin.
RequestScope = Callable[..., Scope | Iterable[Scope]]
LeavesMachine = Callable[..., bool]


@frozen
class OpSpec:
    """The spec of one op, created by the decorator ``op``. Calling it calls the handler.

    Attributes:
        name: ``family.verb``.
        handler: the coroutine function ``(params, ctx) -> result``.
        params: the pydantic model of the parameters.
        result: the annotated type of the result (``None`` if the op returns nothing).
        requires: the family of the capability that a call must hold, or ``None`` if it needs no capability.
        scope: a function from validated parameters to the scope or scopes that the grant must cover; if it is ``None``
            or returns none, any capability of the family is sufficient. If its second parameter is ``config``, it gets
            the configuration of its plugin too. If it raises, the op is denied.
        level: the highest level of the op.
        needs: by field of the scope: the values, one of which each use of the op requests. A capability that allows
            none of them cannot reach the op. Fields that are left out may have any value.
        lower: rules that lower the level for some uses. If several apply, the lowest level counts.
        timeout: the timeout in seconds, or ``None`` for the host's default. The deadline of the call applies too.
        idempotent: whether repeating the op has no further effect.
        fire_and_forget: whether the caller does not wait for the result.
        record: the parameters whose values are written to the ledger; of all others only the names are written.
        reports: the fields of the result whose values observers of the effect get, such as the usage of a model call.
        reveals: whether the purpose of the op is to return a secret value; its result is then not redacted, but its
            records are.
        foreign_names: whether the keys in the result are chosen by others, like the arguments of a tool. Values are
            then not redacted because of a key such as ``password``; known secret values still are.
        egress: whether it may send data to another machine itself, not by an op that it dispatches: true, false, or a
            function like ``scope`` that returns it. If it is ``None``, because it was not declared, or if the function
            raises, guards see true.
        indirect: whether it causes effects through other ops only, as a call of a skill does.
        internal: whether only plugins and undo plans dispatch it, such as a step of an undo. Skills cannot dispatch it,
            and lists and the SDK omit it.
        preview: describes what the op would do, without doing it.
        reconcile: determines whether an effect without a recorded outcome has happened.
        undo: plans how to revert an effect, without doing it.
        kept: the fields of the scope that ``needs`` or ``lower`` name values of. What an op requires while it runs has
            the values that it requested of them.
        levels: the levels of uses, as far as they are known.
        configured: the options that are functions of the parameters and of the configuration.
        from_host: the parameters that the host fills in, each with the name of its value (``FromHost``).
    """

    name: str
    handler: Handler = field(repr=False)
    params: type[BaseModel] = field(repr=False)
    result: Any = field(repr=False)
    requires: str | None = None
    scope: RequestScope | None = field(default=None, repr=False)
    level: Level = Level.MONITORED
    needs: Mapping[str, tuple[str, ...]] = field(default=MappingProxyType({}), eq=False)
    lower: tuple[Lower, ...] = ()
    timeout: float | None = None
    idempotent: bool = False
    fire_and_forget: bool = False
    record: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    reveals: bool = False
    foreign_names: bool = False
    egress: bool | LeavesMachine | None = field(default=None, repr=False)
    indirect: bool = False
    internal: bool = False
    preview: Preview | None = field(default=None, repr=False)
    reconcile: Reconcile | None = field(default=None, repr=False)
    undo: PlanUndo | None = field(default=None, repr=False)
    result_adapter: TypeAdapter[Any] = field(init=False, repr=False, eq=False)
    kept: tuple[str, ...] = field(init=False, repr=False, eq=False)
    levels: dict[Any, Level] = field(factory=dict, init=False, repr=False, eq=False)

    @kept.default
    def _find_kept(self) -> tuple[str, ...]:
        named = {name for rule in self.lower for name, allowed in rule.fields if allowed is not LIMITED}
        return tuple(sorted(named.union(self.needs)))

    configured: frozenset[str] = field(init=False, repr=False, eq=False)

    @configured.default
    def _find_configured(self) -> frozenset[str]:
        functions = {"scope": self.scope, "egress": self.egress}
        return frozenset(name for name, function in functions.items() if takes_config(function))

    from_host: Mapping[str, str] = field(init=False, repr=False, eq=False)

    @from_host.default
    def _find_host_parameters(self) -> Mapping[str, str]:
        return host_parameters(f"op `{self.name}`", self.params)

    @result_adapter.default
    def _build_result_adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.result)

    def __call__(self, params: Any, ctx: HandlerContext) -> Awaitable[Any]:
        """Call the handler."""
        return self.handler(params, ctx)

    def leaves_machine(self, params: Any, config: Any) -> bool:
        """Return whether an effect may send data to another machine.

        Args:
            params: the validated parameters, or ``None`` if they are unknown.
            config: the configuration of the plugin.
        """
        if not callable(self.egress):
            return self.egress is not False
        if params is None:
            return True
        try:
            found = self.egress(params, config) if "egress" in self.configured else self.egress(params)
        except Exception:  # noqa: BLE001  guards deny what may leave, so an unknown answer counts as yes
            return True
        return found is not False

    @property
    def varies(self) -> bool:
        """Whether it depends on the parameters if an effect may send data to another machine."""
        return callable(self.egress)

    def filled(self, params: Mapping[str, Any], origin: Origin) -> Mapping[str, Any]:
        """Return the parameters with the values of the host, whatever the caller passed for them."""
        return with_host_values(self.from_host, params, origin)

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
        """Whether the intent must be on disk before the op runs, and the outcome before anything depends on it.

        This is true for effects that change something and cannot be repeated, unless they are effects of other ops. A
        rule that lowers the level does not change it: what a grant can reach says nothing about what an effect changes.
        """
        return self.level >= Level.CONTROLLED and not self.idempotent and not self.indirect


def op(
    name: str,
    *,
    requires: str | None = None,
    scope: RequestScope | None = None,
    level: Level = Level.MONITORED,
    needs: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    lower: Iterable[Lower] = (),
    timeout: float | None = None,
    idempotent: bool | None = None,
    fire_and_forget: bool = False,
    record: Iterable[str] = (),
    reports: Iterable[str] = (),
    reveals: bool = False,
    foreign_names: bool = False,
    egress: bool | LeavesMachine | None = None,
    internal: bool = False,
    preview: Preview | None = None,
    reconcile: Reconcile | None = None,
    undo: PlanUndo | None = None,
) -> Callable[[Handler], OpSpec]:
    """Declare an op. The arguments are the attributes of ``OpSpec``; the models come from the handler's annotations.

    Args:
        idempotent: defaults to true for the levels ``SAFE`` and ``MONITORED``.

    Raises:
        TypeError: if the name, the handler, its annotations or an argument are invalid.

    Example:
        >>> class EchoParams(BaseModel):
        ...     text: str
        >>> @op("echo.say", level=Level.SAFE, record=["text"])
        ... async def say(params: EchoParams, ctx: OpContext) -> str:
        ...     '''Return the text.'''
        ...     return params.text
        >>> say.family, say.verb, say.durable
        ('echo', 'say', False)
    """
    check_name("op", name)

    def declare(handler: Handler) -> OpSpec:
        if not _OP_NAME.match(name):
            raise TypeError(f"op `{name}`: the name must be family.verb, each of lower-case words joined by `_`")
        declared = f"op `{name}`"
        params = params_model(declared, "handler", handler)
        check_options(declared, level, timeout)
        rules = check_rules(declared, needs, lower)
        if scope is not None:
            check_computed(declared, "scope", scope)
        if not isinstance(egress, bool | None):
            check_computed(declared, "egress", egress)
        check_function(declared, "preview", preview, "params", "ctx")
        check_function(declared, "reconcile", reconcile, "recorded", "ctx")
        check_function(declared, "undo", undo, "recorded", "ctx")
        if requires is not None and not (isinstance(requires, str) and _FAMILY_NAME.match(requires)):
            rule = "the family of a capability, such as `clock`; `scope` returns its fields"
            raise TypeError(f"{declared}: `requires` must be {rule}, got {requires!r}")
        if scope is not None and requires is None:
            raise TypeError(f"{declared}: `scope` has no effect without `requires`, the family of the capability")
        hints = get_type_hints(handler)
        if "return" not in hints:
            raise TypeError(f"{declared}: the handler has no return annotation (use `None` if it returns nothing)")
        shown = check_fields(declared, "record", record, params)
        reported = check_fields(declared, "reports", reports, hints["return"])
        return OpSpec(
            name=name,
            handler=handler,
            params=params,
            result=hints["return"],
            requires=requires,
            scope=scope,
            level=level,
            needs=MappingProxyType(dict(needs)),
            lower=rules,
            timeout=timeout,
            idempotent=level <= Level.MONITORED if idempotent is None else idempotent,
            fire_and_forget=fire_and_forget,
            record=shown,
            reports=reported,
            reveals=reveals,
            foreign_names=foreign_names,
            egress=egress,
            internal=internal,
            preview=preview,
            reconcile=reconcile,
            undo=undo,
        )

    return declare


@frozen
class OpFamily:
    """All ops of one family. ``sideband_ops()`` of a plugin in the group ``sideband.v1.op`` returns it.

    Args:
        name: the entry-point name; each op's name begins with it and a dot.
        ops: the ops.
        scope: the fields that capabilities of this family may use; ``None`` if there are no fields.
        sdk: a standard-library-only module with helpers for skills; its public names are added to the generated ones.
        credentials: resolves handles to credentials, if this family stores secrets.
        doc: a one-sentence summary for lists.
        uses: the capabilities that the plugin needs for effects of its own. The user or a policy gives them to
            ``plugin:NAME``; handlers use them with ``ctx.dispatch(…, rights="own")``.
        errors: the errors that callers may want to distinguish, each with a ``code`` of its own. Skills catch them by
            class: ``except geo.AddressNotFound``.

    Example:
        >>> def sideband_ops():
        ...     return OpFamily(name="echo", ops=(say,), doc="Returns its input.")
    """

    name: str
    ops: tuple[OpSpec, ...]
    scope: type[Scope] | None = None
    sdk: Path | None = None
    credentials: CredentialResolver | None = None
    doc: str = ""
    uses: Sequence[str] = ()
    errors: Sequence[type[SidebandError]] = ()

    @property
    def public_ops(self) -> tuple[OpSpec, ...]:
        """The ops that are not internal."""
        return tuple(spec for spec in self.ops if not spec.internal)
