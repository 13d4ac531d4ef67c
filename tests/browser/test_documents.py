"""The Documents page as a person uses it."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.collection import Collection, open_collection
from tests.browser.conftest import Visit, make_collection

expect.set_options(timeout=30_000)

HOSTILE = "**b** [x](http_evil.example) $a$ :red[x] :smile: a->b <img src=x onerror=alert(1)>.txt"


def open_documents(visit: Visit, server: str, collection: str) -> Page:
    page = visit.page
    page.goto(f"{server}/documents?collection={collection}")
    expect(page.locator(".st-key-upload_section")).to_be_visible()
    return page


def choose(page: Page, files: list[Path]) -> None:
    page.get_by_test_id("stFileUploader").locator("input[type=file]").set_input_files(files)
    expect(page.locator(".st-key-upload_add button").first).to_be_visible()


def add(page: Page) -> None:
    page.locator(".st-key-upload_add button").first.click()


def rows(page: Page, key: str) -> list[list[str]]:
    """The texts of a table, which is drawn on a canvas, from what it tells screen readers."""
    grid = page.locator(f".st-key-{key} table[role=grid]").first
    expect(grid).to_be_attached()
    return [
        [cell.inner_text() for cell in row.locator("td").all()] for row in grid.locator("tbody tr").all()
    ]


def select_row(page: Page, number: int) -> None:
    canvas = page.locator("[class*=st-key-documents_table] canvas").first
    canvas.scroll_into_view_if_needed()
    # The grid puts a transparent scroller over its canvas.
    canvas.click(position={"x": 18, "y": 35 + 35 * number + 17}, force=True)


def slow_files(folder: Path) -> list[Path]:
    """150 files that take seconds to read and hold next to nothing."""
    paths = [folder / f"{number:03}.html" for number in range(150)]
    for path in paths:
        path.write_text("<p></p>" * 10_000 + f"<p>Text of {path.name}.</p>")
    return paths


@pytest.fixture
def stored(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lets the test look into the server's data folder."""
    monkeypatch.setenv("RANKSCOPE_HOME", str(home))
    return home


def names(collection: str) -> list[str]:
    return [file.name for file in open_collection(collection).files()]


def test_upload_results_list_and_delete(visit: Visit, server: str, stored: Path, tmp_path: Path) -> None:
    make_collection(stored, "Uploads", {})
    page = open_documents(visit, server, "Uploads")
    expect(page.get_by_text("This collection is empty")).to_be_visible()
    files = {
        "seals.md": b"# Seals\n\nA worn seal leaks.\n",
        "bad.pdf": b"%PDF-1.7 broken",
        HOSTILE: b"Text.",
    }
    paths = [tmp_path / name for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)

    choose(page, paths)
    add(page)

    expect(page.get_by_text("Indexed: 2 chunks of 2 documents.")).to_be_visible()
    expect(page.get_by_text("bad.pdf: damaged PDF")).to_be_visible()
    assert [row[:2] for row in rows(page, "upload_outcomes")] == [
        ["bad.pdf", "failed"],  # what failed stands first
        ["seals.md", "added"],
        [HOSTILE, "added"],
    ]
    assert names("Uploads") == ["seals.md", HOSTILE]
    page.locator(".st-key-upload_close button").click()

    select_row(page, 1)
    opened = page.locator(".st-key-documents_actions")
    expect(opened.get_by_text(HOSTILE, exact=True).first).to_be_visible()
    opened.get_by_role("button", name="Delete 1 file").click()
    page.locator(".st-key-documents_delete button").click()

    expect(page.get_by_text("Deleted 1 file.")).to_be_visible()
    expect(page.get_by_text("Index up to date: 1 chunk")).to_be_visible()
    assert names("Uploads") == ["seals.md"]
    assert page.title() == "Documents · Rankscope"
    assert visit.errors == []
    assert visit.outside == []


