"""Exercises solved on the page, in Python in the browser, with nothing asked of another host."""

import json
import re
import subprocess
import sys
import time

import pytest
from accessible import violations
from conftest import ROOT, put_together, visits
from course_run import chapters
from serving import served
from small_book import build

from autograder.judging.exercise import exercises
from autograder.notebooks.solution import exercise_texts

CHAPTER = "book/patchify.html"
TEXTS = exercise_texts("patchify")
ENDLESS = "while True:\n    pass\n"
COLD, WARM = 30, 2  # seconds; 7.5 and 0.2 on two busy cores, but machines differ and are busy
WAIT = 60_000  # milliseconds to wait for Python


class Box:
    """An exercise's box on a page, as a reader handles it."""

    def __init__(self, page, name):
        self.page, self.name = page, name
        self.box = page.locator(f"[data-exercise={name}]")
        self.editor = self.box.get_by_role("textbox", name=f"Your code for {name}")
        self.verdict = self.box.get_by_role("status")
        self.output = self.box.get_by_role("region", name="Output")

    def press(self, name):
        self.box.get_by_role("button", name=name, exact=True).click()

    def done(self):
        """Wait until Python is; returns the verdict."""
        self.box.locator(".solve-busy").wait_for(state="hidden", timeout=WAIT)
        return self.verdict.inner_text()

    def check(self, code):
        self.editor.fill(code)
        self.press("Check")
        return self.done()


@pytest.fixture(scope="module")
def kept_page(browser, solving):
    """One page for most tests: Python is loaded once."""
    with visits(browser, solving) as visit:
        yield visit(CHAPTER)


@pytest.fixture
def page(kept_page):
    for name in TEXTS:
        Box(kept_page, name).editor.fill(TEXTS[name].stub)
    return kept_page


def axe(page, name="patchify"):
    """What axe-core finds in an exercise's box, in light and in dark."""
    part = f"[data-exercise={name}]"
    assert violations(page, part) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, part, only=["color-contrast"]) == []
    page.emulate_media(color_scheme="light")


def test_solved_rightly_and_soon(kept_page):
    kept_page.reload()
    box = Box(kept_page, "patchify")
    axe(kept_page)
    start = time.perf_counter()
    assert re.fullmatch(r"patchify: (\d+) of \1 checks pass", box.check(TEXTS["patchify"].solution))
    cold = time.perf_counter() - start
    start = time.perf_counter()
    box.check(TEXTS["patchify"].solution + "\n")
    warm = time.perf_counter() - start
    print(f"first verdict after {cold:.1f} s, the next after {warm:.2f} s")
    assert cold < COLD and warm < WARM
    assert "solved" in box.box.locator(".exercise-facts").inner_text()
    axe(kept_page)


def solve_every_exercise(page, chapter):
    for name, text in exercise_texts(chapter).items():
        assert "checks pass" in Box(page, name).check(text.solution), name


def test_every_exercise_of_patchify(page):
    """In a Python of 32 bits, where an index is no int64; so the next ones, and those of pooling with SciPy's."""
    solve_every_exercise(page, "patchify")


@pytest.mark.parametrize("chapter", [chapter for chapter in chapters() if chapter not in ("patchify", "pooling")])
def test_every_exercise_of_a_chapter(visit_bundled, chapter):
    solve_every_exercise(visit_bundled(f"book/{chapter}.html"), chapter)


TYPES = f"""
from autograder.judging.exercise import exercises

odd = set()
for chapter in {chapters()!r}:
    for exercise in exercises(chapter):
        functions = {{"reference": exercise.reference}} | {{one.name: one.function for one in exercise.misconceptions}}
        cases = [case for subtest in exercise.subtests if not subtest.hidden for case in subtest.draw()]
        for name, function in functions.items():
            for case in cases:
                try:
                    function(*case.args, **case.kwargs)
                except TypeError as error:
                    odd.add((exercise.name, name, str(error)))
                except Exception:
                    pass
print(sorted(odd))
"""


def test_solutions_and_mistakes_raise_no_other_type_errors_than_elsewhere(page):
    """Each is tried on each case, in a Python of 32 bits."""
    elsewhere = subprocess.run([sys.executable, "-c", TYPES], capture_output=True, text=True, cwd=ROOT, check=True)
    box = Box(page, "patchify")
    box.editor.fill(TYPES)
    box.press("Run")
    assert box.done() == "Ran."
    assert box.output.inner_text().strip() == elsewhere.stdout.strip()


# In one turn of the browser, so that no verdict can come between
TYPED_MEANWHILE = """(check, editor) => {
    check.click();
    editor.value = "# something else";
    editor.dispatchEvent(new InputEvent("input", { bubbles: true }));
}"""


