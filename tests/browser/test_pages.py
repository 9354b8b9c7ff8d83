"""The site in a browser: what readers see, with keyboard, phone, dark mode and without scripts."""

import re
from pathlib import Path

import numpy as np
import pytest
from accessible import violations
from conftest import visits
from playwright.sync_api import expect

TOC = (Path(__file__).parents[2] / "_toc.yml").read_text()
PAGES = [f"{page}.html" for page in re.findall(r"(?:root|file): *(\S+)", TOC)]
CHAPTER = "book/patchify.html"
WEIGHT = 400_000  # bytes over the wire
# Loaded thrice more by default, once for each way of reading. Together they have figures, widgets, wide tables, most
# formulas, most exercises, a page for a GPU and one for teachers.
SIX = ["intro", "sincos", "positions", "resolution", "gpu/small_vit", "teach/isolation"]
each_way = pytest.mark.parametrize(
    "path",
    [path if path[5:-5] in SIX else pytest.param(path, marks=pytest.mark.slow, id=path) for path in PAGES],
)


def test_six_pages_are_loaded_every_way():
    assert {f"book/{name}.html" for name in SIX} < set(PAGES)


@pytest.fixture(scope="module")
def chapter(browser, address):
    """A chapter that is only looked at, for all the tests that change nothing on it."""
    with visits(browser, address) as visit:
        yield visit(CHAPTER)


@pytest.fixture(scope="module", params=[*PAGES, "search.html?q=patch"])
def opened(browser, address, request):
    """Each page in turn, with all that it asks for on its own. The tests take it in their order here."""
    with visits(browser, address) as visit:
        yield visit(request.param, until="networkidle")


def test_a_page_is_light(opened):
    opened.evaluate("scrollTo(0, document.body.scrollHeight)")
    opened.wait_for_load_state("networkidle")
    weight = opened.evaluate("""() => ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
        .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)""")
    assert 20_000 < weight < (WEIGHT if "search" not in opened.url else 4 * WEIGHT)  # it reads every page it names


def test_code_fits_without_scrolling(opened):
    cut = """all => all.filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
        .map((one) => one.textContent.slice(0, 200))"""
    assert opened.locator("article :is(pre, .editor)").evaluate_all(cut) == []


def test_nothing_reaches_out_of_its_section(opened):
    """Safari, which has no overflow-clip-margin, would not show it."""
    reaching = """all => all.filter((one) => {
        const inner = one.getBoundingClientRect();
        const outer = one.closest(".chapter > section > section").getBoundingClientRect();
        return inner.width && (inner.left < outer.left - 1 || inner.right > outer.right + 1);
    }).map((one) => one.outerHTML.slice(0, 100))"""
    boxes = opened.locator(
        ".chapter > section > section :is(.highlight, .exercise, .quiz, .widget, .admonition, .proof)"
    )
    assert boxes.evaluate_all(reaching) == []


def test_vectors_in_tables_stay_on_one_line(visit):
    page = visit("book/sincos.html", width=390)
    vectors = page.locator("td", has_text=re.compile(r"^\(\S+, \S+, \S+, \S+\)$"))
    assert vectors.count() >= 3
    heights = vectors.evaluate_all("all => all.map((one) => one.querySelector('p').offsetHeight)")
    assert max(heights) < 45


def test_copy_buttons_cover_no_code_on_a_phone(visit):
    page = visit(CHAPTER, width=390, has_touch=True, is_mobile=True)
    covering = """all => all.filter((button) => {
        const box = button.getBoundingClientRect();
        const code = document.createRange();
        code.selectNodeContents(button.previousElementSibling);
        return [...code.getClientRects()].some((line) => line.right > box.left && line.left < box.right
            && line.top < box.bottom - 4 && line.bottom > box.top);
    }).length"""
    page.add_style_tag(content="section { content-visibility: visible !important }")
    page.wait_for_timeout(300)
    buttons = page.locator("article .copy-button")
    assert buttons.count() > 20
    assert buttons.evaluate_all(covering) == 0


@each_way
def test_a_narrow_phone_shows_every_line_whole(visit, path):
    """320 pixels, as WCAG's reflow asks. What is wider than its section is cut off, and no scroll bar tells."""
    page = visit(path, width=320)
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    cut = """all => all.filter((one) => {
        const box = one.getBoundingClientRect();
        return box.width && box.right > innerWidth && !one.closest("pre, .editor, .formula-box, .table-box, .figure");
    }).map((one) => one.textContent.slice(0, 100))"""
    assert page.locator("article :is(p, li, math, code, .kept, summary, button, input)").evaluate_all(cut) == []