def test_hostile_files_are_told_each_in_its_row(
    visit: Visit, server: str, stored: Path, tmp_path: Path
) -> None:
    make_collection(stored, "Hostile", {})
    inflating = tmp_path / "inflating.docx"
    with zipfile.ZipFile(inflating, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("word/document.xml", b" " * 30_000_000)
    files = {
        "empty.txt": b"",
        "binary.txt": bytes(range(256)) * 40,
        "wide.txt": "Größe: 3 µm".encode("utf-16"),
        "lines.jsonl": b'{"text": "Kept."}\nnot json\n\n{"text": "Kept too."}\n',
        "formulas.csv": b'name,note\na,"=1+1"\nb,"two\nlines"\n',
        "..%2F..%2Foutside.txt": b"Nothing climbs.",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    page = open_documents(visit, server, "Hostile")
    choose(page, [*(tmp_path / name for name in files), inflating])
    add(page)

    expect(page.get_by_text("Indexed: 6 chunks of 6 documents.")).to_be_visible()
    table = {row[0]: (row[1], row[2], row[6], row[7]) for row in rows(page, "upload_outcomes")}
    assert list(table)[:3] == ["empty.txt", "binary.txt", "inflating.docx"]
    assert "empty file" in table["empty.txt"][3]
    assert "not a text file" in table["binary.txt"][3]
    assert "unpacks to 29 MiB" in table["inflating.docx"][3]
    assert table["wide.txt"] == ("added", "1", "utf-16-le", "")
    assert table["lines.jsonl"][:2] == ("added", "2")
    assert "line 2 (broken JSON" in table["lines.jsonl"][3]
    assert table["formulas.csv"] == ("added", "2", "utf-8", "")
    assert table["..%2F..%2Foutside.txt"][0] == "added"
    assert not list(stored.rglob("outside*"))
    assert not list(stored.parent.glob("outside*"))
    assert visit.errors == []


def test_a_page_reloaded_while_files_are_read_or_indexed_goes_on(
    visit: Visit, server: str, stored: Path, tmp_path: Path
) -> None:
    make_collection(stored, "Reloaded", {})
    paths = slow_files(tmp_path)
    page = open_documents(visit, server, "Reloaded")
    choose(page, paths)
    add(page)
    expect(page.locator(".st-key-upload_running")).to_be_visible()
    page.reload()

    expect(page.get_by_text(re.compile(r"An upload was interrupted: \d+ files of 150"))).to_be_visible()
    page.locator(".st-key-upload_go_on button").click()
    expect(page.get_by_text("of 150 documents.")).to_be_visible(timeout=60_000)
    assert names("Reloaded") == [path.name for path in paths]


def test_stop_keeps_what_was_added(visit: Visit, server: str, stored: Path, tmp_path: Path) -> None:
    make_collection(stored, "Stopped", {})
    paths = slow_files(tmp_path)
    page = open_documents(visit, server, "Stopped")
    choose(page, paths)
    add(page)
    page.locator(".st-key-upload_stop button").first.click()

    told = page.get_by_text(re.compile(r"Stopped: (\d+) files not added"))
    expect(told).to_be_visible()
    left = int(re.findall(r"Stopped: (\d+)", told.inner_text())[0])
    assert names("Stopped") == [path.name for path in paths[: 150 - left]]
    assert 0 < left < 150
    expect(page.get_by_text(f"of {150 - left} documents.")).to_be_visible()

    # The files are still in the uploader: adding them again takes those that are missing.
    add(page)
    expect(page.get_by_text("of 150 documents.")).to_be_visible(timeout=60_000)
    assert names("Stopped") == [path.name for path in paths]


def test_a_folder_is_uploaded_with_all_that_is_in_it(
    visit: Visit, server: str, stored: Path, tmp_path: Path
) -> None:
    make_collection(stored, "Folder", {})
    (tmp_path / "box" / "inner").mkdir(parents=True)
    (tmp_path / "box" / "one.txt").write_text("One.")
    (tmp_path / "box" / "inner" / "two.md").write_text("# Two\n\nText.")
    page = open_documents(visit, server, "Folder")
    page.locator(".st-key-upload_kind").get_by_text("Folder").click()
    expect(page.locator("[class*=st-key-upload_folder_]")).to_be_visible()

    choose(page, [tmp_path / "box"])
    add(page)

    expect(page.get_by_text("Indexed: 2 chunks of 2 documents.")).to_be_visible()
    assert sorted(name.rpartition("/")[2] for name in names("Folder")) == ["one.txt", "two.md"]


def test_a_collection_is_made_and_deleted(visit: Visit, server: str, stored: Path) -> None:
    make_collection(stored, "Kept", {"a.txt": "A text."})
    page = open_documents(visit, server, "Kept")
    page.get_by_role("button", name="New collection").click()
    page.get_by_label("Name of the new collection").fill("Short **lived** :smile:")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Documents of Short **lived** :smile:")).to_be_visible()

    page.locator(".st-key-collection_bar").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete the collection").click()

    expect(page.get_by_role("heading", name="Documents of Short")).to_have_count(0)
    assert isinstance(open_collection("Kept"), Collection)
    with pytest.raises(Exception, match="there is no collection"):
        open_collection("Short **lived** :smile:")


def test_the_page_does_not_scroll_sideways(visit: Visit, server: str, stored: Path) -> None:
    make_collection(stored, "Narrow", {"a" * 120 + ".txt": "A text."})
    for width in (1440, 390):
        visit.page.set_viewport_size({"width": width, "height": 844})
        page = open_documents(visit, server, "Narrow")
        expect(page.locator("[class*=st-key-documents_table]")).to_be_visible()
        main = page.get_by_test_id("stMain")
        assert main.evaluate("e => e.scrollWidth - e.clientWidth") <= 1
