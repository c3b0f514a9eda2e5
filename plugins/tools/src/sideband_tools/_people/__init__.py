"""Tools for working with the user: the list of tasks, and questions."""

from ._ask_tool import ask
from ._todo_tool import todo

__all__ = ["ask", "todo"]
