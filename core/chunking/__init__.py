"""Cutting a document into chunks: spans of its text, by one of five strategies.

Every strategy holds to this: `document.text[start:end]` is the chunk; starts strictly ascend; all text
but blanks is covered; no chunk is above the size or blank; no cut parts a sign (an emoji sequence, a
letter and its marks) unless that sign alone is above the size. All but `fixed`, whose windows are exact,
keep table rows that fit the size whole, a table's head with its first row, and identifiers in Latin
letters; they repeat whole sentences or words up to the overlap, never across sections (headings) or
jumps of meaning (semantic).

Sizes in tokens count the text alone, without the model's special tokens and without what is put before
a chunk (context, columns).
"""

from __future__ import annotations

from core.chunking.describe import describe
from core.chunking.layout import Layout
from core.chunking.ruler import Characters, CountTokens, Ruler, Tokens
from core.chunking.sizes import Sizes, SizeTable, size_summary
from core.chunking.strategies import (
    Embed,
    Span,
    by_headings,
    by_meaning,
    by_sentences,
    fixed,
    recursive,
)
from core.errors import SettingsError
from core.settings import STRATEGIES, ChunkSettings
from core.types import Chunk, Document, encodable

__all__ = [
    "STRATEGIES",
    "ChunkSettings",
    "SizeTable",
    "Sizes",
    "chunk_document",
    "size_summary",
    "split",
]


def split(
    document: Document,
    settings: ChunkSettings,
    count_tokens: CountTokens | None = None,
    embed: Embed | None = None,
) -> list[Span]:
    """Spans [start, end) of the chunks, starts strictly ascending; [] for a text of blanks.

    Spans cut elsewhere (`document.chunks`) are returned as they are. `count_tokens` counts as
    `Embedder.count_tokens` does and is needed for sizes in tokens; `embed` gives unit vectors of shape
    (n, dimension) and is needed by the semantic strategy. Raises SettingsError when one is missing.
    """
    if document.chunks:
        return list(document.chunks)
    text = encodable(document.text)
    ruler: Ruler
    if settings.unit == "characters":
        ruler = Characters(text)
    elif count_tokens is None:
        raise SettingsError(
            "chunk sizes in tokens need the embedding model's tokenizer; load a model or use characters"
        )
    else:
        ruler = Tokens(text, count_tokens)
    size, overlap = settings.size, settings.overlap
    layout = Layout(document, text, ruler, size)
    if settings.strategy == "fixed":
        found = fixed(layout, ruler, 0, len(text), size, overlap)
    elif settings.strategy == "sentences":
        found = by_sentences(layout, ruler, size, overlap)
    elif settings.strategy == "headings":
        found = by_headings(layout, ruler, size, overlap)
    elif settings.strategy == "recursive":
        found = recursive(layout, ruler, 0, len(text), size, overlap)
    elif embed is None:
        raise SettingsError(
            "semantic chunking needs an embedding model; load one or choose another strategy"
        )
    else:
        found = by_meaning(layout, ruler, size, overlap, embed, settings.breakpoint_percentile)
    return _within(layout, ruler, list(found), size)


def _within(layout: Layout, ruler: Ruler, spans: list[Span], size: int) -> list[Span]:
    """The spans, with those cut again that turn out above the size once measured as a whole."""
    checked: list[Span] = []
    waiting = [(span, size) for span in spans]
    while waiting:
        above = ruler.above([span for span, _ in waiting], size)
        checked.extend(span for i, (span, _) in enumerate(waiting) if i not in above)
        again: list[tuple[Span, int]] = []
        for i, length in above.items():
            (start, end), limit = waiting[i]
            smaller = max(min(limit - 1, limit * size // length), 1)
            pieces = list(fixed(layout, ruler, start, end, smaller, 0))
            if len(pieces) == 1 and smaller == 1:
                checked.append((start, end))
            else:
                again.extend((piece, smaller) for piece in pieces)
        waiting = again
    return sorted(checked)


def chunk_document(
    document: Document,
    settings: ChunkSettings,
    count_tokens: CountTokens | None = None,
    embed: Embed | None = None,
) -> list[Chunk]:
    """The chunks of a document, with heading path, pages and columns; arguments as for `split`.

    Raises SettingsError as `split` does, ValueError where `document.chunks` has a span outside the text.
    """
    return describe(document, split(document, settings, count_tokens, embed))
