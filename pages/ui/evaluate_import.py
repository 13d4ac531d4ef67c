"""Golden queries in and out: sets in any form, those of the sample, and all of them as files."""

from __future__ import annotations

import hashlib
import io
import zipfile

import streamlit as st

from core.errors import RankscopeError
from core.evaluation import FORMS, Added, read_files, read_judgements
from core.sample import sample_queries
from pages.ui import draw
from pages.ui.evaluate_bench import Bench
from pages.ui.plain import counted, sentence

_NAMED = 50
_SAID = "evaluate_imported"
_ANY = "recognised by itself"


def outcome(bench: Bench) -> None:
    """Draw what the latest import into this collection came to, until it is closed."""
    where, said, problems = st.session_state.get(_SAID, ("", "", None))
    if where != bench.collection.id:
        return
    with st.container(key="judgements_imported"):
        with st.container(horizontal=True, vertical_alignment="center"):
            draw.notice(said, "error" if problems is None else "info")
            st.button("Close", key="judgements_imported_close", type="tertiary", on_click=_close)
        if problems:
            label = f"{counted(len(problems), 'remark')}: what did not match, or was changed"
            with st.expander(label, icon=":material/warning:", key="judgements_unmatched"):
                for problem in problems[:_NAMED]:
                    draw.text(problem, "rs-quiet")
                if len(problems) > _NAMED:
                    draw.text(f"and {len(problems) - _NAMED:,} more", "rs-quiet")


def _said(bench: Bench, source: str, added: Added) -> None:
    made = f"{counted(added.queries, 'new question')}, {counted(added.new, 'new judgement')}"
    same = f", {added.same:,} there already" if added.same else ""
    st.session_state[_SAID] = (bench.collection.id, f"{source}: {made}{same}.", added.problems)


def _failed(bench: Bench, error: RankscopeError) -> None:
    st.session_state[_SAID] = (bench.collection.id, sentence(str(error)), None)


def _close() -> None:
    st.session_state.pop(_SAID, None)


def load_sample(bench: Bench, primary: bool) -> None:
    """The button that loads the judged questions of the sample documents."""
    text = sample_queries()
    if not text:
        return
    if primary:
        st.button(
            "Load the judged questions", key="judgements_sample", type="primary",
            icon=":material/download_done:", on_click=_load_sample, args=(bench, text),
            help="Written for the sample documents: identifiers, paraphrases, two-span and no-answer ones",
        )  # fmt: skip


def _load_sample(bench: Bench, text: str) -> None:
    try:
        read = read_judgements(text, bench.documents)
        added = bench.store.add(read, bench.documents, "sample_queries.jsonl")
    except RankscopeError as error:
        _failed(bench, error)
    else:
        _said(bench, "The sample's questions", added)


def importing(bench: Bench) -> None:
    """Upload a set, see what is in it, add it."""
    with st.popover("Import", icon=":material/upload:", key="judgements_import_open"):
        draw.text(
            "Files of one set, in one of these forms. Quotes and spans are looked up in the collection's "
            "documents; documents are matched by id, or by file name with or without its ending.",
            "rs-quiet",
        )
        forms = {_ANY: ""} | {one.title: name for name, one in FORMS.items()}
        form = st.selectbox(
            "Form", list(forms), key="judgements_form",
            help="  \n".join(f"{one.title}: {one.help}" for one in FORMS.values()),
        )  # fmt: skip
        folder = st.toggle(
            "A whole folder",
            key="judgements_folder",
            help="For forms with files in folders, such as qrels/",
        )
        given = st.file_uploader(
            "Files", accept_multiple_files="directory" if folder else True,
            key=f"judgements_files_{st.session_state.get('judgements_turn', 0)}_{folder}",
        )  # fmt: skip
        if given:
            files = {one.name: one.getvalue() for one in given}
            st.button(
                f"Import {counted(len(files), 'file')}", key="judgements_import", type="primary",
                on_click=_import, args=(bench, files, forms[form]),
            )  # fmt: skip


def _import(bench: Bench, files: dict[str, bytes], form: str) -> None:
    try:
        read = read_files(files, bench.documents, form)
        source = next(iter(files)) if len(files) == 1 else f"{len(files)} files"
        added = bench.store.add(read.judgements, bench.documents, source)
    except RankscopeError as error:
        _failed(bench, error)
        return
    form = FORMS[read.form].title if read.form in FORMS else read.form
    _said(bench, f"{source}, read as {form}", added)
    st.session_state["judgements_turn"] = st.session_state.get("judgements_turn", 0) + 1


def exporting(bench: Bench) -> None:
    """All golden queries in the form that is chosen, made when it is asked for."""
    with st.popover("Export", icon=":material/download:", key="judgements_export_open"):
        names = list(FORMS)
        form = st.selectbox(
            "Form", names, index=names.index("jsonl"), key="judgements_export_form",
            format_func=lambda name: FORMS[name].title,
        )  # fmt: skip
        draw.text(FORMS[form].help, "rs-quiet")
        digest = hashlib.sha256(bench.stamp.encode()).hexdigest()[:8]
        st.download_button(
            "Download", lambda: _packed(bench, form), file_name=f"golden-queries-{form}.zip",
            mime="application/zip", key=f"judgements_export_{form}_{digest}", icon=":material/download:",
            on_click="ignore",
        )  # fmt: skip


def _packed(bench: Bench, form: str) -> bytes:
    """The files of a form as a ZIP, the same bytes for the same judgements."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in FORMS[form].write(bench.judgements, bench.documents).items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return packed.getvalue()
