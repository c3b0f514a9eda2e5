"""The conformance class of op families."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError
from sideband import Host, OpFamily, SidebandError
from sideband.ops import OpError, OpFailed, OpParamsInvalid, OpSpec, OpTimeout

from .._credentials import Credentials
from ._base import _SECRET_NAME, CANARY, Conformance, listed
from ._examples import Example
from ._failing import fail
from ._op_parameters import check_params, check_repr, check_unknown
from ._op_runs import Killed, kill_at, run_example, watched_family
from ._schemas import check_instance, check_schema
from ._stepping import Steps, chosen
from ._traces import CollectingHandler, file_names, state_files, unexplained
from ._values import wrong_params

_NO_EXAMPLES = "no examples: set `examples` in a test class of your own, to check what the ops do"

_DEADLINE, _LATE = 0.02, 0.03
_MORE_STEPS = 8
"""How many times a handler may wait after its deadline: the loop is late by one, and a thread cannot be interrupted."""


class OpFamilyConformance(Conformance):
    """The tests of an op family: a plugin in the group ``sideband.v1.op``.

    Attributes:
        examples: uses of its ops, at least one of each; ``None`` to check only what needs no example.
        without_examples: the ops without an example, each with the reason.
        unknown_after_kill: the ops whose outcome cannot be known after a kill, each with the reason.
        remains_after_undo: the ops of which a part cannot be undone, each with the reason.

    Example:
        >>> class TestClock(OpFamilyConformance):
        ...     plugin = "op.clock"
        ...     examples = [
        ...         Example("clock.now", {"zone": "UTC"}),
        ...         Example("clock.now", {"zone": "X"}, error="clock.zone"),
        ...     ]
    """

    kind = "op"
    examples: ClassVar[Sequence[Example] | None] = None
    without_examples: ClassVar[Mapping[str, str]] = MappingProxyType({})
    unknown_after_kill: ClassVar[Mapping[str, str]] = MappingProxyType({})
    remains_after_undo: ClassVar[Mapping[str, str]] = MappingProxyType({})
    _loaded_family: ClassVar[OpFamily | None] = None

    def test_each_op_has_an_example_and_a_description(self) -> None:
        """Check that what nothing uses cannot be checked."""
        family = self._family()
        undocumented = [spec.name for spec in family.ops if not spec.doc.strip()]
        if undocumented:
            fail(
                self.label,
                expected="each op has a docstring, which skills and `sideband ops show` show",
                happened=f"none: {listed(undocumented)}",
                remedy="write one",
            )
        if self.examples is None:
            return
        known = {spec.name for spec in family.ops}
        unknown = {one.name for one in self.examples} | {*self.without_examples} - known
        if extra := sorted(unknown - known):
            fail(
                self.label, expected="examples of its ops", happened=f"unknown: {listed(extra)}", remedy="correct them"
            )
        used = {one.name for one in self.examples} | {name for name, why in self.without_examples.items() if why}
        missing = [spec.name for spec in family.ops if not spec.internal and spec.name not in used]
        if missing:
            fail(
                self.label,
                expected="each op that is not internal has an example",
                happened=f"none: {listed(missing)}",
                remedy="add an `Example`, or the op and the reason to `without_examples`",
            )

    def test_schemas_are_valid(self) -> None:
        """Check that parameters and results have a JSON Schema, from which skills get their types."""
        for spec in self._family().ops:
            check_schema(self.label, f"the parameters of `{spec.name}`", spec.params.model_json_schema)
            check_schema(self.label, f"the result of `{spec.name}`", spec.result_adapter.json_schema)

    def test_examples_round_trip(self) -> None:
        """Check that parameters and results keep their value as JSON, and match their schemas."""

        async def check() -> None:
            async with self.open_host() as host:
                for example in self._given():
                    params = await self._arrange(host, example)
                    spec = self._spec(example)
                    check_params(self.label, spec, params)
                    try:
                        result, _ = await run_example(host, example, params)
                    except OpError as error:
                        if not example.error:
                            self._unexpected(example, error)
                        continue
                    if example.error:
                        self._unexpected(example, f"the result {result!r}")
                    if example.result is not Ellipsis and result != self.fill(example.result):
                        self._unexpected(example, f"the result {result!r}", f"the result {example.result!r}")
                    schema = spec.result_adapter.json_schema(mode="serialization")
                    check_instance(self.label, f"the result of `{spec.name}`", result, schema)

        self._with_examples(check)

    def test_wrong_parameters_are_refused(self) -> None:
        """Check that wrong and unknown parameters are refused before anything happens, with the code ``op.params``."""
        for spec in self._family().ops:
            valid: dict[str, Any] = next(
                (self.fill(dict(one.params)) for one in self.examples or () if one.name == spec.name), {}
            )
            check_unknown(self.label, spec, valid)
            for params in wrong_params(spec.params.model_fields, valid):
                try:
                    spec.params.model_validate(params)
                except ValidationError:
                    continue
                except Exception as error:  # noqa: BLE001  that is what is checked
                    fail(
                        self.label,
                        expected=f"wrong parameters of `{spec.name}` are refused by its model: {str(params)[:200]}",
                        happened=f"a validator raised {type(error).__name__}: {error}",
                        remedy="raise `ValueError` in validators, whatever the value is",
                    )

        async def refused() -> None:
            async with self.open_host() as host:
                for spec in self._family().ops:
                    if spec.internal:
                        continue
                    try:
                        await host.op(spec.name, {"sideband_unknown": 1})
                    except OpParamsInvalid:
                        continue
                    except SidebandError as error:
                        fail(
                            self.label,
                            expected=f"`{spec.name}` with an unknown parameter fails with `op.params`",
                            happened=f"{error.code}: {error.message}",
                            remedy="derive its parameters from `sideband.ops.OpParams`",
                        )

        self.run(refused)

    def test_failures_are_typed(self) -> None:
        """Check that a handler that fails raises an error with a code of its own, and says what to do."""

        async def check() -> None:
            async with self.open_host() as host:
                for example in self._given():
                    if not example.error:
                        continue
                    try:
                        await run_example(host, example, await self._arrange(host, example))
                    except OpError as error:
                        self._check_error(example, error)

        self._with_examples(check)

    def test_cancellation_leaves_nothing_behind(self) -> None:
        """Check that an op that is cancelled wherever it waits leaves no task, thread, process or file."""

        async def check() -> None:
            for example in self._given():
                await self._cancel_everywhere(example)

        for backend in self.backends:
            self._with_examples(check, backend=backend)

    def test_deadline_ends_an_op(self) -> None:
        """Check that an op that exceeds its deadline ends, with the code ``op.timeout``."""

        async def check() -> None:
            for example in self._given():
                steps = Steps()
                async with self._watched_host(example, steps) as host:
                    await self._attempt(host, example, steps)
                    if not (end := steps.count):
                        continue  # it never waits
                    params = await self._arrange(host, example)
                    steps.count = steps.thrown = 0
                    at = (end + 1) // 2
                    steps.on_suspend = _until(time.monotonic() + _LATE, at)
                    try:
                        result: Any = await host.op(example.name, params, deadline=_DEADLINE)
                    except OpTimeout:
                        continue
                    except OpError as error:
                        result = f"{error.code}: {error.message}"
                    if steps.thrown or steps.count > at + _MORE_STEPS:
                        self._late(example, result)

        self._with_examples(check)

    def test_secrets_stay_hidden(self, capfd: pytest.CaptureFixture[str]) -> None:
        """Check that a secret in parameters or a credential appears in no log, output, record or representation."""
        for spec in self._family().ops:
            for name in spec.params.model_fields:
                if _SECRET_NAME.search(name):
                    check_repr(self.label, spec, name)
        records: list[str] = []
        handler = CollectingHandler(records)
        root = logging.getLogger()
        level = root.level
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            home = self.new_folder("home")
            self._with_examples(lambda: self._plant(home))
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
        output = "".join(capfd.readouterr())
        places = {"a log": "\n".join(records), "its output": output, **state_files(home)}
        for place, text in places.items():
            if CANARY in text:
                fail(
                    self.label,
                    expected="a known secret among its parameters is not written anywhere",
                    happened=f"it is in {place}",
                    remedy="do not log parameters and results; store them only through `ctx.store` and `ctx.note`",
                )

    def test_undo_reverts_what_was_done(self) -> None:
        """Check that each op with ``undo`` restores what its example changed."""

        async def check() -> None:
            async with self.open_host() as host:
                for example in self._given():
                    if self._spec(example).undo is None or example.error:
                        continue
                    params = await self._arrange(host, example)
                    before = self.observe(self.world, host.home)
                    _, effect = await run_example(host, example, params)
                    plan = await host.plan_undo(effect)
                    failed = [str(one.error) for one in await host.undo(plan) if one.error is not None]
                    reason = self.remains_after_undo.get(example.name)
                    if not reason and (failed or self.observe(self.world, host.home) != before):
                        fail(
                            self.label,
                            expected=f"undoing `{example.name}` restores what its example changed",
                            happened=listed([*failed, *plan.remains])
                            if failed or plan.remains
                            else "something differs",
                            remedy="correct `undo`, or add the op and the reason to `remains_after_undo`",
                        )

        self._with_examples(check)

    def test_reconcile_tells_after_a_kill_at_each_step(self) -> None:
        """Check that after a kill at each step of an op with ``reconcile``, the next host knows whether it happened."""
        if not any(self._spec(one).reconcile for one in self._given(skipping=False)):
            pytest.skip("no example of an op with `reconcile`")
        for example in self._given():
            if self._spec(example).reconcile is not None and not example.error:
                self._kill_everywhere(example)

    # ------------------------------------------------------------------------------------------------------------------

    async def prepare_host(self, host: Host, example: Example) -> None:
        """Do by other ops what an example needs. It is called before each run, after ``prepare``."""

    async def exercise(self, host: Host) -> None:
        """Run all examples."""
        for example in self.examples or ():
            await self._attempt(host, example)

    def _family(self) -> OpFamily:
        found = vars(type(self)).get("_loaded_family")
        if found is None:

            async def load() -> OpFamily:
                async with self.open_host() as host:
                    loaded = await host.plugins.load("op", self.subject.name)
                    family: OpFamily = loaded.contribution
                    return family

            found = self.run(load)
            type(self)._loaded_family = found  # noqa: SLF001  its own
        family: OpFamily = found
        return family

    def _given(self, *, skipping: bool = True) -> Sequence[Example]:
        if self.examples is None and skipping:
            pytest.skip(_NO_EXAMPLES)
        return self.examples or ()

    def _with_examples(self, main: Callable[[], Awaitable[None]], *, backend: str | None = None) -> None:
        __tracebackhide__ = True
        self._given()
        self._family()
        self.run(main, backend=backend)

    def _spec(self, example: Example) -> OpSpec:
        found = next((spec for spec in self._family().ops if spec.name == example.name), None)
        if found is None:
            fail(
                self.label,
                expected=f"an op `{example.name}`",
                happened="it does not exist",
                remedy="correct the example",
            )
        return found

    async def _arrange(self, host: Host, example: Example) -> dict[str, Any]:
        """Prepare what an example needs, and return its parameters."""
        self.reset_world()
        await self.prepare_host(host, example)
        filled: dict[str, Any] = self.fill(dict(example.params))
        return filled

    async def _attempt(self, host: Host, example: Example, steps: Steps | None = None) -> None:
        """Run an example. An error that it must fail with is not a failure. Steps are counted from its start."""
        params = await self._arrange(host, example)
        if steps is not None:
            steps.count = 0
        try:
            await run_example(host, example, params)
        except OpError as error:
            if error.code != example.error:
                self._unexpected(example, error)

    def _unexpected(self, example: Example, happened: object, expected: str = "") -> None:
        shown = f"{happened.code}: {happened.message}" if isinstance(happened, SidebandError) else str(happened)
        wanted = expected or (f"the error `{example.error}`" if example.error else "a result")
        fail(
            self.label,
            expected=f"the example of `{example.name}` has {wanted}",
            happened=shown,
            remedy="correct the example, or the op",
        )

    def _check_error(self, example: Example, error: OpError) -> None:
        if error.code == OpFailed.code:
            fail(
                self.label,
                expected=f"the example of `{example.name}` fails with the code `{example.error}`, which is its own",
                happened=f"{error.code}: {error.message}",
                remedy=f'raise a subclass of `OpFailed` with a code such as `"{self.subject.name}.missing"`',
            )
        if error.code != example.error:
            self._unexpected(example, error)
        if not error.hint:
            fail(
                self.label,
                expected=f"the error `{error.code}` of `{example.name}` has a hint, which says what to do",
                happened=f"it lacks one: {error.message}",
                remedy="pass `hint=` in the class of the error",
            )

    def _watched_host(self, example: Example, steps: Steps, home: Path | None = None) -> Any:
        return self.open_host(plugin=watched_family(self.subject, example.name, steps), home=home)

    async def _cancel_everywhere(self, example: Example) -> None:
        steps = Steps()
        async with self._watched_host(example, steps) as host:
            await self._arrange(host, example)
            names = {file_names(self.world)}
            await self._attempt(host, example)
            names.add(file_names(self.world))
            params: dict[str, Any] = {}

            async def arrange() -> None:
                params.clear()
                params.update(await self._arrange(host, example))

            async def act() -> None:
                await host.op(example.name, params)

            await self.cancel_everywhere(
                f"`{example.name}`",
                steps,
                act,
                arrange=arrange,
                left=lambda: [f"the file {name}" for name in unexplained(file_names(self.world), names)],
            )
            await self._attempt(host, example)  # it still works

    def _late(self, example: Example, result: object) -> None:
        fail(
            self.label,
            expected=f"`{example.name}` ends with `op.timeout` where it waits at its deadline",
            happened=f"it went on and ended with {result!r}",
            remedy="do not catch cancellation, and do not shield more than the release of what was opened",
        )

    async def _plant(self, home: Path) -> None:
        credentials = Credentials()
        credentials.add("canary", CANARY)
        others = {one.partition(".")[2] if isinstance(one, str) else one.name for one in self.also}
        planted = [] if {"secrets"} & {self.subject.name, *others} else [credentials.plugin]
        plugins = [*self._with_others(self.subject), *planted]
        async with self._hosts(*plugins, **self._host_options(home)) as host:
            host.redactor.protect(CANARY, "canary")
            for example in self._given():
                for params in self._planted(example, await self._arrange(host, example)):
                    await self._arrange(host, example)
                    try:
                        result = await host.op(example.name, params)
                    except OpError as error:
                        result = error.as_dict()
                    if CANARY in repr(result) and not self._spec(example).reveals:
                        fail(
                            self.label,
                            expected=f"the result of `{example.name}` does not contain a known secret",
                            happened=f"it contains it: {result!r}",
                            remedy="return plain data, which the host can redact",
                        )
            loaded = host.plugins.active("op", self.subject.name)
            shown = repr((loaded, loaded.state, loaded.context)) if loaded is not None else ""
            if CANARY in shown:
                fail(
                    self.label,
                    expected="`repr` of its state shows no secret",
                    happened="it shows the value of a parameter or credential",
                    remedy="exclude it with `field(repr=False)`",
                )

    def _planted(self, example: Example, params: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Yield the parameters of an example, in one text of which the secret stands, and with a credential."""
        for name, value in params.items():
            if isinstance(value, str) and not value.startswith(("/", "http:", "https:")):
                yield {**params, name: f"{value}{CANARY}"}
        if "auth" in self._spec(example).params.model_fields:
            yield {**params, "auth": "canary"}

    def _kill_everywhere(self, example: Example) -> None:
        home = self.new_folder("home")
        steps = Steps()
        before = self.run(lambda: self._run_watched(example, steps, home))
        after = self.observe(self.world, home)
        # If nothing changed, there is nothing to know: one kill shows that the next host opens.
        everywhere = [*chosen(steps.count, max(2, self.max_steps - 2), first=0), -1]
        for step in everywhere if before != after else everywhere[:1]:
            home = self.new_folder("home")
            killed = kill_at(step, home, lambda steps: self._run_killed(example, steps, home))  # noqa: B023
            self._check_recovered(example, killed, before, after)

    def _run_killed(self, example: Example, steps: Steps, home: Path) -> None:
        self.run(lambda: self._run_watched(example, steps, home))

    async def _run_watched(self, example: Example, steps: Steps, home: Path) -> Any:
        """Run an example, watched, and return what the world was like before it."""
        async with self._watched_host(example, steps, home) as host:
            on_resume, steps.on_resume = steps.on_resume, None
            params = await self._arrange(host, example)
            before = self.observe(self.world, home)
            steps.on_resume, steps.count = on_resume, 0
            await host.op(example.name, params, key="conformance")
        return before

    def _check_recovered(self, example: Example, killed: Killed, before: Any, after: Any) -> None:
        now = self.observe(self.world, killed.home)

        async def recovered() -> list[str]:
            async with self.open_host(home=killed.home) as host:
                return [one.status for one in host.recovered if one.op == example.name]

        found = self.run(recovered)
        if before == after:
            return
        truth = "done" if now == after else "failed" if now == before else "unknown"
        if found == [truth] or (not found and (truth == "failed" or killed.ended)):
            return
        if found == ["unknown"] and self.unknown_after_kill.get(example.name):
            return
        where = "at its start" if killed.step == 0 else f"after suspension {killed.step}"
        fail(
            self.label,
            expected=f"after a kill of `{example.name}` {where}, `reconcile` answers `{truth}`, which is true",
            happened=f"it answered {listed(found)}",
            remedy="note before the change what tells afterwards whether it happened, and compare in `reconcile`",
        )


def _until(moment: float, at: int) -> Callable[[int], None]:
    """Return a function that blocks the event loop until a moment, before the n-th suspension."""
    return lambda found: time.sleep(max(0.0, moment - time.monotonic())) if found == at else None
