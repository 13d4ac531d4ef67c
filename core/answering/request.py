"""The exact request: the system prompt is ours alone, text of documents only ever the content of blocks."""

from __future__ import annotations

from typing import Any

from core.answering.inquiry import Inquiry, Source
from core.answering.prompt import MAX_TOKENS, SYSTEM
from core.llm import ModelFacts


def request(inquiry: Inquiry, facts: ModelFacts) -> dict[str, Any]:
    """Parameters of the call. The sources come first, in their order, then the question.

    Whole documents carry a cache mark, for an hour, on the last one: the next question finds them there.
    """
    pairs = zip(inquiry.sources, inquiry.texts, strict=True)
    if inquiry.path == "passages":
        blocks = [_search_result(source, text) for source, text in pairs]
    else:
        blocks = [_document(source, text) for source, text in pairs]
        blocks[-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    return {
        "model": inquiry.model,
        "max_tokens": min(MAX_TOKENS, facts.max_tokens or MAX_TOKENS),
        "system": SYSTEM,
        "messages": [{"role": "user", "content": [*blocks, {"type": "text", "text": inquiry.question}]}],
        **facts.quiet,
    }


def _search_result(source: Source, text: str) -> dict[str, Any]:
    return {
        "type": "search_result",
        "source": source.id,
        "title": source.title,
        "content": [{"type": "text", "text": piece} for piece in _pieces(source, text)],
        "citations": {"enabled": True},
    }


def _pieces(source: Source, text: str) -> list[str]:
    """The text at the starts of sentences, blanks between them kept: lines and indents mean something."""
    starts = [start - source.start for start, _ in source.sentences]
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]


def _document(source: Source, text: str) -> dict[str, Any]:
    return {
        "type": "document",
        "title": source.title,
        "source": {"type": "text", "media_type": "text/plain", "data": text},
        "citations": {"enabled": True},
    }
