"""Questions of commands to the user, each with a default answer."""

__all__: list[str] = []
