"""A corpus: what is searched. `Corpus` is the view, `build_corpus` makes that of a collection,
`indexed_part` that of what is indexed of it."""

from core.corpus.build import build_corpus, indexed_part, is_built
from core.corpus.view import Corpus

__all__ = ["Corpus", "build_corpus", "indexed_part", "is_built"]
