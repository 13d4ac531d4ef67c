"""A corpus: what is searched. `Corpus` is the view, `build_corpus` makes that of a collection."""

from core.corpus.build import build_corpus, is_built
from core.corpus.view import Corpus

__all__ = ["Corpus", "build_corpus", "is_built"]