JUMPS = """
    window.jumps = 0;
    new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => (jumps += value)))
        .observe({ type: "layout-shift", buffered: true });
"""


@each_way
def test_nothing_jumps_when_fonts_and_scripts_come_late(browser, address, path):
    """On a slow phone, where they come after the text. Below 0.1 a page counts as stable."""
    context = browser.new_context(viewport={"width": 412, "height": 823})
    context.add_init_script(JUMPS)
    page = context.new_page()
    slow = {"offline": False, "latency": 100, "downloadThroughput": 300_000, "uploadThroughput": 300_000}
    context.new_cdp_session(page).send("Network.emulateNetworkConditions", slow)
    page.goto(address + path)
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(200)
    fonts = page.evaluate("performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.woff2'))")
    assert len(fonts) >= 2 and max(font["responseEnd"] for font in fonts) > painted
    assert page.evaluate("jumps") < 0.1
    context.close()


CROWDED = """() => [...document.querySelectorAll("article svg")].flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")]
        .filter((text) => text.textContent.trim() && text.checkVisibility())
        .filter((text) => Math.abs(text.getScreenCTM().b) < 0.01)  // of turned text the box tells little
        .map((text) => [text.textContent.trim(), text.getBoundingClientRect()]);
    const over = texts.filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1
        || box.top < frame.top - 4 || box.bottom > frame.bottom + 4);  // lines are taller than letters
    const pairs = texts.flatMap(([one, a], i) => texts.slice(i + 1).filter(([, b]) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 8).map(([other]) => [one, other]));
    return [...over.map(([text]) => text), ...pairs];
})"""
STRUCK = """() => [...document.querySelectorAll("article svg")].flatMap((svg) => {
    const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim() && text.checkVisibility());
    const lines = [...svg.querySelectorAll("path")].filter((path) => !path.closest("defs")
        && getComputedStyle(path).stroke !== "none" && path.getAttribute("d").split(/[ML]/).length < 400);
    return texts.filter((text) => {
        const box = text.getBBox();
        return lines.some((path) => {
            const there = text.getScreenCTM().inverse().multiply(path.getScreenCTM());
            const length = path.getTotalLength();
            let inside = 0;
            for (let at = 0; at < length; at += Math.max(1, length / 600)) {
                const { x, y } = path.getPointAtLength(at).matrixTransform(there);
                if (Math.abs(x - box.x - box.width / 2) < box.width / 2 - 1
                    && Math.abs(y - box.y - box.height * 0.52) < box.height * 0.22) inside++;
            }
            return inside > 1;
        });
    }).map((text) => text.textContent.trim());
})"""


def test_the_words_of_figures_stand_free(opened):
    opened.add_style_tag(content="section { content-visibility: visible !important }")
    assert opened.evaluate(CROWDED) == []
    assert opened.evaluate(STRUCK) == []


def test_words_that_do_not_stand_free_are_seen(visit):
    page = visit("book/intro.html")
    draw = """texts => document.querySelector("article").insertAdjacentHTML("beforeend",
        `<svg width="200" height="50" viewBox="0 0 200 50">${texts}</svg>`)"""
    page.evaluate(draw, '<text x="9" y="20">one</text><text x="90" y="20">two</text>')
    assert page.evaluate(CROWDED) == []
    page.evaluate(draw, '<text x="9" y="20">one</text><text x="19" y="24">two</text><text x="190" y="20">out</text>')
    assert page.evaluate(CROWDED) == ["out", ["one", "two"]]
    assert page.evaluate(STRUCK) == []
    page.evaluate(draw, '<text x="9" y="20">struck</text><path d="M 20 0 L 20 40" stroke="red"/>')
    assert page.evaluate(STRUCK) == ["struck"]


def test_a_page_is_accessible_in_every_state(opened, pytestconfig):
    """Narrow and as it comes, then wide, answered and with every dropdown open, in light and in dark."""
    opened.set_viewport_size({"width": 390, "height": 900})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    if not pytestconfig.getoption("markexpr") or any(f"/book/{name}.html" in opened.url for name in SIX):
        assert violations(opened, without=["color-contrast", "link-in-text-block"]) == []
    opened.set_viewport_size({"width": 1280, "height": 900})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 1280
    opened.evaluate("""() => {
        for (const closed of document.querySelectorAll("details")) closed.open = true;
        for (const quiz of document.querySelectorAll(".quiz")) {
            const input = quiz.querySelector("input");
            if (input.type === "text") input.value = "1";
            else input.checked = true;
            quiz.querySelector(".quiz-check").click();
        }
    }""")
    assert violations(opened) == []
    opened.emulate_media(color_scheme="dark")
    assert violations(opened, only=["color-contrast"]) == []


