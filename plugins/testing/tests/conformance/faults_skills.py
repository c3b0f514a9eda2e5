"""Skills with one fault each."""

import pytest
from sideband_testing import Example, SkillConformance

HEAD = "from sideband.skill import tool\n\n\n"
HELLO = '''@tool
async def hello(name: str) -> str:
    """Greet a person."""
    return f"Hello, {name}!"
'''


class Base(SkillConformance):
    fault = ""
    description = "Greets people."
    tools = HEAD + HELLO
    extra = ""
    examples = (Example("greeting.hello", {"name": "Ada"}, result="Hello, Ada!"),)

    @pytest.fixture(autouse=True)
    def written(self, tmp_path):
        folder = tmp_path / "skills" / "greeting"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: greeting\ndescription: {self.description}\n---\nGreet.\n{self.extra}"
        )
        (folder / "tools.py").write_text(self.tools)
        type(self).skill = folder


class TestGood(Base):
    pass


class TestContainsASecret(Base):
    fault = "test_configuration_hides_secrets"
    extra = "Use ghp_0123456789.\n"


class TestOtherResult(Base):
    fault = "test_examples_run"
    tools = HEAD + HELLO.replace("Hello", "Bye")


class TestUndescribed(Base):
    fault = "test_schemas_are_valid"
    tools = HEAD + HELLO.replace('    """Greet a person."""\n', "")
    overrides = {"test_metadata_and_registration_agree": "the loader reports the docstring too"}
