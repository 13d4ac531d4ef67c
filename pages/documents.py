"""Documents: collections, uploads with their results, and what is in the collection."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import streamlit as st

from core.access import Access
from core.collection import Collection, DocumentsOfVersion, FileInfo
from core.corpus import Corpus
from core.errors import RankscopeError
from core.sample import sample_files
from pages.ui import draw, people, resources, state
from pages.ui.access_box import told
from pages.ui.access_desk import access_from_field, access_of_files, left_out
from pages.ui.account import NO_ADMINISTRATOR
from pages.ui.collections import collection_bar, say, take_said
from pages.ui.frame import frame
from pages.ui.index_bar import index_bar
from pages.ui.links import open_document
from pages.ui.listing import documents_of, files_of
from pages.ui.plain import counted, plain
from pages.ui.uploads import add_files, upload_area


def main() -> None:
    frame("documents")
    collection, manages = state.collection(), people.may_manage()
    files = files_of(collection)
    with st.container(horizontal=True, vertical_alignment="center", key="documents_head"):
        st.subheader(f"Documents of {plain(collection.name)}", anchor=False, width="content")
        if manages:
            collection_bar(collection)
    take_said()
    left_out()
    indexing, reading = index_bar(collection), None
    if manages:
        if not files:
            _empty(collection)
        with st.expander("Add documents", expanded=True, key="upload_section"):
            reading = upload_area(collection)
    else:
        _for_viewers(files)
    if files:
        with st.container(key="documents_list"):
            _list(collection, files)
    # Last, so that the page is whole while they run.
    if reading:
        reading()
    elif indexing:
        indexing()


def _for_viewers(files: list[FileInfo]) -> None:
    told = (
        "These are the documents that you may see."
        if files
        else "There is nothing here that you may see."
    )
    draw.text(f"{told} Adding, removing and who may see what is for administrators.", "rs-quiet")
    if people.sign_in_needed() and not people.administrators_named():
        draw.notice(NO_ADMINISTRATOR, "warning")


def _empty(collection: Collection) -> None:
    draw.notice("This collection is empty. Add files below, or begin with the sample documents.", "info")
    st.button("Add the sample documents", key="sample_add", on_click=_add_sample, args=(collection,))


def _add_sample(collection: Collection) -> None:
    add_files(sample_files(), collection)


def _list(collection: Collection, files: list[FileInfo]) -> None:
    documents = documents_of(collection)
    counts = _chunk_counts(collection, documents)
    manages = people.may_manage()
    access = _access(documents) if manages else None
    first = dict(zip(reversed(documents.file_hashes), reversed(range(len(documents))), strict=True))
    with st.container(horizontal=True, vertical_alignment="center", key="documents_list_head"):
        st.subheader("In the collection", anchor=False, width="content")
        if manages:
            access_from_field(collection, documents)
    wanted = st.text_input(
        "Filter",
        key="documents_filter",
        placeholder="Part of a name, title or format",
        label_visibility="collapsed",
    ).casefold()
    titles = {
        one.file_hash: documents.titles[first[one.file_hash]] for one in files if one.file_hash in first
    }
    shown = [
        one for one in files
        if wanted in f"{one.name}\n{titles.get(one.file_hash, '')}\n{one.format}".casefold()
    ]  # fmt: skip
    st.caption(
        f"{len(shown):,} of {counted(len(files), 'file')} · {counted(len(documents), 'document')} · "
        f"{sum(one.characters for one in files):,} characters. "
        f"Choose rows to open{', delete, or set who may see' if manages else ''} them."
    )
    chosen = st.dataframe(
        [_row(one, titles.get(one.file_hash, ""), counts, access) for one in shown],
        hide_index=True,
        key=f"documents_table_{collection.id}_{collection.version}_{wanted}",
        on_select="rerun",
        selection_mode="multi-row",
        column_config=_COLUMNS | _widths(shown),
        placeholder="",
    )
    selected = [shown[row] for row in chosen["selection"]["rows"] if row < len(shown)]
    if selected:
        _actions(collection, selected, documents, first)


_COLUMNS = {
    "Name": st.column_config.TextColumn(width="medium"),
    "Title": st.column_config.TextColumn(width="large"),
    "Added": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
    **{
        name: st.column_config.NumberColumn(format="localized")
        for name in ("Documents", "Pages", "Characters", "Chunks")
    },
}


def _widths(shown: list[FileInfo]) -> dict[str, Any]:
    """Room for warnings where there are any."""
    warned = any(one.warnings for one in shown)
    return {"Warnings": st.column_config.TextColumn(width="large" if warned else "small")}


def _row(
    one: FileInfo, title: str, counts: dict[str, int] | None, access: dict[str, str] | None
) -> dict[str, Any]:
    seen_by = {} if access is None else {"Who may see": access.get(one.file_hash, "")}
    return {
        "Name": one.name,
        "Title": title if one.documents == 1 else f"{title} and {one.documents - 1:,} more",
        **seen_by,
        "Format": one.format,
        "Documents": one.documents,
        "Pages": one.pages or None,
        "Characters": one.characters,
        "Chunks": None if counts is None else counts.get(one.file_hash),
        "Encoding": one.encoding or "",
        "Warnings": "; ".join(one.warnings),
        "Added": datetime.fromisoformat(one.added_at),
    }


def _actions(
    collection: Collection,
    selected: list[FileInfo],
    documents: DocumentsOfVersion,
    first: dict[str, int],
) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="documents_actions"):
        for one in selected[:3]:
            if one.file_hash in first:
                open_document(f"Open {plain(one.name)}", documents.ids[first[one.file_hash]])
        if not people.may_manage():
            return
        access_of_files(collection, selected, documents)
        count = counted(len(selected), "file")
        with st.popover(f"Delete {count}", icon=":material/delete:", key="documents_delete_open"):
            st.write("Delete for good, from the collection and from every index?")
            st.text("\n".join(one.name for one in selected[:20]) + ("\n…" if len(selected) > 20 else ""))
            st.button(
                f"Delete {count} for good",
                key="documents_delete",
                type="primary",
                on_click=_delete,
                args=(collection, selected),
            )


def _delete(collection: Collection, selected: list[FileInfo]) -> None:
    """The index that is served follows by itself: nothing of it has to be made again."""
    if not people.may_manage():
        return
    deleted = 0
    for one in selected:
        try:
            collection.remove(one.file_hash)
            deleted += 1
        except RankscopeError as error:
            state.notify(str(error))
    if deleted:
        say(f"Deleted {counted(deleted, 'file')}.")


def _access(documents: DocumentsOfVersion) -> dict[str, str]:
    """File hash → who may see its documents."""
    of_file: dict[str, set[Access]] = {}
    for file_hash, access in zip(documents.file_hashes, documents.access, strict=True):
        of_file.setdefault(file_hash, set()).add(access)
    return {file_hash: told(access) for file_hash, access in of_file.items()}


def _chunk_counts(collection: Collection, documents: DocumentsOfVersion) -> dict[str, int] | None:
    """File hash → chunks in the index, for the files that are in it; None without an index."""
    try:
        served: Corpus | None = resources.seen(collection)
    except RankscopeError:
        return None
    if served is None:
        return None
    file_of = dict(zip(documents.ids, documents.file_hashes, strict=True))
    counts: dict[str, int] = {}
    for document_id, count in zip(served.item_ids, np.diff(served.first_chunk).tolist(), strict=True):
        if document_id in file_of:
            counts[file_of[document_id]] = counts.get(file_of[document_id], 0) + count
    return counts


try:
    main()
except RankscopeError as error:
    draw.notice(str(error), "error")
