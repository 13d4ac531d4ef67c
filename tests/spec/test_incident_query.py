"""The lesson's query, on our own sample collection and on the lesson's report."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from core.corpus import Corpus
from core.embedding import load_embedder
from core.loading import load
from core.pipeline import search
from core.settings import DEFAULT_MODEL, IndexSettings, SearchSettings
from core.types import Document

pytestmark = pytest.mark.model

QUERY = "what happened with INC-2023-Q4-011?"
SAMPLE = Path(__file__).parents[2] / "data" / "sample"


def test_the_samples_incident_section_is_first_in_the_fused_list() -> None:
    documents = [
        document
        for path in sorted(SAMPLE.iterdir())
        for document in load(path.read_bytes(), path.name).documents
    ]
    trace = search(
        Corpus.from_documents(documents, IndexSettings(), load_embedder(DEFAULT_MODEL)), QUERY
    )
    trace.check()
    for stage in ("fused", "scored"):
        first = trace.corpus.chunk(int(trace.stage(stage).ranking.positions[0]))
        assert "Incident INC-2023-Q4-011" in first.heading_path[-1], stage
    assert trace.corpus.item_names[trace.passages[0].item] == "annual-report-2023.md"


@pytest.mark.parametrize("settings", [SearchSettings(), SearchSettings(two_stage=False)])
def test_the_lessons_report_gives_sections_10_and_2(eval_data: Path, settings: SearchSettings) -> None:
    text = (eval_data / "data/inc_2023_q4_011_report/report.md").read_text(encoding="utf-8")
    cuts = [0, *(at for at in range(len(text)) if text.startswith("\n## ", at)), len(text)]
    spans = tuple((a + (a > 0), b) for a, b in pairwise(cuts))
    document = Document("report", "report.md", "report", text, chunks=spans)
    corpus = Corpus.from_documents([document], IndexSettings(), load_embedder(DEFAULT_MODEL))
    assert len(corpus) == 15
    trace = search(corpus, QUERY, settings)
    titles = [
        corpus.chunk(hit.position).text.splitlines()[0] for hit in trace.stage("fused").ranking.head(3)
    ]
    print("\nsections in order:", titles)
    assert {title.split(":")[0] for title in titles[:2]} == {"## Section 10", "## Section 2"}
