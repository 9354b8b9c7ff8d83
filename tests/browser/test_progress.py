"""The reader's record: kept in the browser, shown, exported, imported and forgotten."""

import json
import re

import pytest
from accessible import violations
from conftest import put_together, visits
from playwright.sync_api import expect

from autograder.judging.exercise import names

PAGE = "book/progress.html"


@pytest.fixture(scope="module")
def record(browser, address):
    """What the browser keeps of a reader who has solved one exercise and answered a question of patchify."""
    with visits(browser, address) as visit:
        page = visit("book/patchify.html")
        solve_and_answer(page)
        yield page.context.storage_state()


@pytest.fixture
def page(visit, record):
    """That reader's page of progress."""
    return visit(PAGE, storage_state=record)


def solve_and_answer(page):
    quiz = page.locator(".quiz:has(input[data-right])").first
    quiz.locator("input[data-right]").first.check()
    quiz.get_by_role("button", name="Check").click()
    page.reload()
    put_together(page)
    expect(quiz.locator("input[data-right]").first).to_be_checked()
    expect(quiz.locator(".quiz-verdict")).to_have_text("Right.")
    page.evaluate("""async () => {
        const { write } = await import("/widgets/store.js");
        write("exercise/patchify", { code: "# mine", solved: true });
        write("exercise/unpatchify", { code: "# not yet", solved: false });
    }""")


def test_what_is_solved_is_shown(page):
    row = page.locator("table.progress tr", has=page.get_by_role("link", name="Patchify", exact=True))
    assert row.locator(".count").first.inner_text() == "1 of 4"
    assert row.locator(".count").nth(1).inner_text().startswith("1 of ")
    assert row.locator("li", has_text="✓").count() == 2
    total = page.locator(".progress-total").inner_text()
    assert re.fullmatch(r"1 of (\d+) exercises solved, 1 of \d+ questions answered correctly\.", total)
    assert violations(page) == []


def test_every_numpy_exercise_is_listed(page):
    listed = page.locator("[data-record^='exercise/']").evaluate_all(
        "all => all.map(one => one.dataset.record.slice(9))"
    )
    assert sorted(listed) == sorted(name for name, chapter in names().items() if chapter != "small_vit")


def test_the_record_is_exported_forgotten_and_imported(page, tmp_path):
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    path = tmp_path / "record.json"
    download.value.save_as(path)
    assert json.loads(path.read_text())["exercise/patchify"] == {"code": "# mine", "solved": True}
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget all").click()
    assert page.locator(".progress-total").inner_text().startswith("0 of ")
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("status").get_by_text("3 of 3 entries loaded.").wait_for()
    assert page.locator(".progress-total").inner_text().startswith("1 of ")
    page.locator("input[type=file]").set_input_files({"name": "a", "mimeType": "text/plain", "buffer": b"no"})
    page.get_by_role("status").get_by_text("no record of progress").wait_for()


def give(page, record):
    text = record if isinstance(record, bytes) else json.dumps(record).encode()
    page.locator("input[type=file]").set_input_files({"name": "a", "mimeType": "text/plain", "buffer": text})


def test_an_import_asks_before_it_replaces_code(page):
    record = {"exercise/patchify": {"code": "# older", "solved": False}, "quiz/a": {"answer": "1", "right": True}}
    kept = "JSON.parse(localStorage.getItem('patches-and-positions/exercise/patchify')).code"
    page.once("dialog", lambda dialog: dialog.dismiss())
    give(page, record)
    page.get_by_role("status").get_by_text("1 of 2 entries loaded.").wait_for()
    assert page.evaluate(kept) == "# mine"
    page.once("dialog", lambda dialog: dialog.accept())
    give(page, record)
    page.get_by_role("status").get_by_text("2 of 2 entries loaded.").wait_for()
    assert page.evaluate(kept) == "# older"


DAMAGED = [
    [],
    5,
    b"",
    {"cells": []},
    {"exercise/patchify": 5},
    {"exercise/patchify": {"code": 5, "solved": True}},
    {"exercise/patchify": {"code": "", "solved": "no"}},
    {"quiz/a": {"answer": 5, "right": True}},
    {"quiz/a": {"answer": [{}], "right": True}},
    {"theme": "dark"},
]


def test_a_damaged_record_is_refused(page):
    before = page.evaluate("JSON.stringify({ ...localStorage })")
    for record in DAMAGED:
        page.evaluate("document.querySelector('.progress-said').textContent = ''")
        give(page, record)
        page.get_by_role("status").get_by_text("This file is no record of progress.").wait_for()
        assert page.evaluate("JSON.stringify({ ...localStorage })") == before


def test_what_the_browser_does_not_keep_is_not_called_loaded(page):
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full') } }")
    give(page, {"quiz/a": {"answer": "1", "right": True}})
    page.get_by_role("status").get_by_text("0 of 1 entries loaded. This browser keeps no more.").wait_for()


def test_without_scripts_the_exercises_are_listed(visit):
    page = visit(PAGE, java_script_enabled=False)
    assert page.locator("table.progress li a").count() > 10
