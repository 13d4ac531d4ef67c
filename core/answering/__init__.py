"""Answers that cite: from the passages of a trace, or from a whole knowledge base in the prompt.

Each citation is a span of a document. An answer is on disk before it is shown (`store`), in the
collection's own folder, and reopened without being paid for again.
"""

from __future__ import annotations

from core.answering.answer import Answer, Cited, Part, State, as_text, numbered
from core.answering.ask import AnswerJob, ask
from core.answering.cost import BASE_LIMIT, OUTPUT, Estimate, estimate, may_fit, rough_prompt
from core.answering.inquiry import DEFAULT_MODEL, Inquiry, Source, from_documents, from_trace
from core.answering.prompt import MAX_TOKENS, NOT_FOUND, SYSTEM
from core.answering.request import request
from core.answering.store import AnswerStore

__all__ = [
    "BASE_LIMIT",
    "DEFAULT_MODEL",
    "MAX_TOKENS",
    "NOT_FOUND",
    "OUTPUT",
    "SYSTEM",
    "Answer",
    "AnswerJob",
    "AnswerStore",
    "Cited",
    "Estimate",
    "Inquiry",
    "Part",
    "Source",
    "State",
    "as_text",
    "ask",
    "estimate",
    "from_documents",
    "from_trace",
    "may_fit",
    "numbered",
    "request",
    "rough_prompt",
]
