"""The broker: the one seam between what skills, tools and plugins want and the world."""

from ._redaction import Redactor, Unserializable

__all__ = ["Redactor", "Unserializable"]
