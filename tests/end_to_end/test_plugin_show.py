"""``plugins show``: what one plugin is and provides; and that no other plugin is imported for it."""

import json

import pytest

SHOUT = """
from pydantic import BaseModel, Field, SecretStr
from sideband.ops import Level, OpFamily, Undo, op

class Account(BaseModel):
    name: str
    pin: SecretStr
    code: str = Field(repr=False)

class Config(BaseModel):
    zone: str = "UTC"
    api_key: str = "the-default-key"
    pin: SecretStr = SecretStr("1234")
    code: str = Field(default="", repr=False)
    proxy: str = ""
    accounts: dict[str, Account] = {}
    retries: int = 3

class Params(BaseModel):
    text: str = ""

async def take_back(recorded, ctx):
    return Undo()

@op("shout.send", requires="shout", level=Level.CONTROLLED, undo=take_back)
async def send(params: Params, ctx) -> str:
    "Send a text."
    return params.text

def sideband_ops():
    return OpFamily(name="shout", ops=(send,), uses=["http:host=example.org", "http:host=other.example"])

raise_nothing = 1
def lifespan(ctx):
    raise RuntimeError("the lifespan ran")
"""
GUARD = """
from sideband.hooks import Deny, hookimpl
from sideband.ops import Level

class Guard:
    def __init__(self):
        raise RuntimeError("the guard was made")

    @hookimpl(level=Level.RESTRICTED, before="guard-limits", after=["a", "b"])
    async def op_call(self, event):
        return Deny("no")

def sideband_guards():
    return Guard
"""
MARKS = "import pathlib\npathlib.Path({folder!r}, {name!r}).touch()\n"
KINDS = ("op", "hook", "guard", "secrets", "provider", "loader", "store", "sandbox", "command", "tool")


@pytest.fixture
def show(sideband, tmp_path):
    def run(*words, path, code=0, **environment):
        done = sideband("plugins", "show", *words, "--json", PYTHONPATH=str(path), **environment)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    return run


def test_show_has_provenance_rights_ops_and_the_source_of_each_value_without_secrets(show, sideband, site, tmp_path):
    path = site("acme-shout", "acme_shout", SHOUT, "sideband.v1.op", "shout")
    home = tmp_path / "home"
    home.mkdir()
    (home / "sideband.toml").write_text(
        '[plugins.shout]\nzone = "Asia/Tokyo"\napi_key = "sk-from-file"\n'
        'code = "77code77"\nproxy = "http://me:66user66@proxy.example"\n'
        'accounts.me = {name = "Me", pin = "88pin88", code = "55code55"}\n'
        '[plugins.unknown]\nword = "44word44"\n'
        '[grants]\n"plugin:shout" = ["http:host=example.org"]\n'
    )
    words = ("shout", "--set", "plugins.shout.retries=7")
    (facts,) = show(*words, path=path, SIDEBAND_PLUGINS__SHOUT__PIN="99aa99")
    assert (facts["state"], facts["package"], facts["location"]) == ("validated", "acme-shout 1.0", str(path))
    assert facts["imported"]
    assert facts["load_ms"] > 0
    (op,) = facts["ops"]
    assert (op["op"], op["level"], op["requires"], op["undo"]) == ("shout.send", "controlled", "shout", True)
    values = {one["key"].rpartition(".")[2]: (one["value"], one["source"]) for one in facts["configuration"]}
    assert values["zone"] == ("Asia/Tokyo", str(home / "sideband.toml"))
    assert values["retries"] == (7, "command line")
    assert values["api_key"] == ("[redacted]", str(home / "sideband.toml"))
    assert values["pin"][1] == "SIDEBAND_PLUGINS__SHOUT__PIN"
    text = sideband("plugins", "show", *words, PYTHONPATH=str(path), SIDEBAND_PLUGINS__SHOUT__PIN="99aa99").stdout
    assert "asks for    http:host=example.org: given by the configuration" in text
    assert "asks for    http:host=other.example: not given" in text
    (failed,) = show("shout", path=path, code=5, SIDEBAND_PLUGINS__SHOUT__PIN="12345")
    assert "12345" not in json.dumps(failed["configuration"])
    doctor = sideband(
        "doctor", *words[1:], "--json", PYTHONPATH=str(path), SIDEBAND_PLUGINS__SHOUT__PIN="99aa99"
    ).stdout
    settings = {one["key"]: one["value"] for one in json.loads(doctor)["settings"]}
    assert (settings["plugins.shout.zone"], settings["plugins.shout.retries"]) == ("Asia/Tokyo", 7)
    assert settings["plugins.shout.accounts"] == {"me": {"name": "Me", "pin": "[hidden]", "code": "[hidden]"}}
    assert settings["plugins.shout.proxy"] == values["proxy"][0] == "http://[hidden]@proxy.example"
    assert settings["plugins.unknown.word"] == "[hidden]"
    secrets = ("sk-from-file", "the-default-key", "1234", "99aa99")
    for secret in (*secrets, "77code77", "66user66", "88pin88", "55code55", "44word44"):
        assert secret not in text + json.dumps(facts) + doctor


