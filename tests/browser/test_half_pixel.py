"""The half-pixel widget in a real browser: its coordinates are PyTorch's, and the keyboard is enough."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

ROOT = Path(__file__).parents[2]
PAGE = """<!doctype html><title>t</title><link rel="stylesheet" href="/course.css">
<div class="widget"><half-pixel old="4" new="7"></half-pixel></div>
<script type="module" src="/half-pixel.js"></script>"""
FILES = {
    "/course.css": (ROOT / "book/_theme/course/static/course.css", "text/css"),
    "/half-pixel.js": (ROOT / "book/widgets/half-pixel.js", "text/javascript"),
}


@pytest.fixture
def page(browser):
    def serve(route):
        path = "/" + route.request.url.split("/", 3)[3]
        if path == "/":
            return route.fulfill(body=PAGE, content_type="text/html; charset=utf-8")
        if path not in FILES:
            return route.fulfill(status=404, body="")
        file, kind = FILES[path]
        return route.fulfill(body=file.read_text(encoding="utf-8"), content_type=f"{kind}; charset=utf-8")

    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.route("**/*", serve)
    page.goto("http://widget.test/")
    page.wait_for_selector("half-pixel[data-ready]")
    yield page
    page.close()
    assert errors == []


def read(page, n, n_new, convention):
    """What the module says: the coordinates, clamped."""
    return page.evaluate(
        """async ([n, nNew, convention]) => {
            const { coordinates, clamp } = await import("/half-pixel.js");
            return coordinates(n, nNew, convention).map((s) => clamp(s, n));
        }""",
        [n, n_new, convention],
    )


@pytest.mark.parametrize(("n", "n_new"), [(2, 4), (14, 24), (24, 14), (1, 3), (5, 1), (7, 7)])
def test_coordinates_are_pytorchs(page, n, n_new):
    ramp = torch.arange(n, dtype=torch.float64)[None, None]  # its value is its coordinate
    for convention, align_corners in (("half-pixel", False), ("corner-aligned", True)):
        theirs = F.interpolate(ramp, n_new, mode="linear", align_corners=align_corners)[0, 0].numpy()
        np.testing.assert_allclose(read(page, n, n_new, convention), theirs, rtol=0, atol=1e-12)
    expected = np.minimum(np.arange(n_new) * n / n_new, n - 1)
    np.testing.assert_allclose(read(page, n, n_new, "asymmetric"), expected, rtol=0, atol=1e-12)


def test_hand_example_by_keyboard(page):
    widget = page.locator("half-pixel")
    for name, presses in (("old", 2), ("new", 3)):
        page.focus(f"half-pixel .{name}")
        for _ in range(presses):
            page.keyboard.press("ArrowLeft")
    assert widget.locator(".reads").inner_text() == "The new cells read −0.25, 0.25, 0.75, 1.25."
    assert widget.locator(".clamped").inner_text() == "2 of 4"
    assert widget.locator("svg line").count() == 4 and widget.locator("svg rect").count() == 6

    widget.locator("select").select_option("corner-aligned")
    assert widget.locator(".reads").inner_text() == "The new cells read 0, 0.333, 0.667, 1."
    assert widget.locator(".clamped").inner_text() == "0 of 4"
    widget.locator("select").select_option("asymmetric")
    assert widget.locator(".reads").inner_text() == "The new cells read 0, 0.5, 1, 1.5."
    assert "asymmetric" in widget.locator("svg").get_attribute("aria-label")