def test_a_verdict_is_about_the_code_that_was_checked(page):
    box = Box(page, "patchify")
    solution = TEXTS["patchify"].solution
    assert "not written yet" in box.check(TEXTS["patchify"].stub)  # whatever was solved before, it is not now
    box.editor.fill(solution)
    box.box.get_by_role("button", name="Check", exact=True).evaluate(TYPED_MEANWHILE, box.editor.element_handle())
    assert "checks pass" in box.done()
    assert "solved" not in box.box.locator(".exercise-facts").inner_text()
    assert box.check(solution) and "solved" in box.box.locator(".exercise-facts").inner_text()


def test_another_tab_is_neither_overwritten_nor_ignored(page):
    other = page.context.new_page()
    other.goto(page.url)
    put_together(other)
    mine, theirs = Box(page, "patchify"), Box(other, "patchify")
    theirs.editor.fill("# theirs")
    page.wait_for_timeout(600)
    assert mine.editor.input_value() == "# theirs"
    mine.press("Run")
    mine.done()
    other.reload()
    assert theirs.editor.input_value() == "# theirs"
    other.close()


def test_what_another_tab_writes_is_shown_and_not_written_back(visit_bundled):
    """Twice within the time after which typing is kept: the first would come back over the second."""
    page = visit_bundled(CHAPTER)
    mine = Box(page, "patchify")
    mine.editor.fill("# mine")
    page.wait_for_timeout(600)
    other = page.context.new_page()
    other.goto(page.url)
    write = """async (code) =>
        (await import("/widgets/store.js")).write("exercise/patchify", { code, solved: false })"""
    other.evaluate(write, "# first")
    page.wait_for_timeout(100)
    other.evaluate(write, "# second")
    page.wait_for_timeout(600)
    assert mine.editor.input_value() == "# second"
    kept = "JSON.parse(localStorage.getItem('patches-and-positions/exercise/patchify')).code"
    assert other.evaluate(kept) == "# second"


def test_a_browser_that_keeps_nothing_says_so(visit_bundled):
    page = visit_bundled(CHAPTER)
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full') } }")
    Box(page, "patchify").editor.fill("# mine")
    page.get_by_text("This browser keeps nothing: before you leave, download the notebook").first.wait_for()


def test_scipy_is_loaded_once_code_imports_it(visit_bundled):
    page = visit_bundled("book/pooling.html")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    solve_every_exercise(page, "pooling")
    assert any("numpy" in url for url in asked) and not any("scipy" in url for url in asked)
    code = f"from scipy.special import erf\n{exercise_texts('pooling')['map_head'].solution}"
    assert "checks pass" in Box(page, "map_head").check(code)
    assert any("scipy" in url for url in asked)


def test_a_package_that_is_not_there_is_named(page):
    shown = Box(page, "patchify").check("import nosuchpackage")
    assert "No module named 'nosuchpackage'" in shown and "Line 1" in shown


def test_a_mistake_is_named(page):
    from autograder import evaluate

    code = "def conv_weight_to_linear(W_conv):\n    return W_conv.reshape(W_conv.shape[0], -1).T\n"
    space = {}
    exec(code, space)
    box = Box(page, "conv_weight_to_linear")
    shown = box.check(code)
    message = evaluate("conv_weight_to_linear", space["conv_weight_to_linear"]).failures[0].message
    assert shown.split() == message.split()
    assert "channels first" in shown
    assert page.locator(box.verdict.get_by_role("link").get_attribute("href")).count() == 1
    assert "solved" not in box.box.locator(".exercise-facts").inner_text()
    axe(page, "conv_weight_to_linear")


def test_the_stub_is_not_written_yet(page):
    box = Box(page, "patchify")
    box.press("Check")
    assert box.done().startswith("patchify is not written yet")


def test_an_endless_loop_is_stopped_and_the_next_run_works(page):
    box = Box(page, "patchify")
    box.editor.fill(ENDLESS)
    box.press("Run")
    box.verdict.get_by_text("Running", exact=True).wait_for(timeout=WAIT)
    axe(page)
    box.press("Stop")
    assert box.done() == "Stopped."
    box.editor.fill("print('here', 1 + 1)")
    box.press("Run")
    assert box.done() == "Ran."
    assert box.output.inner_text() == "here 2\n"


def test_an_endless_loop_ends_by_itself(visit_bundled):
    page = visit_bundled(CHAPTER)
    page.clock.install()
    box = Box(page, "patchify")
    box.editor.fill(ENDLESS)
    box.press("Check")
    box.verdict.get_by_text("Running", exact=True).wait_for(timeout=WAIT)
    page.clock.fast_forward(19_000)
    assert box.verdict.inner_text() == "Running"
    page.clock.fast_forward(2_000)
    assert "Stopped after 20 seconds" in box.done()


