"""A plugin for sideband. The entry point `{{ cookiecutter.__entry }}` is the module `plugin`."""
