"""Keep and share: settings as TOML, link and Python script; a trace as JSON, CSV and TREC run."""

from __future__ import annotations

import streamlit as st

from core.errors import SettingsError
from core.explanation import stage_title
from core.report.export import settings_to_python, trace_to_csv, trace_to_json, trace_to_trec
from core.settings import Settings
from core.trace import Trace
from pages.ui import draw, state


def keep_settings(query: str) -> None:
    """Export, import, link and script of the settings in force."""
    search = state.search_settings()
    both = Settings(state.index_settings(), search)
    name = state.collection().name
    st.download_button(
        "Export settings (TOML)",
        both.to_toml,
        file_name="rankscope-settings.toml",
        mime="application/toml",
        key="export_settings",
        icon=":material/download:",
        on_click="ignore",
    )
    given = st.file_uploader("Import settings (TOML)", type=["toml"], key="import_settings")
    if given is not None:
        _import(given.getvalue(), both)
    st.caption("Link that restores collection, query and settings")
    address = (st.context.url or "").partition("?")[0]
    st.code(address + state.share_link(query, search), language=None, wrap_lines=True)
    st.caption("The same search in Python")
    st.code(settings_to_python(both, name, query), language="python")


def _import(raw: bytes, used: Settings) -> None:
    """Offer to use the settings of a file, say that they are in use, or why they cannot be."""
    try:
        found = Settings.from_toml(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        draw.notice("This file is not UTF-8 text; export settings once to see the form.", "error")
        return
    except SettingsError as error:
        draw.notice(f"These settings cannot be used: {error}", "error")
        return
    if found == used:
        draw.notice("These settings are in use.", "info")
    elif found == Settings(state.index_draft(), used.search):
        draw.notice("In use, but for how documents are cut and indexed: index again for that.", "info")
    else:
        st.button("Use these settings", key="use_import", type="primary", on_click=_use, args=(found,))


def _use(found: Settings) -> None:
    state.set_index_draft(None if found.index == state.index_settings() else found.index)
    state.set_search_settings(found.search)


def keep_trace(trace: Trace) -> None:
    """Downloads of the trace; each file is made when it is asked for."""
    chosen = st.selectbox(
        "Stage of the TREC run",
        [stage.name for stage in trace.stages if stage.on and stage.unit != "item"],
        format_func=stage_title,
        index=None,
        placeholder="kept",
        key="trec_stage",
    )
    with st.container(horizontal=True):
        for label, ending, mime, make in (
            ("JSON", "json", "application/json", lambda: trace_to_json(trace)),
            ("CSV", "csv", "text/csv", lambda: trace_to_csv(trace)),
            ("TREC run", "run", "text/plain", lambda: trace_to_trec(trace, chosen or "kept")),
        ):
            st.download_button(
                label,
                make,
                file_name=f"rankscope-trace.{ending}",
                mime=mime,
                key=f"export_{ending}",
                icon=":material/download:",
                on_click="ignore",
            )