def test_loading_can_be_stopped(page):
    page.reload()
    box = Box(page, "patchify")
    box.press("Run")
    box.press("Stop")
    assert box.done() == "Stopped."
    assert "checks pass" in box.check(TEXTS["patchify"].solution)


def test_a_syntax_error_is_shown_with_its_line(page):
    box = Box(page, "patchify")
    verdict = box.check("import numpy as np\n\ndef patchify(img, P)\n    return img\n")
    assert "SyntaxError" in verdict and "Line 3" in verdict
    assert 'File "patchify.py", line 3' in box.output.inner_text()
    assert box.box.locator(".editor-lines .wrong").inner_text() == "3"
    axe(page)


def test_an_error_shows_the_readers_own_lines_only(page):
    box = Box(page, "patchify")
    box.editor.fill("def f(x):\n    return x[5]\n\nprint('before')\nf([1])\n")
    box.press("Run")
    assert "IndexError" in box.done() and "Line 2" in box.verdict.inner_text()
    shown = box.output.inner_text()
    assert shown.startswith("before\nTraceback") and "return x[5]" in shown and "autograder" not in shown


def test_output_is_shown_up_to_a_limit(page):
    box = Box(page, "patchify")
    box.editor.fill("import sys\nprint('to stderr', file=sys.stderr)\nfor i in range(100_000): print('line', i)\n6 * 7")
    box.press("Run")
    box.done()
    shown = box.output.inner_text()
    assert shown.startswith("to stderr\nline 0\n") and "the rest is not shown" in shown and len(shown) < 25_000


def test_an_exercise_sees_the_ones_before_it(page):
    Box(page, "patchify").editor.fill("print('not twice')\n" + TEXTS["patchify"].solution)
    box = Box(page, "unpatchify")
    box.editor.fill("patchify(np.zeros((4, 4, 3)), 2).shape")
    box.press("Run")
    box.done()
    assert box.output.inner_text() == "(4, 12)\n"


@pytest.fixture(scope="module")
def visit_own(browser, runtime, tmp_path_factory):
    """Pages of a small book that was built with its own Python, as `make book PYODIDE=<folder>` does."""
    folder = tmp_path_factory.mktemp("own")
    done = build(folder, {"page": "# A page\n\n```{task} patchify\n```\n"}, PYODIDE=str(runtime))
    assert done.returncode == 0, done.stdout + done.stderr
    with served(folder / "_build/html") as address, visits(browser, address) as visit:
        yield visit


def test_on_a_phone_that_keeps_nothing(visit_own):
    page = visit_own("page.html", width=390, has_touch=True, is_mobile=True)
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no') } })")
    page.reload()
    box = Box(page, "patchify")
    box.editor.tap()
    assert "checks pass" in box.check(TEXTS["patchify"].solution)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert box.box.get_by_role("button", name="Check", exact=True).bounding_box()["height"] >= 32
    axe(page)


def test_by_keyboard_alone(page):
    box = Box(page, "patchify")
    box.editor.focus()
    page.keyboard.press("Control+a")
    for line in ("def patchify(img, P):", "if P < 1:"):
        page.keyboard.type(line)
        page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("pass")
    assert box.editor.input_value() == "def patchify(img, P):\n    if P < 1:\n        pass"
    page.keyboard.press("Enter")
    page.keyboard.press("Backspace")
    page.keyboard.type("return None")
    assert box.editor.input_value().endswith("pass\n    return None")
    page.keyboard.press("Control+Enter")
    assert "None" in box.done()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    for name in ("Check", "Run", "Reset", "Hint", "Solution"):
        assert page.evaluate("document.activeElement.textContent") == name
        page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert box.box.locator("details.solution").get_attribute("open") is not None


def test_a_new_line_is_indented_as_the_line_before(page):
    """With its own characters: Python refuses spaces after tabs."""
    box = Box(page, "patchify")
    box.editor.fill("def patchify(img, P):\n\tif P < 1:\n\t\tpass")
    page.keyboard.press("Control+End")
    page.keyboard.press("Enter")
    page.keyboard.type("return None")
    assert box.editor.input_value().endswith("\t\tpass\n\t\treturn None")


def test_ctrl_z_takes_back_a_reset(page):
    box = Box(page, "patchify")
    box.editor.focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("mine = 1\n")
    before = page.evaluate("document.activeElement.getAttribute('aria-label')")
    box.press("Reset")
    assert box.editor.input_value() == TEXTS["patchify"].stub
    box.editor.focus()
    page.keyboard.press("Control+z")
    assert box.editor.input_value() == "mine = 1\n"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == before


