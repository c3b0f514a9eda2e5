"""The rules of the source layout: permitted imports, module length, and required files of a package."""

import ast
import graphlib
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
SOURCES = [source for layer in LAYERS for source in sorted(ROOT.glob(f"{layer}/src"))]
CORE = ROOT / "core" / "src"
BELOW_PLUGINS = {source for layer in ("core", "agent", "libs/*") for source in ROOT.glob(f"{layer}/src")}
CORE_NEVER = {"httpx", "keyring", "httpcore"}
# The testing kit makes hosts for the tests of authors. Each host needs a store, a test with an agent a model, and one
# without a network a cassette.
MAY_IMPORT = {"sideband_testing": {"sideband_cassettes", "sideband_scripted", "sideband_store_sqlite"}}


def modules(source):
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@pytest.fixture(scope="module")
def statements(trees):
    """The imports of each module, including those for type checkers: the imported module, and its imported names."""
    return {path: list(_imports_in(name, path, trees[path.relative_to(ROOT)])) for _, name, path in ALL}


def _imports_in(name, path, tree):
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            yield ".".join(filter(None, (base, node.module))), [alias.name for alias in node.names]


@pytest.fixture(scope="module")
def imports(statements):
    """The absolute names that each module imports."""
    return {
        path: [one for module, names in found for one in (module, *(f"{module}.{name}" for name in names))]
        for path, found in statements.items()
    }


def tops(source):
    return {
        path.stem if path.is_file() else path.name for path in source.iterdir() if not path.name.endswith(".egg-info")
    }


ALL = [(source, name, path) for source in SOURCES for name, path in modules(source)]
PLUGIN_TOPS = {top for source in SOURCES if source not in BELOW_PLUGINS for top in tops(source)}
AGENT_AND_LIBRARIES = {top for source in BELOW_PLUGINS - {CORE} for top in tops(source)}


def test_kernel_imports_no_higher_layer(imports):
    for name, path in modules(CORE):
        used = {imported.partition(".")[0] for imported in imports[path]}
        assert not used & (PLUGIN_TOPS | AGENT_AND_LIBRARIES | CORE_NEVER), name


def test_agent_and_libraries_import_neither_plugins_nor_each_other(imports):
    for source in BELOW_PLUGINS - {CORE}:
        for name, path in modules(source):
            used = {imported.partition(".")[0] for imported in imports[path]}
            assert not used & ((PLUGIN_TOPS | AGENT_AND_LIBRARIES) - tops(source)), name


def test_packages_import_only_public_names_of_other_packages(imports):
    for source, name, path in ALL:
        private = [
            one
            for one in imports[path]
            if re.match(r"sideband\w*(\.\w+)*\._(?!_version__)", one) and one.partition(".")[0] not in tops(source)
        ]
        assert not private, name


def test_plugins_do_not_import_other_plugins(imports):
    for source, name, path in ALL:
        siblings = PLUGIN_TOPS - tops(source) - MAY_IMPORT.get(name.partition(".")[0], set())
        used = {imported.partition(".")[0] for imported in imports[path]}
        assert not used & siblings, name


def test_packages_import_only_declared_dependencies(packages, imports):
    for folder, project in packages.items():
        extras = project["project"].get("optional-dependencies", {}).values()
        lines = [*project["project"].get("dependencies", ()), *(line for extra in extras for line in extra)]
        declared = {_module_name(line) for line in lines}
        source = folder / "src"
        if "pydantic" in declared:
            declared.add("pydantic_core")  # always released together with pydantic
        allowed = declared | set(sys.stdlib_module_names) | tops(source)
        if folder.name != "core":
            allowed |= {"sideband"}
        for name, path in modules(source):
            used = {imported.partition(".")[0] for imported in imports[path]}
            undeclared = used - allowed - {"sideband_sdk", ""}
            assert not undeclared, f"{name} imports {undeclared}"


def _module_name(requirement):
    name = re.split(r"[\s\[<>=!~;]", requirement)[0].lower()
    modules = {
        "agent-client-protocol": "acp",
        "cyclonedx-python-lib": "cyclonedx",
        "google-re2": "re2",
        "opentelemetry-sdk": "opentelemetry",
        "packageurl-python": "packageurl",
        "pyyaml": "yaml",
    }
    return modules.get(name, name.replace("-", "_"))


def test_worker_runtime_imports_only_the_standard_library(imports):
    core = CORE
    inside = [
        *modules(core / "sideband" / "workers" / "runtime"),
        ("_from_host", core / "sideband" / "_from_host.py"),
        ("skill", core / "sideband" / "skill.py"),
        ("worker", core / "sideband" / "worker.py"),
    ]
    assert len(inside) > 3
    for name, path in inside:
        used = {
            one.removesuffix(".*")
            for one in imports[path]
            if not one.startswith(("sideband.workers.runtime", "sideband.skill", "sideband._from_host"))
        }
        foreign = {one for one in used if one.partition(".")[0] not in sys.stdlib_module_names}
        assert foreign <= {"sideband", "sideband.workers", "sideband_sdk"}, name


