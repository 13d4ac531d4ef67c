"""Forms in which sets of golden queries come and go: one file a form."""

from core.evaluation.forms.collect import ImportedSet
from core.evaluation.forms.jsonl import read_judgements

__all__ = ["ImportedSet", "read_judgements"]