def test_undo_takes_back_what_the_editor_did(page):
    box = Box(page, "patchify")
    before = box.editor.input_value()
    box.editor.focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Tab")
    assert box.editor.input_value().startswith("    def")
    page.keyboard.press("Control+z")
    assert box.editor.input_value() == before


def test_hints_one_by_one(page):
    box = Box(page, "patchify")
    hints = box.box.locator("details.hint")
    box.press("Hint")
    assert [hint.get_attribute("open") is not None for hint in hints.all()][:2] == [True, False]
    box.press("Hint")
    assert hints.nth(1).get_attribute("open") is not None


def test_work_is_kept_and_can_be_reset(page):
    box = Box(page, "patchify")
    stub = box.editor.input_value()
    box.editor.fill("# mine\n")
    page.reload()
    assert box.editor.input_value() == "# mine\n"
    box.press("Reset")
    assert box.editor.input_value() == stub
    box.editor.fill("# typed since")
    box.press("Reset")
    for before in ("# typed since", "# mine\n"):
        box.press("Undo")
        assert box.editor.input_value() == before
    assert box.box.get_by_role("button", name="Undo").is_hidden()
    box.press("Reset")
    page.reload()
    assert box.editor.input_value() == stub


def test_the_download_can_be_handed_in(page, tmp_path):
    for exercise in exercises("patchify")[:2]:
        Box(page, exercise.name).editor.fill(TEXTS[exercise.name].solution)
    with page.expect_download() as download:
        Box(page, "patchify").press("Download it with my code")
    assert download.value.suggested_filename == "patchify.ipynb"
    path = tmp_path / "patchify.ipynb"
    download.value.save_as(path)
    command = [sys.executable, "-m", "autograder", "grade-file", path, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    verdict = json.loads(done.stdout)
    assert verdict["status"] == "graded" and verdict["repairs"] == []
    statuses = [exercise["status"] for exercise in verdict["exercises"]]
    assert statuses == ["passed", "passed", "not written", "not written"]


def notebook(*cells):
    """A notebook file of (source, grade_id or None) cells, to give to the page."""
    made = []
    for source, grade_id in cells:
        metadata = {"nbgrader": {"grade_id": grade_id, "solution": True}} if grade_id else {}
        made.append({"cell_type": "code", "metadata": metadata, "source": source.splitlines(keepends=True)})
    text = json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    return {"name": "mine.ipynb", "mimeType": "application/json", "buffer": text.encode()}


def test_a_notebook_solved_elsewhere_is_loaded(page):
    mine, stub = "# mine\ndef patchify(img, P):\n    return 1", TEXTS["patch_embed_conv"].stub
    elsewhere = "def unpatchify(patches, H, W, P):\n    return 2"
    chooser = page.locator("[data-exercise=patchify] input[type=file]")
    chooser.set_input_files(notebook((mine, "patchify"), (elsewhere, None), (stub, "patch_embed_conv")))
    Box(page, "patchify").verdict.get_by_text("From mine.ipynb: patchify, unpatchify.").wait_for()
    assert Box(page, "patchify").editor.input_value() == mine
    assert Box(page, "unpatchify").editor.input_value() == elsewhere
    Box(page, "unpatchify").press("Undo")
    assert Box(page, "unpatchify").editor.input_value() == TEXTS["unpatchify"].stub
    axe(page)
    chooser.set_input_files(notebook(("x = 1", "another_exercise")))
    Box(page, "patchify").verdict.get_by_text("No exercise of this page in mine.ipynb.").wait_for()
    chooser.set_input_files({"name": "a.ipynb", "mimeType": "application/json", "buffer": b"{"})
    Box(page, "patchify").verdict.get_by_text("a.ipynb is not a notebook.").wait_for()


def test_pyodides_own_distribution_is_asked_on_run_only(visit):
    page = visit(CHAPTER)  # the plain site; the fixture cuts it off from other hosts
    assert visit.complaints == []
    box = Box(page, "patchify")
    box.press("Run")
    assert "Python could not do this" in box.done()
    assert "asked for https://cdn.jsdelivr.net/pyodide/v0.27.7/full/pyodide.mjs" in visit.complaints[0]
    visit.complaints.clear()


def test_without_scripts_the_box_stays_as_it_is(visit):
    page = visit(CHAPTER, java_script_enabled=False)
    box = page.locator("[data-exercise=patchify]")
    assert box.locator(".exercise-stub").is_visible()
    assert not box.get_by_role("button").count()