def test_no_other_package_imports_contrib(imports):
    contrib = {top for source in ROOT.glob("contrib/*/src") for top in tops(source)}
    for source, name, path in ALL:
        if "contrib" not in source.parts:
            assert not {one.partition(".")[0] for one in imports[path]} & contrib, name


def test_modules_have_at_most_600_lines():
    tests = [path for path in ROOT.rglob("tests/**/*.py") if ".venv" not in path.parts]
    long = {
        str(path): n for path in [*(p for _, _, p in ALL), *tests] if (n := len(path.read_text().splitlines())) > 600
    }
    assert not long


def test_import_graph_has_no_cycles_not_even_for_type_checkers(statements):
    for source in SOURCES:
        known = dict(modules(source))
        graph = {name: set(neighbors(statements[path], known)) - {name} for name, path in known.items()}
        list(graphlib.TopologicalSorter(graph).static_order())


def neighbors(statements, known):
    """Yield the modules of ``known`` that a module imports. In ``from . import x``, ``x`` can be a module."""
    for module, names in statements:
        inner = [f"{module}.{one}" for one in names if f"{module}.{one}" in known]
        yield from inner
        if module in known and len(inner) < max(len(names), 1):
            yield module


def test_package_names_top_level_modules_and_entry_points_are_unique(packages):
    names = [project["project"]["name"] for project in packages.values()]
    top_modules = [top for folder in packages for top in tops(folder / "src")]
    entry_points = [
        (group, name)
        for project in packages.values()
        for group, table in project["project"].get("entry-points", {}).items()
        for name in table
    ]
    for values in (names, top_modules, entry_points):
        assert len(values) == len(set(values))


def test_packages_have_readme_tests_and_type_marker(packages):
    for folder, project in packages.items():
        assert (folder / "README.md").read_text().startswith("# "), folder
        assert any((folder / "tests").rglob("test_*.py")), folder
        assert "Typing :: Typed" in project["project"]["classifiers"], folder
        for top in tops(folder / "src"):
            package = folder / "src" / top
            assert (package / "py.typed").exists() or not (package / "__init__.py").exists(), package


def test_default_distribution_pins_every_package_exactly(packages):
    import tomllib

    pinned = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    expected = set()
    for folder, project in packages.items():
        if folder.parent.name == "contrib":
            continue
        (version_file,) = [folder / project["tool"]["hatch"]["version"]["path"]]
        version = re.search(r'__version__ = "(.+)"', version_file.read_text()).group(1)
        extra = "[speed]" if "speed" in project["project"].get("optional-dependencies", {}) else ""
        expected.add(f"{project['project']['name']}{extra}=={version}")
    assert pinned == expected


PUBLIC = sorted(
    name
    for _, name, path in ALL
    if path.name == "__init__.py"
    and not any(part.startswith("_") for part in name.split("."))
    and "__all__" in path.read_text()
)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_sorted_and_exist(name):
    module = importlib.import_module(name)
    assert list(module.__all__) == sorted(module.__all__, key=_as_ruff_sorts)
    for public in module.__all__:
        assert getattr(module, public) is not None


def test_private_modules_define_all_only_if_it_is_star_imported(statements):
    """In other private modules, ``__all__`` would be unused: the underscore already marks private names."""
    star_imported = {module for _, name, path in ALL for module, names in statements[path] if "*" in names}
    with_all = {
        name
        for _, name, path in ALL
        if path.name.startswith("_")
        and not path.name.startswith("__")
        and re.search(r"^__all__ =", path.read_text(), re.MULTILINE)
    }
    # `_sdk.py` is copied into the SDK of skills, and the SDK generator reads its `__all__`.
    assert {name for name in with_all if not name.endswith("._sdk")} <= star_imported


def _as_ruff_sorts(name):
    """Sort constants first, then classes, then all others."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_tracked_files_contain_no_registry_urls():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    hosts = re.compile(
        r"https?://[^\s\"']*(/simple\b|\.whl\b|\.tar\.gz\b|\.tgz\b)|index-url\s*=|extra-index|files\.python[h]osted"
    )
    for name in filter(None, tracked):
        path = ROOT / name
        if path.suffix in {".toml", ".txt", ".in", ".cfg", ".lock", ".json", ".md", ".yml"} or path.name in {
            "Makefile",
            "run",
        }:
            assert not hosts.search(path.read_text()), name


def test_version_option_imports_neither_plugins_nor_dependencies():
    probe = (
        "import sys; sys.argv = ['sideband', '--version']\n"
        "from sideband.__main__ import main; main()\n"
        "heavy = {'attrs', 'attr', 'pydantic', 'pluggy', 'anyio', 'importlib_metadata', 'argparse'}\n"
        "print([name for name in sys.modules if name.partition('.')[0] in heavy or name.startswith('sideband_')])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
