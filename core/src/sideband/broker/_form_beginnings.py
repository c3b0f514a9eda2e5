"""Look up whether a text ends with the beginning of a form, so that a stream must hold it back."""

from __future__ import annotations

from bisect import bisect_right

from attrs import define, field

# Few positions of a text have these many characters in common with a form.
_HEAD = 4


@define(eq=False)
class FormBeginnings:
    """The beginnings of forms. Forms may be added while other threads look them up.

    Attributes:
        longest: the length of the longest form.
    """

    longest: int = field(default=0, init=False)
    # The sorted forms with each head, and nothing for each beginning that is shorter than a head.
    _forms: dict[str, tuple[str, ...]] = field(factory=dict, init=False)

    def add(self, form: str) -> None:
        """Add a form."""
        self.longest = max(self.longest, len(form))
        for length in range(1, _HEAD):
            self._forms.setdefault(form[:length], ())
        if len(form) < _HEAD:
            return
        known = self._forms.get(form[:_HEAD], ())
        at = bisect_right(known, form)
        if not at or known[at - 1] != form:
            self._forms[form[:_HEAD]] = (*known[:at], form, *known[at:])

    def first(self, text: str) -> int:
        """Return the first position from which ``text`` is the beginning of a longer form, or its length."""
        forms = self._forms
        for at in range(max(0, len(text) - self.longest + 1), len(text)):
            known = forms.get(text[at : at + _HEAD])
            if known is not None:
                tail = text[at:]
                following = bisect_right(known, tail)
                if len(tail) < _HEAD or (following < len(known) and known[following].startswith(tail)):
                    return at
        return len(text)
