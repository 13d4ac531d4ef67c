"""Chunks by their words, wherever they stand in a result: to ask where one was lost."""

from __future__ import annotations

from itertools import pairwise

from core.report.tables import item_label
from core.trace import CorpusView


def find_chunks(corpus: CorpusView, words: str) -> list[int]:
    """Positions of the chunks that hold every word, in letters as written but for case, in order.

    A word may also stand in the document's title or file name. A chunk's label, such as B4, gives that
    chunk first. No words give no chunks. Raises CollectionError when a document was deleted since.
    """
    wanted = words.casefold().split()
    if not wanted:
        return []
    named: list[int] = []
    found: list[int] = []
    firsts = corpus.item_of.searchsorted(range(len(corpus.item_ids) + 1)).tolist()
    for item, (first, stop) in enumerate(pairwise(firsts)):
        if len(wanted) == 1:
            label = item_label(item).casefold()
            number = wanted[0].removeprefix(label)
            if number != wanted[0] and number.isdecimal() and 1 <= int(number) <= stop - first:
                named.append(first + int(number) - 1)
        title = f"{corpus.item_titles[item]}\n{corpus.item_names[item]}".casefold()
        left = [word for word in wanted if word not in title]
        text = corpus.document(item).text
        whole = text.casefold()
        if any(word not in whole for word in left):
            continue
        for position in range(first, stop):
            part = text[corpus.starts[position] : corpus.ends[position]].casefold() if left else ""
            if all(word in part for word in left):
                found.append(position)
    return named + [position for position in found if position not in named]


def chunks_of_item(corpus: CorpusView, item: int) -> range:
    """The positions of an item's chunks."""
    first, stop = corpus.item_of.searchsorted((item, item + 1)).tolist()
    return range(first, stop)


def around(text: str, words: str, width: int = 140) -> str:
    """A piece of a text, on one line, in which the first of the words stands that is in it."""
    lower = text.lower()
    places = (lower.find(word) for word in words.lower().split())
    at = max(0, next((place for place in places if place >= 0), 0) - width // 3)
    piece = " ".join(text[at : at + width].split())
    return f"{'…' if at else ''}{piece}{'…' if at + width < len(text) else ''}"
