"""Distributions, written into a folder on ``sys.path``."""

import hashlib
import itertools
import os
import shutil
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest
import tomli_w

ECHO = """
    from pydantic import BaseModel
    from sideband.ops import OpFamily, op

    class Params(BaseModel):
        text: str = ""

    @op("{name}.say")
    async def say(params: Params, ctx) -> str:
        return params.text

    def sideband_ops():
        return OpFamily(name="{name}", ops=(say,))
"""

OPS = """
    import anyio
    from pydantic import BaseModel
    from sideband.ops import OpFamily, op
    from . import _numbers
    from ._numbers import NUMBER

    class Params(BaseModel):
        wait: bool = False

    @op("{name}.pair")
    async def pair(params: Params, ctx) -> list[int]:
        before = NUMBER
        await anyio.lowlevel.checkpoint()
        from ._late import NUMBER as late
        return [before, _numbers.NUMBER, late, {n}, ctx.state]

    def sideband_ops():
        return OpFamily(name="{name}", ops=(pair,))

    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def lifespan(ctx):
        yield {n}
"""

_numbers = itertools.count()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


class Site:
    """A folder for distributions, whose modules have unique names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: list[str] = []

    def module(self, source: str = "", *, folder: Path | None = None) -> str:
        """Write a module and return its name."""
        name = f"sideband_test_module_{next(_numbers)}"
        self.modules.append(name)
        (folder or self.folder).mkdir(exist_ok=True)
        ((folder or self.folder) / f"{name}.py").write_text(dedent(source))
        return name

    def distribution(
        self,
        name: str,
        entry_points: Mapping[str, Mapping[str, str]],
        *,
        version: str = "1.0",
        requires: Iterable[str] = (),
        extras: Iterable[str] = (),
        modules: Iterable[str] = (),
        direct_url: str = "",
        folder: Path | None = None,
    ) -> Path:
        """Write the metadata of an installed distribution and return the path of its ``.dist-info``."""
        site = folder or self.folder
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        requirements = "".join(f"Requires-Dist: {line}\n" for line in requires)
        requirements += "".join(f"Provides-Extra: {extra}\n" for extra in extras)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirements}")
        (info / "INSTALLER").write_text("by-hand\n")
        sections = (
            f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in names.items()) for group, names in entry_points.items()
        )
        (info / "entry_points.txt").write_text("\n".join(sections))
        if direct_url:
            (info / "direct_url.json").write_text(direct_url)
        lines = [f"{info.name}/RECORD,,"]
        for module in modules:
            content = (site / f"{module}.py").read_bytes()
            digest = urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            lines.append(f"{module}.py,sha256={digest},{len(content)}")
        (info / "RECORD").write_text("\n".join(lines) + "\n")
        return info

    def plugin(self, kind: str, name: str, source: str, *, distribution: str = "", **details) -> str:
        """Write a distribution with one plugin in one module, and return the name of the module."""
        module = self.module(source, folder=details.get("folder"))
        self.distribution(
            distribution or f"test-{name}", {f"sideband.v1.{kind}": {name: module}}, modules=[module], **details
        )
        return module

    def echo(self, name: str, *, extra: str = "", **details) -> str:
        """Write a distribution with an op family of one op, ``NAME.say``, and return the name of the module."""
        return self.plugin("op", name, dedent(ECHO).replace("{name}", name) + dedent(extra), **details)


class Package:
    """A distribution with one package, whose modules all contain the number of its version."""

    def __init__(self, site: Site, name: str = "acme", kinds: tuple[str, ...] = ("op",)) -> None:
        self.site, self.name, self.kinds = site, name, kinds
        self.module = f"sideband_test_{name}_{next(_numbers)}"
        site.modules.append(self.module)

    @property
    def folder(self) -> Path:
        return self.site.folder / self.module

    def write(self, number: int, modules: Mapping[str, str] = {}, *, kinds: tuple[str, ...] | None = None) -> None:
        """Write a version.

        In a source, ``{n}`` is its number, ``{name}`` the name of the plugin, and ``{ops}`` the source of a family with
        the op ``NAME.pair``, which returns the number of each module, and of the state of its lifespan.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        for info in self.site.folder.glob(f"test_{self.name}-*"):
            shutil.rmtree(info)
        self.write_modules(number, modules)
        groups = {f"sideband.v1.{kind}": {self.name: f"{self.module}.plugin"} for kind in kinds or self.kinds}
        info = self.site.distribution(f"test-{self.name}", groups, version=f"{number}.0")
        for path in (*info.iterdir(), info, self.site.folder):
            os.utime(path, (number, number))  # metadata that has changed a moment ago is not put into the index

    def write_modules(self, number: int, modules: Mapping[str, str] = {}) -> None:
        """Write other modules without changing the metadata."""
        self.folder.mkdir(exist_ok=True)
        sources = {"__init__": "", "_numbers": "NUMBER = {n}", "_late": "NUMBER = {n}", **modules}
        for name, source in sources.items():
            text = dedent(source).replace("{ops}", dedent(OPS)).replace("{n}", str(number)).replace("{name}", self.name)
            (self.folder / f"{name}.py").write_text(text)

    def write_ops(self, number: int, extra: str = "") -> None:
        """Write a version with the op ``NAME.pair`` and other code of its module."""
        self.write(number, {"plugin": "{ops}\n" + dedent(extra)})


class Locked:
    """The lock of an environment that consists of the folder for distributions."""

    def __init__(self, site: Site, prefix: Path) -> None:
        self.site = site
        self.file = prefix / "sideband.lock"

    def write(self, *labels: str, settings: Mapping = {}, adjustable: Iterable[str] = ()) -> None:
        """Lock installed plugins by ``kind.name`` with the current content of the files of their distributions."""
        from sideband.plugins import find_entry_points

        plugins, packages = [], {}
        for point in find_entry_points():
            if f"{point.kind}.{point.name}" not in labels or point.location != str(self.site.folder):
                continue
            (info,) = self.site.folder.glob(f"{point.distribution.replace('-', '_')}-{point.version}.dist-info")
            fields = ("kind", "name", "value", "api")
            plugins.append({name: getattr(point, name) for name in fields} | {"package": point.distribution})
            owned = self.site.folder / point.value.partition(".")[0]
            modules = owned.rglob("*.py") if owned.is_dir() else [owned.with_suffix(".py")]
            hashes = {
                path.relative_to(self.site.folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in (*modules, info / "METADATA", info / "entry_points.txt")
            }
            files = "".join(f"{digest}  {path}\n" for path, digest in sorted(hashes.items()))
            packages[point.distribution] = {"name": point.distribution, "version": point.version, "files": files}
        self.write_data(
            version=1,
            plugins=plugins,
            packages=list(packages.values()),
            settings=dict(settings),
            dist={"adjustable": list(adjustable)},
        )

    def write_data(self, **data: object) -> None:
        self.file.write_text(tomli_w.dumps(data))


@pytest.fixture
def locked(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locked:
    """An environment that can be locked, in ``tmp_path``."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "pycache_prefix", sys.pycache_prefix)
    return Locked(site, tmp_path)


@pytest.fixture
def package(site: Site) -> Package:
    return Package(site)


@pytest.fixture
def packages(site: Site) -> Callable[..., Package]:
    return partial(Package, site)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    site = Site(folder)
    yield site
    for module in site.modules:
        sys.modules.pop(module, None)
