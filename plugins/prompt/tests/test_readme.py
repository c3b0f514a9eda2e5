"""The example of the README, executed as written."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def test_example_shows_a_prompt(home):
    environment = {**os.environ, "SIDEBAND_HOME": str(home)}
    (commands,), (program,) = blocks("sh"), blocks("python")
    subprocess.run(["sh", "-ec", commands], env=environment, check=True)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, cwd=home
    )
    assert "--- append\nAnswer in the language of the question.\n" in done.stdout
    assert "- deploy.md: How we deploy" in done.stdout


def test_configuration_is_valid():
    import tomllib

    from sideband_prompt.plugin import Config

    (table,) = blocks("toml")
    assert Config.model_validate(tomllib.loads(table)["plugins"]["prompt"]).profile == "work"


def test_index_is_valid(home, write, section):
    (index,) = blocks("yaml")
    write(home / "prompt/knowledge/index.yaml", index)
    write(home / "prompt/knowledge/deploy.md", "# How we deploy\n\nOn Mondays.")
    write(home / "prompt/knowledge/api/index.md", "# The interface")
    text = section("knowledge", tools=["prompt__knowledge"])
    assert "On Mondays." in text
    assert "- api/index.md: The interface" in text
    assert "skipped" not in text
