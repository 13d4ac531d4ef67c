"""From a query to a trace: search the indexes once, then arithmetic that replay can repeat."""

from core.pipeline.assemble import replay
from core.pipeline.retriever import Result, Retriever
from core.pipeline.run import search

__all__ = ["Result", "Retriever", "replay", "search"]
