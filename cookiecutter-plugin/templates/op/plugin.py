"""The op family: skills and models can set, get and delete texts, which the store of the host keeps."""

from __future__ import annotations

import attrs
from pydantic import BaseModel, ConfigDict, Field
from sideband import Level, OpContext, OpFamily, Scope, op
from sideband.ops import OpFailed, OpParams, Reconciled, Recorded, Undo, UndoStep
from sideband.rendering import quoted

__all__ = ["Config", "sideband_ops"]

FAMILY = "{{ cookiecutter.__entry }}"


class Config(BaseModel):
    """The table `[plugins.{{ cookiecutter.__entry }}]`."""

    model_config = ConfigDict(extra="forbid")

    max_characters: int = Field(default=10_000, ge=1, description="The maximum length of a text.")


@attrs.frozen
class TextScope(Scope, family=FAMILY):
    """The scope of a capability, such as `{{ cookiecutter.__entry }}:key=notes-*,mode=read`.

    Args:
        key: the key of the text.
        mode: `read` or `write`.
    """

    valid_values = {"mode": ("read", "write")}  # noqa: RUF012  the base class declares its type

    key: str | None = None
    mode: str | None = None


class KeyParams(OpParams):
    """The parameters of an op on one text."""

    key: str = Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$", description="The key of the text.")


class SetParams(KeyParams):
    """The parameters of an op that writes."""

    text: str = Field(description="The text.")


class TextError(OpFailed):
    """An op on a text failed."""

    code = f"{FAMILY}.failed"


class TextMissing(TextError, LookupError):
    """No text is stored under the key."""

    code = f"{FAMILY}.missing"
    details = ("key",)

    def __init__(self, key: str) -> None:
        super().__init__(f"no text is stored under {quoted(key)}", hint=f"store it first, with `{FAMILY}.set`")
        self.key = key


class TextTooLong(TextError, ValueError):
    """The text is longer than the configuration allows."""

    code = f"{FAMILY}.long"

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(
            f"the text has {length} characters, and the limit is {limit}",
            hint=f"shorten it, or raise `max_characters` under `[plugins.{FAMILY}]`",
        )


def read_scope(params: KeyParams) -> TextScope:
    """Return the right that reading needs."""
    return TextScope(key=params.key, mode="read")


def write_scope(params: KeyParams) -> TextScope:
    """Return the right that writing needs."""
    return TextScope(key=params.key, mode="write")


async def current(key: str, ctx: OpContext) -> str | None:
    """Return the text that is stored under a key."""
    found = await ctx.store.get(key)
    return None if found is None else str(found.value["text"])


async def preview_set(params: SetParams, ctx: OpContext) -> str:
    """Say what the op would do."""
    change = "store" if await current(params.key, ctx) is None else "replace the text with"
    return f"{change} {len(params.text)} characters under {quoted(params.key)}"


async def preview_delete(params: KeyParams, ctx: OpContext) -> str:  # noqa: ARG001
    """Say what the op would do."""
    return f"delete the text under {quoted(params.key)}"


async def reconcile(recorded: Recorded, ctx: OpContext) -> Reconciled | None:
    """Find out after a crash whether the text was changed."""
    if "after" not in recorded.note:
        return Reconciled(happened=False)
    text = await current(str(recorded.note["key"]), ctx)
    if text == recorded.note["after"]:
        return Reconciled(happened=True)
    return Reconciled(happened=False) if text == recorded.note["before"] else None


async def undo(recorded: Recorded, ctx: OpContext) -> Undo:
    """Plan how to restore the former text, unless it was changed since."""
    key, before = str(recorded.note["key"]), recorded.note["before"]
    if await current(key, ctx) != recorded.note["after"]:
        return Undo(remains=(f"the text under {quoted(key)} was changed since",))
    if before is None:
        return Undo(steps=(UndoStep(f"{FAMILY}.delete", {"key": key}, f"delete the text under {quoted(key)}"),))
    step = UndoStep(f"{FAMILY}.set", {"key": key, "text": before}, f"restore the text under {quoted(key)}")
    return Undo(steps=(step,))


@op(f"{FAMILY}.get", requires=FAMILY, scope=read_scope, level=Level.SAFE, record=["key"], egress=False)
async def get(params: KeyParams, ctx: OpContext) -> str:
    """Return the text that is stored under a key."""
    text = await current(params.key, ctx)
    if text is None:
        raise TextMissing(params.key)
    return text


@op(
    f"{FAMILY}.set",
    requires=FAMILY,
    scope=write_scope,
    level=Level.CONTROLLED,
    record=["key"],
    egress=False,
    preview=preview_set,
    reconcile=reconcile,
    undo=undo,
)
async def set_text(params: SetParams, ctx: OpContext) -> None:
    """Store a text under a key, and replace the former one."""
    if len(params.text) > ctx.config.max_characters:
        raise TextTooLong(len(params.text), ctx.config.max_characters)
    ctx.check_egress(None, {"key": params.key, "text": params.text})  # what is stored is not redacted
    await ctx.note({"key": params.key, "before": await current(params.key, ctx), "after": params.text})
    await ctx.store.put(params.key, {"text": params.text})


@op(
    f"{FAMILY}.delete",
    requires=FAMILY,
    scope=write_scope,
    level=Level.CONTROLLED,
    record=["key"],
    egress=False,
    preview=preview_delete,
    reconcile=reconcile,
    undo=undo,
)
async def delete(params: KeyParams, ctx: OpContext) -> None:
    """Delete the text that is stored under a key."""
    text = await current(params.key, ctx)
    if text is None:
        raise TextMissing(params.key)
    await ctx.note({"key": params.key, "before": text, "after": None})
    await ctx.store.delete(params.key)


def sideband_ops() -> OpFamily:
    """Register the family."""
    return OpFamily(
        name=FAMILY,
        ops=(get, set_text, delete),
        scope=TextScope,
        errors=(TextError, TextMissing, TextTooLong),
        doc="Texts that are remembered under keys.",
    )
