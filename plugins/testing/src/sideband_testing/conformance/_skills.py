"""The conformance class of skills."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from sideband import Host, Plugin, SidebandError
from sideband.loading import SkillSpec

from ._base import CANARY, Conformance, tree_of
from ._examples import Example
from ._failing import fail
from ._schemas import check_instance, check_schema
from ._subject import entry_points, resolve

_MANIFEST = "SKILL.md"


class SkillConformance(Conformance):
    """The tests of a skill, in a folder or installed. Its tools run in workers of a host that has its loader.

    Attributes:
        skill: the folder of the skill; a relative one is relative to the test module. Without it, ``plugin`` is the
            installed skill, as ``skill.name``.
        grants: the capabilities that its calls get; by default those that it requests.
        examples: uses of its tools; ``None`` to check only what needs no example.

    Example:
        >>> class TestGreeting(SkillConformance):
        ...     skill = "../greeting"
        ...     examples = [Example("greeting.hello", {"name": "Ada"}, result="Hello, Ada!")]
    """

    kind = "skill"
    also: ClassVar[Sequence[Plugin | str]] = ("loader.skills",)
    skill: ClassVar[str | Path] = ""
    grants: ClassVar[Sequence[str] | None] = None
    examples: ClassVar[Sequence[Example] | None] = None

    def test_import_has_no_side_effects(self) -> None:
        """Check that loading the skill runs none of its code, and changes nothing in its folder."""
        before = tree_of(self.folder)
        self._spec()
        if tree_of(self.folder) != before:
            self._wrong("loading it changes nothing in its folder", "a file changed", "report it: the loader wrote it")

    def test_import_is_cheap(self, record_property: Any) -> None:
        """Check that its files are few and small enough to be copied for each version."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        record_property("files", len(files))
        size = sum(path.stat().st_size for path in files)
        if size > _MAX_BYTES:
            self._wrong(
                f"its files have at most {_MAX_BYTES:,} bytes, since each version is copied",
                f"they have {size:,}",
                "remove what the skill does not need at run time",
            )

    def test_metadata_and_registration_agree(self) -> None:
        """Check that a host loads it without a problem, under the name of its folder."""
        spec = self._spec()
        for problem in spec.problems:
            self._wrong(
                "it is loaded without a problem", f"{problem.code}: {problem.reason}", problem.hint or "mend it"
            )
        if not spec.description.strip():
            self._wrong("it has a description", "it is empty", f"write it in {_MANIFEST}")

    def test_configuration_hides_secrets(self) -> None:
        """Check that its files contain no value of a secret, as far as it can be recognized."""
        for path in self.folder.rglob("*"):
            if path.is_file() and (found := _secret_in(path)):
                self._wrong("it contains no secret", f"{path.name} contains {found}", "use a handle: `auth=NAME`")

    def test_schemas_are_valid(self) -> None:
        """Check that each tool has a description and a JSON Schema."""
        for tool in self._spec().tools:
            check_schema(self.label, f"`parameters` of `{tool.full_name}`", tool.parameters)
            if tool.returns is not None:
                check_schema(self.label, f"`returns` of `{tool.full_name}`", tool.returns)
            if not tool.description.strip():
                self._wrong(
                    f"`{tool.full_name}` has a docstring", "it is missing", "say what it does, and when to use it"
                )

    def test_examples_run(self) -> None:
        """Check that each example has its result or its error, with the grants of the skill, in a worker."""
        tools = {tool.full_name: tool for tool in self._spec().tools}

        async def check() -> None:
            async with self.open_host() as host:
                for example in self._given():
                    self.reset_world()
                    arguments = self.fill(dict(example.params))
                    try:
                        result = await host.call(example.name, **arguments)
                    except SidebandError as error:
                        if not example.error or error.code != example.error:
                            wanted = f"the error `{example.error}`" if example.error else "a result"
                            self._wrong(f"`{example.name}` has {wanted}", f"{error.code}: {error.message}", error.hint)
                        continue
                    if example.error or (example.result is not Ellipsis and result != self.fill(example.result)):
                        wanted = f"the error `{example.error}`" if example.error else repr(example.result)
                        self._wrong(f"`{example.name}` has {wanted}", repr(result), "correct the tool, or the example")
                    if tools[example.name].returns is not None:
                        returns = tools[example.name].returns or {}
                        check_instance(self.label, f"the result of `{example.name}`", result, returns)

        self._given()
        self.run(check)

    def test_runs_on_each_declared_event_loop(self) -> None:
        """Check that it runs in a worker, whatever the event loop of the host is."""
        pytest.skip("a skill runs in a worker, whose event loop is its own")

    @property
    def folder(self) -> Path:
        """The folder of the skill."""
        if self.skill:
            path = Path(self.skill)
            return path if path.is_absolute() else (Path(str(self._request.path)).parent / path).resolve()
        label = str(self.plugin)
        from importlib.util import find_spec  # noqa: PLC0415  only for installed skills

        found = next((one for one in entry_points("skill") if f"skill.{one.name}" == label), None)
        located = find_spec(found.value) if found is not None else None
        if located is None or not located.submodule_search_locations:
            fail(
                label or type(self).__name__,
                expected="the folder of a skill, or an installed one",
                happened="neither was found",
                remedy='set `skill = "../my-skill"`, or `plugin = "skill.NAME"`',
            )
        return Path(next(iter(located.submodule_search_locations)))

    @property
    def subject(self) -> Plugin:
        """Its loader, since a skill is data."""
        return resolve("loader.skills")

    @property
    def label(self) -> str:
        """The skill as ``skill.name``."""
        return f"skill.{self.folder.name}"

    @property
    def backends(self) -> tuple[str, ...]:
        """The event loop of the host."""
        return ("asyncio",)

    async def exercise(self, host: Host) -> None:
        """Call all examples."""
        for example in self.examples or ():
            self.reset_world()
            if not example.error:
                await host.call(example.name, **self.fill(dict(example.params)))

    def _host_options(self, home: Path | None) -> dict[str, Any]:
        options = super()._host_options(home)
        grants = {} if self.grants is None else {self.folder.name: list(self.grants)}
        return {**options, "skill_dirs": [self.folder], "grants": grants}

    def _with_others(self, plugin: Plugin) -> list[Plugin]:
        return [plugin, *(resolve(one) for one in self.also if one != "loader.skills")]

    def _spec(self) -> SkillSpec:
        async def load() -> SkillSpec:
            async with self.open_host() as host:
                found = await host.skills()
            for problem in found.problems:
                if problem.fatal:
                    self._wrong("a skill that can be loaded", f"{problem.code}: {problem.reason}", problem.hint)
            if len(found.skills) != 1:
                self._wrong("one skill in its folder", f"{len(found.skills)}", f"write {_MANIFEST} into the folder")
            return found.skills[0]

        spec: SkillSpec = self.run(load)
        return spec

    def _given(self) -> Sequence[Example]:
        if self.examples is None:
            pytest.skip("no examples: set `examples` in a test class of your own, to check what the tools do")
        return self.examples

    def _wrong(self, expected: str, happened: str, remedy: str) -> Any:
        fail(self.label, expected=expected, happened=happened, remedy=remedy or "correct it")


_MAX_BYTES = 64 << 20
_PREFIXES = ("-----BEGIN PRIVATE KEY", "-----BEGIN RSA PRIVATE KEY", "ghp_", "github_pat_", "sk-ant-", "AKIA", CANARY)


def _secret_in(path: Path) -> str:
    text = path.read_bytes()[:1_000_000].decode("utf-8", "replace")
    return next((f"`{prefix}…`" for prefix in _PREFIXES if prefix in text), "")