def test_show_has_the_hooks_of_a_guard_that_it_does_not_make(show, site):
    path = site("acme-guard", "acme_guard", GUARD, "sideband.v1.guard", "acme")
    (facts,) = show("guard.acme", path=path)
    (hook,) = facts["hooks"]
    assert hook == {
        "hook": "op_call",
        "kind": "decide",
        "on_failure": "denied",
        "phase": "guard",
        "before": ["guard-limits"],
        "after": ["a", "b"],
        "level": "restricted",
        "manifest": None,
    }


@pytest.mark.parametrize(
    ("how", "state"),
    [("denied", "denied"), ("incompatible", "incompatible"), ("in conflict", "failed")],
)
def test_show_of_a_plugin_that_may_not_load_has_its_metadata_without_importing_it(show, site, tmp_path, how, state):
    path = site("acme-op", "acme_op", MARKS.format(folder=str(tmp_path), name="imported"), "sideband.v1.op", "acme")
    home = tmp_path / "home"
    home.mkdir()
    if how == "denied":
        (home / "sideband.toml").write_text('[policy.deny]\n"op.acme" = "not here"\n')
    elif how == "incompatible":
        with (path / "acme_op-1.0.dist-info" / "METADATA").open("a") as metadata:
            metadata.write("Requires-Dist: sideband-core>=99\n")
    else:
        site("other-op", "other_op", "", "sideband.v1.op", "acme")
    for facts in show("op.acme", path=path):
        assert (facts["state"], facts["imported"]) == (state, False)
        assert facts["reason"]
        assert facts["ops"] == []
    assert not (tmp_path / "imported").exists()


def test_show_of_a_plugin_that_fails_has_the_place_and_the_remedy(show, sideband, site):
    path = site("acme-op", "acme_op", "\n\nraise RuntimeError('no luck \x1b[2J')\n", "sideband.v1.op", "acme")
    (facts,) = show("acme", path=path, code=5)
    assert facts["error"]["raised"]["line"] == 3
    done = sideband("plugins", "show", "acme", PYTHONPATH=str(path))
    assert done.returncode == 5
    assert "acme_op.py, line 3" in done.stdout
    assert "\x1b" not in done.stdout


def test_no_plugin_of_200_is_imported_unless_it_is_shown(sideband, site, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    for number in range(200):
        kind, name = KINDS[number % len(KINDS)], f"p{number}"
        code = MARKS.format(folder=str(marks), name=name)
        path = site(f"many-{name}", f"many_{name}", code, f"sideband.v1.{kind}", name)
    for words in (
        ["--version"],
        ["--version", "--json"],
        ["--help"],
        ["plugins", "list"],
        ["plugins", "show", "crypto"],
    ):
        done = sideband(*words, PYTHONPATH=str(path))
        assert done.returncode == 0, done.stderr
        assert list(marks.iterdir()) == [], words
    sideband("plugins", "show", "op.p0", PYTHONPATH=str(path))
    assert [one.name for one in marks.iterdir()] == ["p0"]


def test_hostile_metadata_of_a_package_moves_no_cursor_and_shows_no_password(sideband, site, tmp_path):
    path = site("acme-op", "acme_op", "", "sideband.v1.hook", "acme")
    info = path / "acme_op-1.0.dist-info"
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: acme-op\nVersion: 1.0\x1b[2J\x9b2J\u202e\n")
    info.joinpath("INSTALLER").write_text("pip\x1b[2J")
    info.joinpath("direct_url.json").write_text(
        '{"url": "https://me:pa55word@acme.example/\\u001b[2J", "dir_info": {}}'
    )
    for words in (("list",), ("show", "hook.acme"), ("check", "acme")):
        done = sideband("plugins", *words, PYTHONPATH=str(path))
        shown = done.stdout + done.stderr
        assert "acme" in shown
        assert "pa55word" not in shown
        assert not {"\x1b", "\x9b", "\u202e"} & {*shown}
