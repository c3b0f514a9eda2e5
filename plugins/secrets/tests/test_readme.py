import re
import tomllib
from pathlib import Path

import pytest
import sideband_secrets
from sideband_secrets import Config, SecretsError

README = (Path(__file__).parents[1] / "README.md").read_text()
EXAMPLES = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_python_example_runs(tmp_path, monkeypatch, capsys):
    (program,) = [text for language, text in EXAMPLES if language == "python"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SIDEBAND_HOME", str(tmp_path / "home"))
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == "op.egress\n2 True\n"


@pytest.mark.parametrize("text", [text for language, text in EXAMPLES if language == "toml"])
def test_configuration_examples_are_valid(text):
    assert Config.model_validate(tomllib.loads(text)["plugins"]["secrets"])


def test_all_errors_are_listed():
    errors = {
        error.code
        for name in sideband_secrets.__all__
        if isinstance(error := getattr(sideband_secrets, name), type) and issubclass(error, SecretsError)
    }
    named = set(re.findall(r"`(secrets\.\w+)`", README.partition("## Errors")[2]))
    assert named == errors - {"secrets.failed"}


def test_all_ops_are_listed():
    from sideband_secrets.plugin import sideband_ops

    table = README.partition("## Capabilities")[0]
    assert {op.name for op in sideband_ops().ops} == set(re.findall(r"`(secrets\.\w+)`", table))
