"""Writes ``docs/reference`` from the code, so that it can't say anything else: ``python docs/generate.py``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from typing import Any

from sideband.hooks import HOOK_SPECS
from sideband.ops import OpSpec
from sideband.settings import Policy, Settings
from sideband.workers import WorkerLimits, WorkerPool
from sideband.workers._dispatching import _MAX_HELD, _MAX_IN_FLIGHT, _MAX_UNREAD
from sideband.workers._logs import MAX_LINES, MAX_TEXT
from sideband.workers._pending import MAX_DISPATCHES, MAX_IN_FLIGHT
from sideband.workers._snapshots import _MAXIMUM_BYTES
from sideband.workers._watchdog import _IDLE_SECONDS
from sideband.workers._worker import _WATCH_SECONDS
from sideband.workers.runtime import MAX_FRAME, MAX_NESTING, MAX_VALUES

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- written by docs/generate.py from the code; change it there -->\n\n"


def pages() -> dict[str, str]:
    """Each page by its file name."""
    return {
        "hooks.md": hooks_page(),
        "limits.md": limits_page(),
        "ops.md": ops_page(),
        "settings.md": settings_page(),
    }


def hooks_page() -> str:
    """All hooks: the table, then each with its example."""
    lines = [
        "# Hooks",
        "",
        "Implement one with `@hookimpl async def NAME(event, ctx)`; `ctx` may be left out, and plain functions are",
        "accepted. All implementations of a hook together have its deadline.",
        "",
        "| hook | kind | may return | if a plugin fails | deadline |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| [`{spec.name}`](#{spec.name}) | {spec.kind.value} | {spec.returns} "
        f"| {spec.on_failure.value} | {spec.deadline:g} s |"
        for spec in HOOK_SPECS.values()
    ]
    for spec in HOOK_SPECS.values():
        lines += ["", f"## {spec.name}", "", f"Event: `{spec.event.__name__}`", "", "```text", spec.doc.strip(), "```"]
    return NOTE + "\n".join(lines) + "\n"


def ops_page() -> str:
    """All ops of the default distribution, by family."""
    lines = ["# Ops", "", "What skills can ask the host for. `sideband ops show NAME` prints the same and the schemas."]
    for family in sorted(_families(), key=lambda family: family.name):
        lines += ["", f"## {family.name}", "", family.doc]
        if family.scope is not None:
            fields = ", ".join(f"`{name}`" for name in family.scope.field_names())
            lines += ["", f"A capability of `{family.name}` may limit: {fields}."]
        for spec in family.ops:
            lines += ["", *_op(spec)]
    return NOTE + "\n".join(lines) + "\n"


def _families() -> Iterator[Any]:
    for entry_point in entry_points(group="sideband.v1.op"):
        yield entry_point.load().sideband_ops()


def _op(spec: OpSpec) -> Iterator[str]:
    traits = [spec.level.name.lower(), "idempotent" if spec.idempotent else "not idempotent"]
    traits += ["on disk before it runs"] if spec.durable else []
    traits += ["nobody waits for an answer"] if spec.fire_and_forget else []
    yield f"### {spec.name}"
    yield ""
    yield spec.doc.partition("\n\n")[0].replace("\n", " ")
    yield ""
    yield f"Level and traits: {', '.join(traits)}. Needs: {f'`{spec.requires}`' if spec.requires else 'nothing'}."
    schema = spec.params.model_json_schema()
    if schema.get("properties"):
        yield ""
        yield "| parameter | type | default | meaning |"
        yield "|---|---|---|---|"
        required = set(schema.get("required", ()))
        for name, field in schema["properties"].items():
            default = "required" if name in required else f"`{field.get('default')!r}`"
            meaning = str(field.get("description", "")).replace("\n", " ").replace("|", "\\|")
            yield f"| `{name}` | {_type(field)} | {default} | {meaning} |"


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(one) for one in field["anyOf"]))
    return str(field.get("type") or field.get("$ref", "any").rpartition("/")[2])


def settings_page() -> str:
    """All keys of ``sideband.toml``."""
    lines = [
        "# Settings",
        "",
        "`sideband.toml` in `SIDEBAND_HOME` is the user's; one in a project counts once it is trusted (`--trust`).",
        "A variable `SIDEBAND_POLICY__TIMEOUT=5` overrides both, and `--set policy.timeout=5` all. `sideband doctor`",
        "shows what holds and where it comes from.",
        "",
        "| section | what it holds |",
        "|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        lines.append(f"| `[{name}]` | {field.description or 'see below'} |")
    lines += ["", "## policy", "", "| key | default | meaning |", "|---|---|---|"]
    defaults = Policy().model_dump()
    for name, field in Policy.model_fields.items():
        lines.append(f"| `{name}` | `{defaults[name]!r}` | {field.description} |")
    return NOTE + "\n".join(lines) + "\n"


def limits_page() -> str:
    """What a skill can use up, at most."""
    limits, policy = WorkerLimits(), Policy()
    pool = {name: parameter.default for name, parameter in signature(WorkerPool).parameters.items()}
    lines = [
        "# Limits",
        "",
        "What a skill can use up at most, as it is if nobody sets anything else. The [policy](settings.md) may be",
        "stricter or more generous. A skill may ask for other limits in its metadata: `sideband.memory` up to",
        f"{_bytes(policy.maximum_memory)}, `sideband.timeout` up to {policy.maximum_timeout:g} s.",
        "",
        "## A worker",
        "",
        f"The host looks every {_WATCH_SECONDS:g} s, and ends a worker that is over; its calls fail with the",
        "code. The kernel holds most of them by itself, earlier.",
        "",
        "| what | limit | code |",
        "|---|---|---|",
        f"| resident memory | {_bytes(policy.memory)} | `worker.memory` |",
        f"| address space, which the kernel refuses to exceed | {_bytes(limits.address_space)} | none: `MemoryError` |",
        f"| threads | {limits.threads} | `worker.threads` |",
        f"| open descriptors | {limits.files} | `worker.files` |",
        f"| written to its own output, past the runtime | {_bytes(limits.output)} | `worker.output` |",
        f"| processor time while no call is in it | {_IDLE_SECONDS:g} s | `worker.processor` |",
        f"| time to be ready after its start | {pool['start_timeout']:g} s | `worker.start` |",
        f"| time until it has read one message | {pool['write_timeout']:g} s | `worker.exited` |",
        f"| time that one of its messages takes | {pool['line_timeout']:g} s | `worker.protocol` |",
        f"| size of a message | {_bytes(MAX_FRAME)} | `worker.protocol` |",
        f"| nesting of a message | {MAX_NESTING} | `worker.protocol` |",
        f"| values in a message | {MAX_VALUES:,} | `worker.protocol` |",
        "",
        "## A call",
        "",
        "| what | limit | what happens then |",
        "|---|---|---|",
        f"| time, if neither skill nor tool nor caller names one | {policy.timeout:g} s | `call.timeout` |",
        f"| time to end after it was cancelled | {pool['cancel_grace']:g} s | its worker is replaced |",
        f"| ops in flight | {MAX_IN_FLIGHT} | `limit.in_flight` |",
        f"| ops in all | {MAX_DISPATCHES:,} | `limit.dispatches` |",
        f"| lines of log that are kept | {MAX_LINES:,} | the others are counted |",
        f"| text of log that is kept | {_bytes(MAX_TEXT)} | the same |",
        "",
        "## The host",
        "",
        "| what | limit | what happens then |",
        "|---|---|---|",
        f"| workers at once | {policy.workers} | calls wait; trust domains take turns |",
        f"| time that an idle worker is kept | {policy.idle_seconds:g} s | it is ended |",
        f"| ops in flight of one worker | {_MAX_IN_FLIGHT} | it is not read for now |",
        f"| size of the ops in flight of one worker | {_bytes(_MAX_HELD)} | the same |",
        f"| size of the answers that it has not read | {_bytes(_MAX_UNREAD)} | `limit.unread_bytes` |",
        f"| size of a skill | {_bytes(_MAXIMUM_BYTES)} | it is not loaded |",
    ]
    return NOTE + "\n".join(lines) + "\n"


def _bytes(count: int) -> str:
    return f"{count >> 20:,} MiB"


def main() -> int:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
