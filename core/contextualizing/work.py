"""What is left to write: the chunks without a context, grouped by the text that is sent with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from core.contextualizing.prompt import (
    SYSTEM,
    Span,
    question,
    request,
    window_of,
    windows,
)
from core.contextualizing.store import ContextStore
from core.documents import Documents
from core.errors import ContextError
from core.llm import Claude
from core.prompts import rough_tokens
from core.protocols import Progress
from core.settings import ContextSettings
from core.types import text_hash

USUAL_FLOOR = 1_024
"""The shortest prefix taken to be cacheable where the price list does not know the model, in tokens."""

_FRAME = 64  # tokens of what frames a message, generously


@dataclass(frozen=True, slots=True)
class Piece:
    """Chunks of one document that are asked for with the same text: the document, or a window of it.

    `tokens` counts that text, `chunk_tokens` each chunk; `exact` when the model's server counted the
    document (chunks and windows take their share of it by length), otherwise they are estimates.
    """

    item: int
    text_hash: str
    window: Span
    windowed: bool
    spans: tuple[Span, ...]
    tokens: int
    chunk_tokens: tuple[int, ...]
    exact: bool


@dataclass(frozen=True)
class Work:
    """`system` and `question` are the prompt's own tokens, before and after the mark.

    Counted beside the pieces: chunks `done` (they have a context, or a person or the model refused one),
    `waiting` in an open batch, `whole` (the chunk is all the document has, and needs no context), and
    the documents that are `windowed`.
    """

    pieces: tuple[Piece, ...]
    system: int
    question: int
    done: int
    waiting: int
    whole: int
    windowed: int
    exact: bool

    @property
    def chunks(self) -> int:
        """Chunks to be asked for."""
        return sum(len(piece.spans) for piece in self.pieces)

    def prefix(self, piece: Piece) -> int:
        """Tokens before the mark: what the cache can hold."""
        return self.system + piece.tokens

    def cached(self, piece: Piece, floor: int) -> bool:
        """Whether the prefix is worth a mark: long enough for the cache, and read at least once."""
        return len(piece.spans) > 1 and self.prefix(piece) >= floor


def survey(
    store: ContextStore,
    documents: Documents,
    spans: Sequence[Sequence[Span]],
    settings: ContextSettings,
    max_input_tokens: int | None = None,
) -> Work:
    """What is to be asked for the chunks at `spans` (one list for each document).

    `max_input_tokens` is the most the model takes (`ModelFacts`). Documents with nothing to ask are not
    read. Equal texts are asked for once. Raises ContextError as the store does, and for a model that is too
    small.
    """
    key = settings.writer_key
    texts = store.text_hashes(documents)
    counts = store.counts(settings.model)
    settled, waiting = store.settled(key), store.waiting(key)
    system, asked, exact = _overhead(settings, counts)
    pieces: list[Piece] = []
    seen: dict[str, set[Span]] = {}
    n_done = n_waiting = n_whole = n_windowed = 0
    for item, (text, cut) in enumerate(zip(texts, spans, strict=True)):
        old, sent = settled.get(text, set()), waiting.get(text, set())
        here = seen.setdefault(text, set())
        wanted = [span for span in map(_span, cut) if span not in here]
        here.update(wanted)
        n_done += sum(span in old for span in wanted)
        n_waiting += sum(span in sent for span in wanted if span not in old)
        wanted = [span for span in wanted if span not in old and span not in sent]
        if not wanted:
            continue
        words = documents[item].text
        left = [span for span in wanted if not _is_whole(words, span)]
        n_whole += len(wanted) - len(left)
        if not left:
            continue
        tokens = counts.get(text) or rough_tokens(words)
        share = tokens / len(words)
        room = settings.window
        if max_input_tokens:  # the answer, the prompt and the chunk need room too
            longest = math.ceil(share * max(end - start for start, end in left))
            others = settings.max_tokens + system + asked + longest + _FRAME
            if max_input_tokens - others < longest:
                raise ContextError(
                    f"{settings.model} takes {max_input_tokens:,} tokens, and prompt, answer and a chunk of "
                    f"{longest:,} need {others + longest:,} with as much of the document around it; take "
                    "smaller chunks, a shorter longest context or another model"
                )
            room = min(room, max_input_tokens - others)
        parts = windows(len(words), tokens, room)
        n_windowed += len(parts) > 1
        grouped: dict[int, list[Span]] = {}
        for span in left:
            grouped.setdefault(window_of(span, parts, len(words)), []).append(span)
        for at, group in sorted(grouped.items()):
            first, last = parts[at]
            pieces.append(
                Piece(
                    item,
                    text,
                    parts[at],
                    len(parts) > 1,
                    tuple(group),
                    math.ceil(share * (last - first)),
                    tuple(math.ceil(share * (end - start)) for start, end in group),
                    text in counts,
                )
            )
    exact = exact and all(piece.exact for piece in pieces)
    return Work(tuple(pieces), system, asked, n_done, n_waiting, n_whole, n_windowed, exact)


def count_documents(
    store: ContextStore,
    documents: Documents,
    work: Work,
    settings: ContextSettings,
    claude: Claude,
    quiet: Mapping[str, Any],
    concurrency: int = 4,
    progress: Progress | None = None,
) -> None:
    """Let the model's server count each document of the work, once; `survey` then knows the counts.

    Free of charge. Raises LlmError where the server cannot count, and what `progress` raises; what was
    counted before is kept.
    """
    prompt = _prompt_name(settings)

    def count(name: str, words: str) -> int:
        return claude.count_tokens(request(settings, quiet, words, ""))

    known = store.counts(settings.model)
    if prompt not in known:
        known[prompt] = count(prompt, "")
        store.put_count(prompt, settings.model, known[prompt])
    items = {piece.text_hash: piece.item for piece in work.pieces if piece.text_hash not in known}
    with ThreadPoolExecutor(concurrency) as pool:
        waiting = {
            pool.submit(lambda name, item: count(name, documents[item].text), name, item): name
            for name, item in items.items()
        }
        try:
            for done, future in enumerate(as_completed(waiting), 1):
                tokens = max(future.result() - known[prompt], 1)
                store.put_count(waiting[future], settings.model, tokens)
                if progress:
                    progress(done, len(items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _prompt_name(settings: ContextSettings) -> str:
    return text_hash("\0".join(("prompt", SYSTEM, question(settings, ""))))


def _overhead(settings: ContextSettings, counts: Mapping[str, int]) -> tuple[int, int, bool]:
    """Tokens of the prompt itself before and after the mark, and whether they were counted."""
    system, asked = rough_tokens(SYSTEM), rough_tokens(question(settings, ""))
    counted = counts.get(_prompt_name(settings))
    if counted is None:
        return system, asked, False
    before = round(counted * system / (system + asked))
    return before, counted - before, True


def _span(span: Sequence[int]) -> Span:
    return int(span[0]), int(span[1])


def _is_whole(text: str, span: Span) -> bool:
    return not text[: span[0]].strip() and not text[span[1] :].strip()
