"""The frequency inspector in a real browser: its numbers are those of `sincos_1d`, and the keyboard is enough."""

from pathlib import Path

import numpy as np
import pytest

from solutions.sincos import position_angle, position_similarity, sincos_1d

ROOT = Path(__file__).parents[2]
PAGE = """<!doctype html><title>t</title><link rel="stylesheet" href="/course.css">
<div class="widget"><frequency-inspector positions="0,1,2" d="4"></frequency-inspector></div>
<script type="module" src="/frequency-inspector.js"></script>"""


@pytest.fixture(scope="module")
def page(browser):
    files = {
        "/": (PAGE, "text/html"),
        "/course.css": ((ROOT / "book/_theme/course/static/course.css").read_text(encoding="utf-8"), "text/css"),
    }
    for name in ("frequency-inspector.js", "figure.js", "near.js"):
        files[f"/{name}"] = ((ROOT / "book/widgets" / name).read_text(encoding="utf-8"), "text/javascript")

    def serve(route):
        path = "/" + route.request.url.split("/", 3)[3]
        if path not in files:
            return route.fulfill(status=404, body="")
        body, kind = files[path]
        return route.fulfill(body=body, content_type=f"{kind}; charset=utf-8")

    page = browser.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.route("**/*", serve)
    page.goto("http://inspector.test/")
    page.wait_for_selector("frequency-inspector[data-ready]")
    yield page
    assert page.errors == []
    page.close()


def vectors(page, positions, d, base):
    return page.evaluate(
        """async ([positions, d, base]) => {
            const { sincos1d } = await import("/frequency-inspector.js");
            return sincos1d(positions, d, base).map((vector) => Array.from(vector));
        }""",
        [positions, d, base],
    )


@pytest.mark.parametrize(
    ("positions", "d", "base"),
    [([0, 1, 2], 4, 1e4), ([5.5, -3, 1000], 64, 1e4), ([7], 2, 1e4), ([13, 0.25], 192, 100.0)],
)
def test_same_numbers_as_numpy(page, positions, d, base):
    ours = sincos_1d(positions, d, base)
    np.testing.assert_allclose(vectors(page, positions, d, base), ours, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("one", "other", "d"), [(0, 1, 4), (5, 11, 64), (3, 3, 6), (2, 2.001, 32)])
def test_same_comparison_as_numpy(page, one, other, d):
    found = page.evaluate(
        """async ([one, other, d]) => {
            const { sincos1d, compare } = await import("/frequency-inspector.js");
            return compare(...sincos1d([one, other], d, 10000));
        }""",
        [one, other, d],
    )
    similarity = position_similarity(other - one, d)
    assert found["product"] == pytest.approx(similarity, abs=1e-12)
    assert found["distance"] == pytest.approx(np.sqrt(d - 2 * similarity), abs=1e-6)
    assert found["angle"] == pytest.approx(position_angle(other - one, d), abs=1e-7)


@pytest.mark.parametrize(("text", "numbers"), [("2", [2]), ("0, 1; -2.5", [0, 1, -2.5]), (" 3  −4,", [3, -4])])
def test_positions_as_people_type_them(page, text, numbers):
    read = "async (text) => (await import('/frequency-inspector.js')).parsePositions(text)"
    assert page.evaluate(read, text) == numbers


def row(page, number):
    return page.locator("frequency-inspector tbody tr").nth(number).inner_text()


def fill(page, **fields):
    for name, value in fields.items():
        page.locator(f"frequency-inspector .{name}").fill(str(value))


def test_every_pair_is_listed_and_drawn(page):
    fill(page, positions="0, 1, 2", width=4, base=10000, shift=0)
    assert page.locator("frequency-inspector tbody tr").count() == 2
    assert page.locator("frequency-inspector tbody svg").count() == 2
    assert page.locator("frequency-inspector tbody tr").nth(0).locator("line").count() == 3
    # the hand-calculated table, six decimals
    for value in ("0.841471", "0.540302", "0.909297", "−0.416147"):
        assert value in row(page, 0)
    for value in ("0.010000", "0.999950", "0.019999", "0.999800", "0.01", "628.319"):
        assert value in row(page, 1)
    fill(page, width=8)
    assert page.locator("frequency-inspector tbody tr").count() == 4


def test_the_hand_points_at_sine_and_cosine(page):
    fill(page, positions="1", width=2, shift=0)
    tip = page.locator("frequency-inspector tbody circle").nth(1)
    assert float(tip.get_attribute("cx")) == pytest.approx(np.sin(1), abs=1e-3)
    assert float(tip.get_attribute("cy")) == pytest.approx(-np.cos(1), abs=1e-3)


def test_moving_all_positions_with_the_keyboard_changes_no_comparison(page):
    fill(page, positions="0, 5", width=64, base=10000, shift=0)

    def compared():
        return page.locator("frequency-inspector .widget-numbers dd").all_inner_texts()

    before, first_row = compared(), row(page, 0)
    page.locator("frequency-inspector .shift").focus()
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    assert page.locator("frequency-inspector .shift").get_attribute("aria-valuetext") == "7 steps"
    assert "p = 12" in page.locator("frequency-inspector thead").inner_text()
    assert row(page, 0) != first_row
    assert compared() == before


def test_what_makes_no_sense_is_said_and_nothing_is_redrawn(page):
    fill(page, positions="1, 2", width=4, base=10000, shift=0)
    before = row(page, 1)
    message = page.locator("frequency-inspector [role=status]")
    for name, value, said in [
        ("width", 5, "even"),
        ("width", 1000, "256"),
        ("width", "", "even"),
        ("base", 0, "positive"),
        ("positions", "one", "numbers"),
        ("positions", "1 2 3 4 5 6 7", "6"),
    ]:
        fill(page, positions="1, 2", width=4, base=10000)
        fill(page, **{name: value})
        assert said in message.inner_text()
        assert page.locator(f"frequency-inspector .{name}").get_attribute("aria-invalid") == "true"
        assert row(page, 1) == before
    fill(page, positions="1, 2", width=4, base=10000)
    assert page.locator("[aria-invalid=true]").count() == 0


def test_no_accessibility_violations(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    fill(page, positions="0, 1, 2", width=16, base=10000, shift=3)
    found = axe.Axe().run(page, context="frequency-inspector")
    assert found.violations_count == 0, found.generate_report()