@each_way
def test_a_page_is_readable_without_scripts(visit, path):
    page = visit(path, java_script_enabled=False, width=390)
    page.evaluate("document.body.querySelectorAll('section').forEach(s => (s.style.contentVisibility = 'visible'))")
    assert page.locator("h1").bounding_box()["height"] > 20
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = page.eval_on_selector_all(
        "article math",
        """all => all.filter(m => m.checkVisibility()).map(m => m.getBoundingClientRect())
            .map(({ width, height }) => Math.min(width, height))""",
    )
    assert all(size > 2 for size in sizes)
    for part in page.locator(".widget > *, .exercise-stub, .quiz .solution, .exercise .solution").all():
        assert part.inner_text().strip() and part.is_visible()
    assert not page.locator("article button:visible").count()


def test_formulas_are_drawn_in_the_font_of_the_site(visit):
    page = visit(CHAPTER)
    for closed in page.locator("details").all():
        closed.evaluate("details => details.open = true")
    boxes = page.eval_on_selector_all(
        "article math:not([hidden] *)",
        "all => all.map(m => [m.outerHTML, m.getBoundingClientRect().width, m.getBoundingClientRect().height])",
    )
    assert len(boxes) > 20
    assert [formula for formula, width, height in boxes if min(width, height) < 2] == []
    assert page.evaluate("document.fonts.check('16px \"STIX Two Math\"')")
    loaded = page.evaluate("[...document.fonts].filter(f => f.status === 'loaded').map(f => f.family)")
    assert any("STIX Two Math" in family for family in loaded)


def test_figures_follow_light_and_dark(visit):
    page = visit(CHAPTER, color_scheme="light")
    figure = page.locator(".figure svg").first
    assert figure.bounding_box()["height"] > 50
    ink = "getComputedStyle(document.querySelector('.figure svg text')).fill"
    light = page.evaluate(ink)
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate(ink) != light


def test_the_theme_is_kept(visit):
    page = visit("book/intro.html", color_scheme="light")
    button = page.get_by_role("button", name="Dark colours")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert button.get_attribute("aria-pressed") == "true"


def test_the_slider_moves_by_keyboard(visit):
    page = visit(CHAPTER)
    widget = page.locator("patch-average[data-ready]")
    widget.scroll_into_view_if_needed()
    slider = widget.get_by_role("slider", name="Patch side")
    expect(widget.locator(".tokens")).to_have_text("14 × 14 = 196")  # once the picture is there
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert widget.locator(".tokens").inner_text() == "13 × 13 = 169"
    assert widget.locator(".dropped").inner_text() == f"{224**2 - 221**2:,}"
    assert slider.get_attribute("aria-valuetext") == "17 pixels, 169 tokens"
    page.keyboard.press("End")
    assert widget.locator(".tokens").inner_text() == "2 × 2 = 4"


@pytest.mark.parametrize(("height", "width", "P"), [(12, 18, 3), (13, 17, 4), (5, 9, 1), (8, 8, 8)])
def test_the_averages_are_those_of_a_loop(chapter, height, width, P):
    img = np.random.default_rng(0).integers(0, 256, size=(height, width, 4))
    expected = [
        img[r * P : (r + 1) * P, c * P : (c + 1) * P, channel].mean()
        for r in range(height // P)
        for c in range(width // P)
        for channel in range(3)
    ]
    call = """async ([data, width, height, P]) => {
        const { averagePatches } = await import("/widgets/patch-average.js");
        return [...averagePatches(data, width, height, P)];
    }"""
    np.testing.assert_allclose(chapter.evaluate(call, [img.ravel().tolist(), width, height, P]), expected, rtol=1e-12)


def test_the_second_picture_shows_the_averages(chapter):
    chapter.locator("patch-average[data-ready]").wait_for()
    pixels, averages = chapter.evaluate("""async () => {
        const { averagePatches } = await import("/widgets/patch-average.js");
        const widget = document.querySelector("patch-average");
        const shown = widget.averages.getContext("2d").getImageData(0, 0, 224, 224).data;
        return [[...shown], [...averagePatches(widget.data, 224, 224, 16)]];
    }""")
    shown = np.reshape(pixels, (224, 224, 4))[8::16, 8::16, :3]
    np.testing.assert_allclose(shown, np.reshape(averages, (14, 14, 3)), atol=0.51)


def test_a_number_is_checked(visit):
    page = visit(CHAPTER)
    quiz = page.locator(".quiz[data-kind=numeric]").first
    answer = float(quiz.get_attribute("data-answer"))
    box, verdict = quiz.get_by_label("Your answer"), quiz.get_by_role("status")
    for typed, said in (("x", "Type a number"), (str(answer + 1), "Not yet"), (f"{answer:,.0f}", "Right.")):
        box.fill(typed)
        box.press("Enter")
        assert verdict.inner_text().startswith(said)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,024", 1024),
        ("50 176", 50176),
        ("2/3", 2 / 3),
        ("2^10", 1024),
        ("−2.5", -2.5),
        ("1e-6", 1e-6),
        (" 7 ", 7),
        ("1,024,000", 1024000),
        ("–5", -5),
        ("0.125", 0.125),
    ],
)
def test_numbers_are_read_as_people_write_them(chapter, text, value):
    read = chapter.evaluate("async (t) => (await import('/widgets/quiz.js')).parseNumber(t)", text)
    assert read == pytest.approx(value)


