"""Recognize the keys of secrets, such as ``password``, ``GITHUB_TOKEN`` and ``webhook_secret``."""

from __future__ import annotations

import re
from functools import lru_cache

_NOT_LETTERS = re.compile(r"[^a-z0-9]+")
_EXACT = frozenset({"cookie", "cookies", "pwd", "secretbinary", "secretstring", "setcookie"})
_ENDINGS = re.compile(
    r"(?:authorization|(?<!allow)credentials|jwt|passphrase|(?<!etc)passwd|password|secret|token"
    r"|(?:access|api|auth|encryption|master|private|secret|signing)key)[0-9]*\Z"
)
# A token that continues a list or marks a position, a token of a language model, or a price.
_PUBLIC_TOKEN = re.compile(
    r"(?:\A|[^a-zA-Z]|(?<=[a-z])(?=[A-Z]))"
    r"(?i:page|pagination|paging|next|prev|previous|continuation|cursor|sync|resume|skip|start|starting|end|stop|change"
    r"|progress|cancel|cancellation|done|result|bos|eos|pad|unk|sep|cls|mask|special|per)[^a-zA-Z]*(?i:token)[0-9]*\Z"
    r"|(?i:(?:page|next|continuation|sync)token)\Z"
)


@lru_cache(maxsize=4096)
def is_sensitive(key: str) -> bool:
    """Return whether the values under this key are secrets, judged by its name.

    Example:
        >>> [is_sensitive(key) for key in ("dbPassword", "OPENAI_API_KEY", "max_tokens", "nextPageToken", "public_key")]
        [True, True, False, False, False]
    """
    letters = _NOT_LETTERS.sub("", key.lower())
    if letters in _EXACT:
        return True
    return _ENDINGS.search(letters) is not None and _PUBLIC_TOKEN.search(key) is None
