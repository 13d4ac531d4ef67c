"""A document's text on the page, letter by letter, with its chunks, overlaps and cut-off ends marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.report.spans import Run


@dataclass(frozen=True, slots=True)
class Label:
    """What stands above a chunk: number from 1, sizes, heading path; `warning` where it is cut off."""

    number: int
    facts: str
    path: str = ""
    warning: str = ""


def view_data(
    text: str, runs: Sequence[Run], label: Callable[[int], Label], view_id: str, focus: str = ""
) -> dict[str, Any]:
    """What the component draws: blocks of runs, a block for each place where chunks begin.

    `focus` names the marked span; the view scrolls to it once. Texts stay texts: the component sets
    them as text content.
    """
    blocks: list[dict[str, Any]] = []
    for run in runs:
        if run.begins or not blocks:
            blocks.append({"labels": [_label(label(number)) for number in run.begins], "runs": []})
        blocks[-1]["runs"].append(
            {
                "text": text[run.start : run.end],
                "kind": " ".join(_kinds(run)),
                "tip": _tip(run),
                # Where a chunk ends at a label or a gap its end is plain to see.
                "ended": [n + 1 for n in run.ends] if run.depth and not run.begins else [],
            }
        )
    return {"id": view_id, "focus": focus, "blocks": blocks}


def _label(label: Label) -> dict[str, Any]:
    return {"number": label.number, "facts": label.facts, "path": label.path, "warning": label.warning}


def _kinds(run: Run) -> list[str]:
    kinds = ["gap"] if run.chunk is None else ["ab"[run.chunk % 2]]
    if run.depth > 1:
        kinds.append("over")
    if run.unseen:
        kinds.append("cut" if run.unseen == run.depth else "part")
    if run.marked:
        kinds.append("mark")
    return kinds


def _tip(run: Run) -> str:
    if run.chunk is None:
        return ""
    tip = f"chunk {run.chunk + 1}"
    if run.depth > 1:
        tip += f" and {run.depth - 1} before it"
    if run.unseen:
        tip += "; past what the model reads" + ("" if run.unseen == run.depth else " in one of them")
    return tip


_HTML = """
<div class="key" aria-hidden="true">
  <span class="a" data-kind="a">chunk</span><span class="b" data-kind="b">next chunk</span>
  <span class="a over" data-kind="over">in more than one</span>
  <span class="a cut" data-kind="cut">not seen by the model</span>
  <span class="a part" data-kind="part">cut off in one chunk, seen in another</span>
  <span class="mark" data-kind="mark">opened passage</span>
</div>
<div class="doc" role="region" aria-label="Text of the document with its chunks" tabindex="0"></div>
"""

_CSS = """
:host, .doc, .key { color: var(--st-text-color); font-family: var(--st-font); }
.key { display: flex; flex-wrap: wrap; gap: .25rem .5rem; font-size: .8rem; margin-bottom: .4rem; }
.key span { padding: 0 .4rem; border-radius: .2rem; }
.key span[hidden] { display: none; }
.doc {
  max-height: 72vh; overflow: auto; padding: .25rem .75rem .75rem; font-size: .94rem; line-height: 1.6;
  border: 1px solid var(--st-border-color); border-radius: .5rem; scroll-behavior: auto;
}
.doc:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.label {
  display: flex; flex-wrap: wrap; gap: 0 .6rem; margin-top: .7rem; padding-top: .2rem; user-select: none;
  border-top: 1px solid var(--st-border-color); font-size: .76rem; line-height: 1.5;
  font-variant-numeric: tabular-nums;
}
.label:first-child { margin-top: 0; border-top: 0; }
.label .number { font-weight: 700; }
.label .facts, .label .path { color: color-mix(in srgb, var(--st-text-color) 72%, transparent); }
.label .path { overflow-wrap: anywhere; }
.label .warning::before { content: "\\26a0  "; }
.label .warning { font-weight: 600; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; text-align: start; }
.a { background-color: color-mix(in srgb, #2f7de1 21%, transparent); }
.b { background-color: color-mix(in srgb, #d9910a 24%, transparent); }
.over {
  background-image: repeating-linear-gradient(135deg,
    color-mix(in srgb, var(--st-text-color) 30%, transparent) 0 1px, transparent 1px 6px);
  border-bottom: 2px dotted color-mix(in srgb, var(--st-text-color) 70%, transparent);
}
.cut {
  color: color-mix(in srgb, var(--st-text-color) 52%, transparent); background-color:
  color-mix(in srgb, var(--st-text-color) 9%, transparent); text-decoration: underline dashed 1px;
}
.part { text-decoration: underline dashed 1px; }
.mark {
  box-shadow: inset 0 -2px 0 var(--st-primary-color), inset 0 2px 0 var(--st-primary-color);
  background-color: color-mix(in srgb, var(--st-primary-color) 30%, transparent); font-weight: 600;
}
.end {
  font-size: .7rem; user-select: none; padding: 0 .2rem;
  color: color-mix(in srgb, var(--st-text-color) 72%, transparent);
}
.end::before { content: "\\25c2 end of " attr(data-numbers); }
"""

_JS = """
export default function({ data, parentElement }) {
  const doc = parentElement.querySelector(".doc");
  const scrolled = doc.dataset.id === data.id ? doc.scrollTop : 0;
  const make = (name, kind, text) => {
    const made = document.createElement(name);
    made.className = kind;
    if (text) made.textContent = text;
    return made;
  };
  const all = document.createDocumentFragment();
  const kinds = new Set();
  let first = null;
  for (const block of data.blocks) {
    for (const label of block.labels) {
      const line = make("div", "label", "");
      line.append(make("span", "number", String(label.number)), make("span", "facts", label.facts));
      if (label.warning) line.append(make("span", "warning", label.warning));
      if (label.path) {
        const path = make("bdi", "path", label.path);
        line.append(path);
      }
      all.append(line);
    }
    const text = make("div", "text", "");
    text.dir = "auto";
    for (const run of block.runs) {
      if (run.ended.length) {
        const end = make("span", "end", "");
        end.dataset.numbers = run.ended.join(", ");
        text.append(end);
      }
      const part = make("span", run.kind, run.text);
      if (run.tip) part.title = run.tip;
      text.append(part);
      part.classList.forEach((kind) => kinds.add(kind));
      if (!first && part.classList.contains("mark")) first = part;
    }
    all.append(text);
  }
  doc.replaceChildren(all);
  doc.dataset.id = data.id;
  for (const entry of parentElement.querySelectorAll(".key span")) {
    entry.hidden = !kinds.has(entry.dataset.kind);
  }
  if (first && doc.dataset.focus !== data.focus) {
    // Only this box scrolls: the settings and the sizes around it stay where they are.
    const away = first.getBoundingClientRect().top - doc.getBoundingClientRect().top;
    doc.scrollTop += away - doc.clientHeight / 3;
  } else {
    doc.scrollTop = scrolled;
  }
  doc.dataset.focus = data.focus;
}
"""

_view = st.components.v2.component("rankscope_document_view", html=_HTML, css=_CSS, js=_JS)


def draw_document(data: dict[str, Any], key: str) -> None:
    """Draw what `view_data` made."""
    _view(data=data, key=key)