@pytest.mark.parametrize("text", ["0,125", "1,02", "one", "", "1..2"])
def test_what_is_no_number_is_none(chapter, text):
    assert chapter.evaluate("async (t) => Number.isNaN((await import('/widgets/quiz.js')).parseNumber(t))", text)


def test_a_choice_is_checked(visit):
    page = visit(CHAPTER)
    quiz = page.locator(".quiz[data-kind=single]").first
    quiz.get_by_role("button", name="Check").click()
    assert quiz.get_by_role("status").inner_text() == "Choose an answer first."
    quiz.locator("input:not([data-right])").first.check()
    quiz.get_by_role("button", name="Check").click()
    assert quiz.get_by_role("status").inner_text().startswith("Not yet")
    quiz.locator("input[data-right]").check()
    quiz.get_by_role("button", name="Check").click()
    assert quiz.get_by_role("status").inner_text() == "Right."


def test_hints_open_one_after_the_other(visit):
    page = visit(CHAPTER, java_script_enabled=False)
    exercise = page.locator("[data-exercise=patchify]")
    second = exercise.get_by_text("Hint 2 of")
    assert not second.is_visible()
    exercise.get_by_text("Hint 1 of").click()
    assert second.is_visible()


def test_chapters_on_a_phone(visit):
    page = visit(CHAPTER, width=390)
    chapters = page.get_by_role("navigation", name="Chapters")
    assert not chapters.is_visible()
    page.get_by_role("button", name="Chapters").click()
    assert chapters.is_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    assert not chapters.is_visible()


def test_a_printed_page_is_the_text_alone(visit):
    page = visit(CHAPTER)
    page.emulate_media(media="print")
    for chrome in ("banner", "contentinfo", "searchbox", "textbox", "button"):
        shown = page.get_by_role(chrome).and_(page.locator(":not(.quiz *)"))
        assert not any(one.is_visible() for one in shown.all()), chrome
    assert not page.get_by_role("navigation", name="Chapters").is_visible()
    for part in (".exercise-stub", ".exercise .solution pre", ".exercise .hint p", ".quiz .solution p"):
        assert page.locator(part).first.bounding_box()["height"] > 10, part
    assert not page.locator("details.hide").first.is_visible()
    paper = page.evaluate("getComputedStyle(document.querySelector('article')).color")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.querySelector('article')).color") == paper


# Those that have room on the page and are not hidden
SEEN = """all => all.filter((one) => {
    const { width, height } = one.getBoundingClientRect();
    return width && height && getComputedStyle(one).visibility === "visible";
}).map((one) => one.outerHTML.slice(0, 100))"""


@pytest.mark.parametrize("path", ["book/sincos.html", "book/positions.html", "book/rotary.html", "book/progress.html"])
def test_paper_has_nothing_to_press_and_no_room_for_it(visit, path):
    page = visit(path, width=720)
    page.emulate_media(media="print")
    pressed = page.locator("article :is(button, input, select, textarea):not(.quiz *)")
    assert pressed.count() and pressed.evaluate_all(SEEN) == []
    empty = """all => all.map((one) => one.firstElementChild.getBoundingClientRect().bottom - Math.max(
        ...[...one.firstElementChild.children].map((part) => part.getBoundingClientRect().bottom)))"""
    assert all(room < 25 for room in page.locator(".widget").evaluate_all(empty))


def test_the_section_that_is_read_is_marked(visit):
    page = visit(CHAPTER)
    marked = page.locator(".chapters a[aria-current=true]")
    assert marked.count() == 0
    page.evaluate("document.querySelector('#cut-and-put-back').scrollIntoView()")
    marked.get_by_text("Cut and put back").wait_for()
    assert marked.count() == 1


