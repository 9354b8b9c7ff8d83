"""The editor by itself, with what no reader types."""

import json
import shutil

import pytest
from conftest import ROOT
from serving import served

PAGE = """<!doctype html><p id="help">Help</p><script type="module">
import { makeEditor } from "./editor.js";
window.editor = makeEditor({ label: "Code", help: "help", typed() {} });
document.body.append(editor.element);
editor.set("def f():\\n    return 1");
</script>"""
LIMIT = 4000  # milliseconds; 0.6 s on a machine with nothing else to do, and minutes as it was
TEXTS = {
    "empty lines": "a = 1" + "\n" * 30_000 + "b = 2",
    "lines": "x = 1\n" * 30_000 + "b = 2",
    "one long line": "x" * 200_000 + " b = 2",
    "quotes": "'\"" * 50_000 + "b = 2",
    "blanks after def": "def" + " " * 100_000 + "b = 2",
}


@pytest.fixture
def page(browser, tmp_path):
    shutil.copy(ROOT / "book" / "widgets" / "editor.js", tmp_path)
    (tmp_path / "index.html").write_text(PAGE)
    with served(tmp_path) as address, browser.new_context(permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        page.set_default_timeout(LIMIT)
        page.goto(f"{address}/index.html")
        page.wait_for_function("window.editor")
        yield page


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_of_any_length_is_put_in_at_once(page, kind):
    """As a notebook that is loaded puts it there, and what was there before comes back."""
    text = json.dumps(TEXTS[kind])
    timed = "(() => { const start = Date.now(); %s; document.body.offsetHeight; return Date.now() - start })()"
    assert page.evaluate(timed % f"editor.set({text})") < LIMIT
    assert page.evaluate("editor.field.value") == TEXTS[kind]
    assert page.evaluate(timed % "editor.set('y = 3')") < LIMIT
    assert page.evaluate("editor.field.value") == "y = 3"


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_of_any_length_is_pasted_at_once(page, kind):
    page.evaluate(f"navigator.clipboard.writeText({json.dumps(TEXTS[kind])})")
    page.evaluate("editor.set('x'); editor.field.focus(); editor.field.select()")
    page.keyboard.press("Control+V")
    page.wait_for_function("editor.field.value.endsWith('b = 2')", timeout=LIMIT)
    assert page.evaluate("editor.field.value") == TEXTS[kind]


def test_what_is_coloured(page):
    page.evaluate("editor.set('def f(x):\\n    return None if x else Import  # 1 def\\nclass  A: y = 2.5 + not_1')")
    found = page.evaluate("[...editor.element.querySelectorAll('span')].map((s) => [s.textContent, s.className])")
    assert [tuple(one) for one in found if one[1] in ("k", "nf", "mi", "c1", "s")] == [
        ("def", "k"), ("f", "nf"), ("return", "k"), ("None", "k"), ("if", "k"), ("else", "k"), ("# 1 def", "c1"),
        ("class", "k"), ("A", "nf"), ("2.5", "mi"),
    ]  # fmt: skip


def test_a_short_text_that_is_set_can_be_undone_in_the_field(page):
    page.evaluate("editor.set('z = 1\\n'.repeat(50)); editor.field.focus()")
    page.keyboard.press("Control+Z")
    assert page.evaluate("editor.field.value") == "def f():\n    return 1"
