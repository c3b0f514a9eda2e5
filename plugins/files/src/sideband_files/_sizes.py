"""Human-readable sizes."""

from __future__ import annotations


def size_text(size: int) -> str:
    """Return a number of bytes as rounded text.

    Example:
        >>> size_text(3_172), size_text(1), size_text(5_000_000)
        ('3.1 KB', '1 byte', '4.8 MB')
    """
    if size < 1024:
        return "1 byte" if size == 1 else f"{size} bytes"
    amount = float(size)
    for unit in ("KB", "MB", "GB"):
        amount /= 1024
        if amount < 1024 or unit == "GB":
            break
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"