def test_search_finds_a_chapter(visit):
    page = visit("book/notation.html")
    page.get_by_role("searchbox").fill("patch")
    page.keyboard.press("Enter")
    page.locator("#search-results a", has_text="Patchify").first.wait_for()


def test_search_shows_each_place_once(visit):
    page = visit("search.html?q=class+token", until="networkidle")
    results = page.locator("#search-results li")
    assert results.count() > 5
    assert not results.locator("> a", has_text="(").count()
    contexts = results.locator(".context").all_inner_texts()
    assert len({text.rpartition(": ")[2] for text in contexts}) == len(contexts)


@pytest.mark.parametrize("word", ["constructor", "toString", "__proto__"])
def test_a_search_ends_though_every_object_has_the_word(visit, word):
    page = visit(f"search.html?q={word}")
    page.locator("#search-results", has_text=re.compile("Places found|No page has")).wait_for()


@pytest.mark.parametrize("words", ["rotary", "half-pixel convention", "GELU"])
def test_search_shows_the_section_in_which_the_words_stand(visit, words):
    """Also where their stem is no part of them: rotari."""
    page = visit(f"search.html?q={words}", until="networkidle")
    summaries = page.locator("#search-results .context")
    assert summaries.count() >= 3
    first = words.lower().split("-")[0]
    for said in page.locator("#search-results li:has(.context)").all_inner_texts():
        assert first in said.lower() and "Open in Colab" not in said
    links = page.locator("#search-results .context a")
    for number in range(links.count()):
        where = links.nth(number).get_attribute("href")
        text = page.evaluate(
            """async (where) => {
                const [address, id] = where.split("#");
                const html = await (await fetch(address)).text();
                return new DOMParser().parseFromString(html, "text/html").getElementById(id).textContent;
            }""",
            where,
        )
        assert first in text.lower(), where


def test_code_is_copied(visit):
    page = visit(CHAPTER, permissions=["clipboard-read", "clipboard-write"])
    block = page.locator(".cell_input .highlight").first
    block.hover()
    block.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == block.locator("pre").text_content()


def test_a_request_to_another_host_is_caught(visit):
    page = visit("book/intro.html")
    page.evaluate("fetch('https://example.org/').catch(() => {})")
    page.wait_for_timeout(100)
    assert any("asked for https://example.org/" in complaint for complaint in visit.complaints)
    visit.complaints.clear()


def test_fields_are_made_as_the_reader_comes_near(visit):
    """Browsers lay out every section with a field to type in once a page has loaded: see near.js."""
    page = visit("book/positions.html", until="commit", far_later=True)
    page.clock.install()
    page.reload()
    fields = page.locator("article :is(textarea, select, input[type=text])")
    far = page.locator("#exercise-sincos-2d")
    assert fields.count() < 3 and far.locator("textarea").count() == 0
    assert far.locator(".exercise-stub").is_visible()
    far.scroll_into_view_if_needed()
    expect(far.locator("textarea")).to_have_count(1)
    assert not far.locator(".exercise-stub").is_visible()
    made = fields.count()
    for _ in range(40):  # seconds, in which it has time for the rest
        page.clock.run_for(1000)
    expect(page.locator("article textarea")).to_have_count(page.locator("[data-solve]").count())
    assert fields.count() > made


@pytest.mark.parametrize("path", ["book/resolution.html", "book/positions.html", "book/rotary.html"])
def test_no_line_begins_with_the_mark_after_a_formula(visit, path):
    """Browsers may break a line before and after a formula, whatever stands there."""
    page = visit(path, width=480)
    checked, torn = page.evaluate("""() => {
        for (const section of document.querySelectorAll("section")) section.style.contentVisibility = "visible";
        const checked = [], torn = [];
        for (const math of document.querySelectorAll("article p math")) {
            const walker = document.createTreeWalker(math.closest("p"), NodeFilter.SHOW_TEXT);
            while (walker.nextNode() && math.compareDocumentPosition(walker.currentNode) !== 4);
            const text = walker.currentNode;
            if (!/^[.,;:!?)]/.test(text.data) || math.compareDocumentPosition(text) !== 4) continue;
            const mark = document.createRange();
            mark.setStart(text, 0);
            mark.setEnd(text, 1);
            checked.push(text.data[0]);
            if (mark.getBoundingClientRect().left < math.getBoundingClientRect().left) torn.push(math.textContent);
        }
        return [checked.length, torn];
    }""")
    assert checked > 20
    assert torn == []
