"""From a query to a trace: search the indexes once, then arithmetic that replay can repeat."""

from core.pipeline.assemble import assemble, replay
from core.pipeline.retriever import Result, Retriever
from core.pipeline.run import record, search

__all__ = ["Result", "Retriever", "assemble", "record", "replay", "search"]
