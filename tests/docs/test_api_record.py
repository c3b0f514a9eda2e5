"""The recorded description of the API: it fits the code, additions extend it, and breaks need a waiver."""

import importlib
import re
import subprocess
import sys
import types
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from sideband.errors import SidebandError, UsageError

ADDED = "hook:tool_call(arguments)"


@pytest.fixture(scope="module")
def api():
    """The module of the command ``python docs/api.py``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "docs")
        yield importlib.import_module("api")


@pytest.fixture(scope="module")
def now(api, tmp_path_factory):
    """The description of the API, in a process in which no test has changed anything."""
    path = tmp_path_factory.mktemp("api") / "now.json"
    code = "import api, pathlib, sys; api.write(pathlib.Path(sys.argv[1]), api.current())"
    docs = Path(api.__file__).parent
    subprocess.run([sys.executable, "-c", code, path], cwd=docs, check=True)
    return api.read(path)


@pytest.fixture
def small(api, now):
    """The description of a part of the current API."""
    parts = ("op:http", "hook:tool_call", "python:sideband.providers.")
    return api.Snapshot(now.version, {path: fact for path, fact in now.facts.items() if path.startswith(parts)})


@pytest.fixture
def files(api, small, tmp_path, monkeypatch):
    """A recorded description of the current API, without waivers, in a folder of its own."""
    made = types.SimpleNamespace(snapshot=tmp_path / "api.json", waivers=tmp_path / "api-waivers.toml")
    made.waivers.write_text("# The format: [[waiver]]\n")
    api.write(made.snapshot, small)
    monkeypatch.setattr(api, "SNAPSHOT", made.snapshot)
    monkeypatch.setattr(api, "WAIVERS", made.waivers)
    monkeypatch.setattr(api, "current", lambda: small)
    return made


@pytest.fixture
def edit(api, small, files):
    """Change the recorded description, as if the code had been different; ``None`` leaves out a part."""

    def change(**changes):
        facts = dict(small.facts)
        for path, fact in changes.items():
            facts = {one: value for one, value in facts.items() if one != path}
            if fact is not None:
                facts[path] = fact
        api.write(files.snapshot, api.Snapshot("0.0.1", facts))

    return change


def waiver(rule="removed", path="op:old.get", reason="nothing uses it", since="0.2.0"):
    return f'[[waiver]]\nrule = "{rule}"\npath = "{path}"\nreason = "{reason}"\nsince = "{since}"\n'


# The record of this repository


def test_code_fits_the_recorded_description(api, now):
    recorded = api.read(api.SNAPSHOT)
    found = api.problems(recorded, now, api.read_waivers(api.WAIVERS))
    assert found == [], "run: python docs/api.py"


@pytest.mark.parametrize(
    "path",
    [
        "python:sideband.Host.call(tool)", "python:sideband_agent.Agent.invoke", "python:sideband.skill.http.session",
        "python:sideband.exit_codes.ExitCode.DENIED", "op:http.get(url)", "op:http.get()", "capability:http(host)",
        "hook:tool_call(arguments)", "error:op.denied", "error:http.connect", "setting:policy(timeout)",
        "setting:plugins.http.proxy(https)", "group:sideband.v1.op", "group:sideband_agent.session_formats",
        "plugin:sideband.v1.op/http", "command:run(PROMPT)", "command:sessions.fork",
        "message:assistant(content)", "python:sideband.messages.AssistantMessage(content)",
        "session:compaction(summary)", "ledger:intent(effect)", "result:run(status)", "wire:worker.dispatch(__caps__)",
        "wire:host.call(__call__.module)", "wire:version", "wire:host.dispatch_result.error(__error__.details)",
        "wire:worker.result.error(__error__.topic)", "wire:worker.result.error(__error__.cause.op)",
        "family:sql(SqlReplaced)", "python:sideband.skill.OpError.retryable", "python:sideband.skill.OpDenied.code",
        "tool:subagent(task)", "tool:prompt.memory", "command:*(--isolation)", "command:*(--yes)",
    ],
)  # fmt: skip
def test_each_kind_of_public_name_is_described(now, path):
    assert path in now.facts


def test_description_names_no_place_on_this_machine(now):
    shown = repr(now.facts)
    assert not re.search(r"0x[0-9a-f]{6}|/home/|/root|/tmp|<class|<function", shown)


def test_names_of_entry_points_and_private_modules_are_not_described(now):
    assert [
        path for path in now.facts if re.match(r"python:sideband\w*\.(.*\.)?(plugin|commands\.run|_\w+)\.", path)
    ] == []


def test_plugins_of_other_packages_are_not_described(api, tmp_path, monkeypatch):
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sideband.v1.op]\nacme = acme.plugin\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    packages = importlib.import_module("_pages.packages")
    assert "acme" in {one.name for one in entry_points(group="sideband.v1.op")}
    assert "acme" not in {one.name for one in packages.plugin_points("sideband.v1.op")}


def test_attributes_that_a_constructor_assigns_are_described(now):
    assert now.facts["python:sideband.SidebandError.hint"]["kind"] == "attribute"
    assert UsageError("a").hint == ""


def test_classes_of_a_replaced_plugin_are_not_described(api):
    from _api.contract import error_facts

    class Replaced(UsageError):
        code = "usage.replaced"

    Replaced.__module__, Replaced.__qualname__ = UsageError.__module__, "Replaced"
    assert "error:usage.replaced" not in error_facts({SidebandError: "sideband.SidebandError"})


def test_written_description_is_read_back(api, now, tmp_path):
    api.write(tmp_path / "api.json", now)
    assert api.read(tmp_path / "api.json") == now


# Names that refer to the same thing


@pytest.fixture
def compared(api):
    """Compare modules: two dicts of the names in each module, with their values."""
    from _api.python import python_facts

    def described(modules):
        made = []
        for name, values in modules.items():
            module = types.ModuleType(f"sideband_case.{name}")
            vars(module).update(values, __all__=list(values))
            made.append(module)
        return python_facts(made)

    def run(old, new):
        changes = api.compare(described(old), described(new))
        return {change.path.removeprefix("python:sideband_case."): change.rule.name for change in changes}

    return run


class Thing:
    """A class that several modules export."""

    def size(self) -> int:
        return 1


class Other(Thing):
    """A class that inherits."""


class Wider:
    """The class in a later version."""

    def size(self) -> int | None:
        return None


Thing.__module__ = Other.__module__ = Wider.__module__ = "sideband_case"


def test_second_name_is_an_addition(compared):
    assert compared({"b": {"Thing": Thing}}, {"b": {"Thing": Thing}, "c": {"Thing": Thing}}) == {"c.Thing": "added"}


def test_name_in_a_module_that_sorts_first_does_not_move_the_description(compared):
    old, new = {"b": {"Thing": Thing, "Other": Other}}, {"a": {"Thing": Thing}, "b": {"Thing": Thing, "Other": Other}}
    assert compared(old, new) == {"a.Thing": "added"}


def test_removal_of_one_of_two_names_is_a_break(compared):
    both = {"a": {"Thing": Thing}, "b": {"Thing": Thing, "Other": Other}}
    assert compared(both, {"b": {"Thing": Thing, "Other": Other}}) == {"a.Thing": "removed"}
    assert compared(both, {"a": {"Thing": Thing}, "b": {"Other": Other}}) == {"b.Thing": "removed"}


def test_change_of_a_value_with_several_names_is_one_change(compared):
    old, new = {"a": {"Thing": Thing}, "b": {"Thing": Thing}}, {"a": {"Thing": Wider}, "b": {"Thing": Wider}}
    assert compared(old, new) == {"a.Thing.size": "type-widened-output"}


def test_name_that_stands_for_another_value_now_is_compared_with_its_former_value(compared):
    old, new = {"a": {"Thing": Thing}, "b": {"Thing": Thing}}, {"a": {"Thing": Thing}, "b": {"Thing": Wider}}
    assert compared(old, new) == {"b.Thing.size": "type-widened-output"}


def test_two_values_that_become_one_keep_their_descriptions(compared):
    old, new = {"a": {"Thing": Thing}, "b": {"Thing": Wider}}, {"a": {"Thing": Thing}, "b": {"Thing": Thing}}
    assert compared(old, new) == {"b.Thing.size": "type-narrowed-output"}


# Recording


def test_unchanged_api_has_no_problems(api, files, capsys):
    assert api.main([]) == 0
    assert capsys.readouterr() == ("", "")


def test_unrecorded_addition_is_a_problem_until_it_is_recorded(api, edit, capsys):
    edit(**{ADDED: None})
    edited = api.main([])
    printed = capsys.readouterr()
    assert edited == 1
    assert printed.err == "additions are not recorded: run `python docs/api.py --record`, and commit docs/api.json\n"
    assert api.main(["--record"]) == 0
    assert api.main([]) == 0


def test_addition_is_printed_with_its_rule(api, edit, capsys):
    edit(**{ADDED: None})
    api.main([])
    line = "addition: hook:tool_call(arguments): added. What did not exist before is not used by any program.\n"
    assert capsys.readouterr().out == line


def test_changed_property_is_printed_with_both_values(api, edit, small, capsys):
    edit(**{"hook:tool_call": {**small.facts["hook:tool_call"], "deadline": 5}})
    api.main([])
    assert "addition: hook:tool_call: time-limit-raised (5 -> 60). What was" in capsys.readouterr().out


def test_recorded_addition_keeps_the_version_of_the_release(api, edit, files):
    edit(**{ADDED: None})
    api.main(["--record"])
    assert api.read(files.snapshot).version == "0.0.1"


def test_removal_of_a_recorded_addition_is_a_break(api, edit, small, monkeypatch, capsys):
    edit(**{"op:http.get": None})
    api.main(["--record"])
    without = {path: fact for path, fact in small.facts.items() if not path.startswith("op:http.get")}
    monkeypatch.setattr(api, "current", lambda: api.Snapshot(small.version, without))
    assert api.main([]) == 1
    assert "break: op:http.get: removed" in capsys.readouterr().err


def test_break_without_a_waiver_is_printed_with_the_entry_that_would_accept_it(api, edit, capsys):
    edit(**{"op:old.get": {"kind": "op"}})
    assert api.main([]) == 1
    printed = capsys.readouterr().err
    assert "break: op:old.get: removed. Programs that use it fail." in printed
    assert "[[waiver]]\n    rule = 'removed'\n    path = 'op:old.get'\n    reason = ''" in printed


def test_waiver_accepts_the_break_that_it_names(api, edit, files, capsys):
    edit(**{"op:old.get": {"kind": "op"}})
    files.waivers.write_text(waiver())
    assert api.main([]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("other", [{"path": "op:old.put"}, {"rule": "retyped"}])
def test_waiver_of_another_change_accepts_nothing(api, edit, files, capsys, other):
    edit(**{"op:old.get": {"kind": "op"}})
    files.waivers.write_text(waiver(**other))
    assert api.main([]) == 1
    printed = capsys.readouterr().err
    assert "break: op:old.get: removed" in printed
    assert "accepts no change: remove it from docs/api-waivers.toml" in printed


def test_additions_are_recorded_beside_accepted_breaks(api, edit, files):
    edit(**{"op:old.get": {"kind": "op"}, ADDED: None})
    files.waivers.write_text(waiver())
    assert api.main(["--record"]) == 0
    assert api.main([]) == 0
    recorded = api.read(files.snapshot).facts
    assert ADDED in recorded
    assert "op:old.get" in recorded


def test_addition_to_a_part_that_breaks_waits_for_the_release(api, edit, files, small):
    narrower = {**small.facts["op:http.get"], "level": "SAFE", "abilities": []}
    edit(**{"op:http.get": narrower})
    files.waivers.write_text(waiver("level-raised", "op:http.get"))
    assert api.main([]) == 0
    api.main(["--record"])
    assert api.read(files.snapshot).facts["op:http.get"] == narrower


def test_parts_of_a_refused_part_are_not_recorded(api, small):
    method = "python:sideband.providers.Provider.stream"
    facts = {path: fact for path, fact in small.facts.items() if not path.startswith(method)}
    assert len(facts) < len(small.facts) - 1
    recorded = api.record(api.Snapshot("0.0.1", facts), small).facts
    assert recorded == facts


def test_release_records_everything_and_removes_the_waivers(api, edit, files, small):
    edit(**{"op:old.get": {"kind": "op"}})
    files.waivers.write_text("# The format: [[waiver]]\n\n" + waiver())
    assert api.main(["--record", "0.2.0"]) == 0
    assert api.read(files.snapshot) == api.Snapshot("0.2.0", small.facts)
    assert files.waivers.read_text() == "# The format: [[waiver]]\n"
    assert api.main([]) == 0


def test_release_with_a_break_that_is_not_accepted_records_nothing(api, edit, files, capsys):
    edit(**{"op:old.get": {"kind": "op"}})
    before = files.snapshot.read_text()
    assert api.main(["--record", "0.2.0"]) == 1
    assert "break: op:old.get: removed" in capsys.readouterr().err
    assert files.snapshot.read_text() == before


def test_first_record_needs_a_version(api, files, small, capsys):
    files.snapshot.unlink()
    assert api.main([]) == 1
    assert api.main(["--record"]) == 1
    assert capsys.readouterr().err.count("run `python docs/api.py --record VERSION`") == 2
    assert api.main(["--record", "0.1.0"]) == 0
    assert api.read(files.snapshot) == api.Snapshot("0.1.0", small.facts)


def test_class_whose_constructor_moved_to_a_base_keeps_the_recorded_one(api):
    base = {"kind": "class", "bases": [], "constructor": "a.Base"}
    parameter = {"kind": "parameter", "type": "int"}
    shared = {"python:a.Base": base, "python:a.Base(x)": parameter}
    own = {"python:a.A": {"kind": "class", "bases": ["a.Base"], "constructor": "a.A"}, "python:a.A(x)": parameter}
    moved = {"python:a.A": {"kind": "class", "bases": ["a.Base"], "constructor": "a.Base"}}
    recorded = api.record(api.Snapshot("0.0.1", shared | own), api.Snapshot("0.0.1", shared | moved))
    assert recorded.facts == shared | own


# The file of waivers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (waiver(reason=" "), "waiver 1: `reason` must be a text that is not empty"),
        (waiver() + '[[waiver]]\nrule = "removed"\n', "waiver 2: `path` must be a text that is not empty"),
        (waiver(since=""), "waiver 1: `since` must be a text"),
        (waiver(rule="added"), "waiver 1: `added` is not a rule for breaks"),
        (waiver(rule="gone"), "waiver 1: `gone` is not a rule for breaks"),
        (waiver() + 'by = "me"\n', "waiver 1: unknown key `by`; the keys are rule, path, reason, since"),
        ("[[waver]]\n", "unknown key `waver`; write each waiver as `[[waiver]]`"),
    ],
)
def test_invalid_waiver_is_an_error_that_names_the_entry_and_the_key(api, files, capsys, text, words):
    files.waivers.write_text(text)
    assert api.main([]) == 1
    assert words in capsys.readouterr().err
