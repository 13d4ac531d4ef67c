"""Text on its way into a prompt: how long it is, and how what others wrote is kept in its place."""

from __future__ import annotations

import math
import re

from core.types import encodable


def rough_tokens(text: str) -> int:
    """An estimate where nothing can count: a third of the UTF-8 bytes, which for English is characters / 3
    and for scripts of longer codes about a token a sign."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / 3)


def framed(tag: str, text: str, *others: str, **attributes: object) -> str:
    """What others wrote between tags, so that it can close neither them nor the tags `others`."""
    closing = rf"</(?=\s*(?:{'|'.join((tag, *others))})\b)"
    inside = re.sub(closing, "< /", encodable(text), flags=re.IGNORECASE)
    named = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<{tag}{named}>\n{inside}\n</{tag}>"
