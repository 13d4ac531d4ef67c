"""Contexts: a short text that situates each chunk in its document, put beside it in the indexes.

`contexts_for` is what a corpus asks. Contexts that a model writes are asked for by a `job` (or `batch`),
after a `plan` of what is left to write (`work`), and kept in the `store`: paid once.
"""

from core.contextualizing.use import contexts_for

__all__ = ["contexts_for"]
