"""A document's chunks with their contexts and what is to be seen of each. Nothing is drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from core.chunk_table import as_embedded, with_contexts
from core.chunking.describe import describe
from core.contextualizing.flags import Flags, flags
from core.contextualizing.headings import headings_contexts
from core.contextualizing.store import Row
from core.protocols import Progress
from core.types import Chunk, Document, text_hash
from core.vectors_cache import model_key
from pages.ui.context_work import Bench, Span

FILTERS = ("All", "Flagged", "Without context", "Failed", "Edited")
_KEPT = 50_000  # checked contexts


@dataclass(frozen=True)
class Looked:
    """One chunk as the lab shows it. `chunk` has its context as it would be indexed.

    `state` is one of the store's, or "computed", "missing", "waiting" (in a batch), "whole" (needs none).
    `reason` says why there is none, where that is known; `tokens` counts what is embedded.
    """

    number: int
    chunk: Chunk
    state: str
    row: Row | None
    reason: str
    tokens: int
    flags: Flags

    @property
    def span(self) -> Span:
        return self.chunk.start, self.chunk.end

    @property
    def flagged(self) -> bool:
        return bool(self.chunk.context) and self.flags.any

    def passes(self, chosen: str) -> bool:
        """Whether a filter, one of `FILTERS`, lets it through."""
        match chosen:
            case "Flagged":
                return self.flagged
            case "Without context":
                return not self.chunk.context and self.state != "whole"
            case "Failed":
                return self.state in ("truncated", "refused") or bool(self.reason)
            case "Edited":
                return self.state == "edited"
        return True


def looked(bench: Bench, item: int, document: Document, failed: Mapping[Span, str]) -> list[Looked]:
    """The chunks of a document. `failed`: spans for which a job got nothing, and why."""
    spans = bench.spans[item]
    settings = bench.settings
    rows: dict[Span, Row] = {}
    if settings.writer == "headings":
        contexts = headings_contexts(document, spans, settings.opening)
        states = ["computed"] * len(spans)
    else:
        text = text_hash(document.text)
        rows = {(row.start, row.end): row for row in bench.store.rows(settings.writer_key, text)}
        waiting = bench.store.waiting(settings.writer_key).get(text, set())
        contexts = [rows[span].context if span in rows else "" for span in spans]
        states = [
            rows[span].state
            if span in rows
            else "waiting"
            if span in waiting
            else "whole"
            if _is_whole(document.text, span)
            else "missing"
            for span in spans
        ]
    chunks = with_contexts(describe(document, spans), contexts, bench.draft)
    checks = _checks(bench, item, document, chunks)
    return [
        Looked(n, chunk, state, rows.get(span), failed.get(span, ""), *check)
        for n, (chunk, state, span, check) in enumerate(
            zip(chunks, states, spans, checks, strict=True), 1
        )
    ]


@dataclass(frozen=True)
class Checked:
    """What a look at a whole collection found; `flagged` and `without` count chunks by document place."""

    contexts: int
    flagged: Mapping[int, int]
    without: Mapping[int, int]


def check_all(bench: Bench, progress: Progress) -> Checked:
    """Look at every document. Raises what `progress` raises, CollectionError for one that was removed."""
    contexts, flagged, without = 0, {}, {}
    for item in range(len(bench.documents)):
        progress(item, len(bench.documents))
        found = looked(bench, item, bench.documents[item], {})
        contexts += sum(bool(one.chunk.context) for one in found)
        if count := sum(one.flagged for one in found):
            flagged[item] = count
        if count := sum(one.passes("Without context") for one in found):
            without[item] = count
    return Checked(contexts, flagged, without)


def _is_whole(text: str, span: Span) -> bool:
    return not text[: span[0]].strip() and not text[span[1] :].strip()


@st.cache_resource(show_spinner=False)
def _known() -> dict[tuple[object, ...], tuple[int, Flags]]:
    return {}


def _checks(bench: Bench, item: int, document: Document, chunks: list[Chunk]) -> list[tuple[int, Flags]]:
    """Tokens and flags of each chunk, looked at once for the same words."""
    known = _known()
    base = (
        bench.documents.digests[item],
        model_key(bench.embedder),
        bench.draft.analyzer.fingerprint,
        bench.settings.in_vectors,
        bench.settings.writer == "headings",
    )
    keys = [(*base, chunk.start, chunk.end, chunk.context, chunk.context_last) for chunk in chunks]
    new = [at for at, key in enumerate(keys) if key not in known]
    if new:
        if len(known) > _KEPT:
            known.clear()
        counts = bench.embedder.count_tokens([as_embedded(chunks[at], bench.draft) for at in new])
        words = Vocabulary(_all_of(document) if base[-1] else document.text)
        for at, tokens in zip(new, counts, strict=True):
            chunk = chunks[at]
            known[keys[at]] = (
                tokens,
                flags(
                    chunk.context,
                    f"{chunk.columns}\n{chunk.text}",
                    words.near(chunk.context),
                    bench.draft.analyzer,
                    tokens,
                    bench.embedder.max_tokens,
                ),
            )
    return [known[key] for key in keys]


def _all_of(document: Document) -> str:
    """Text, name, title and page labels: what contexts of headings are made of."""
    return "\n".join((document.text, document.name, document.title, *(p.label for p in document.pages)))


_WORD = re.compile(r"\w+(?:[-_./'’]\w+)*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PART = re.compile(r"[^\W_]+")


class Vocabulary:
    """A document's words by their parts, so that a context is held against a few of them and not against
    the whole text: a book has thousands of chunks."""

    def __init__(self, text: str) -> None:
        self._by_part: dict[str, set[str]] = {}
        for pattern in (_WORD, _NUMBER):
            for word in set(pattern.findall(text)):
                for part in _parts(word):
                    self._by_part.setdefault(part, set()).add(word)

    def near(self, context: str) -> str:
        """The document's words that share a part with the context, one a line."""
        words = (*_WORD.findall(context), *_NUMBER.findall(context))
        parts = {part for word in words for part in _parts(word)}
        return "\n".join(sorted({word for part in parts for word in self._by_part.get(part, ())}))


def _parts(word: str) -> set[str]:
    parts = {part.casefold() for part in _PART.findall(word)}
    parts |= {part.removesuffix("s") for part in parts}
    if word[0].isdigit():
        parts.add(word.replace(",", "").replace(".", ""))
    return parts
