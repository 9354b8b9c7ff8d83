"""The reader's record: kept in the browser, shown, exported, imported and forgotten."""

import json
import re

import pytest
from accessible import violations

from autograder.exercise import names

PAGE = "book/progress.html"


@pytest.fixture
def page(visit):
    """The page of progress of a reader who has solved one exercise and answered a question of patchify."""
    page = visit("book/patchify.html")
    quiz = page.locator(".quiz:has(input[data-right])").first
    quiz.locator("input[data-right]").first.check()
    quiz.get_by_role("button", name="Check").click()
    page.reload()
    assert quiz.locator("input[data-right]").first.is_checked()
    assert quiz.get_by_role("status").inner_text() == "Right."
    page.evaluate("""async () => {
        const { write } = await import("/widgets/store.js");
        write("exercise/patchify", { code: "# mine", solved: true });
        write("exercise/unpatchify", { code: "# not yet", solved: false });
    }""")
    page.goto(page.url.replace("book/patchify.html", PAGE))
    return page


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
    page.get_by_role("status").get_by_text("3 records loaded.").wait_for()
    assert page.locator(".progress-total").inner_text().startswith("1 of ")
    page.locator("input[type=file]").set_input_files({"name": "a", "mimeType": "text/plain", "buffer": b"no"})
    page.get_by_role("status").get_by_text("no record of progress").wait_for()


def test_without_scripts_the_exercises_are_listed(visit):
    page = visit(PAGE, java_script_enabled=False)
    assert page.locator("table.progress li a").count() > 10
