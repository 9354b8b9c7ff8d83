"""The interactive figures in a real browser: their numbers are those of `solutions`, and the keyboard is enough."""

import base64
import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import expect

from solutions.positions import factorized_table, sincos_2d
from solutions.resolution import bilinear_resize_matrix, pi_resize, resize_pos_embed
from solutions.rotary import rope_2d_axial, rope_2d_mixed
from solutions.sincos import sincos_1d
from solutions.small_vit import SmallViT, flops
from solutions.tokens import attention_score_bytes, patch_token_count

ROOT = Path(__file__).parents[2]
WIDGETS = ROOT / "book" / "widgets"
THEME = ROOT / "book" / "_theme" / "course" / "static"
FIGURES = ["patch-average", "token-cost", "position-similarity", "rope-score", "half-pixel", "filter-resize"]
KINDS = {".css": "text/css", ".js": "text/javascript", ".webp": "image/webp", ".woff2": "font/woff2"}
HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
BODY = "".join(
    f'<div class="widget" role="group" aria-label="{name}"><{name}><p>Text.</p></{name}></div>' for name in FIGURES
)
SCRIPTS = "".join(f'<script type="module" src="/{name}.js"></script>' for name in FIGURES)
HEAD += '<title>t</title><link rel="stylesheet" href="/course.css"><link rel="stylesheet" href="/rooms.css"></head>'
PAGE = f"{HEAD}<body><main><h1>t</h1><article>{BODY}</article></main>"


@pytest.fixture(scope="module")
def opened(browser):
    """Open a page with all figures: `opened(width=390, scripts=False)`. At the end nothing may have gone wrong."""
    errors, asked, contexts = [], [], []

    def serve(route):
        path = route.request.url.split("/", 3)[3]
        asked.append(path)
        if path in ("", "still"):
            body = PAGE + (SCRIPTS if path == "" else "")
            return route.fulfill(body=body, content_type="text/html; charset=utf-8")
        file = next((folder / path for folder in (WIDGETS, THEME) if (folder / path).is_file()), None)
        if file is None:
            errors.append(f"asked for {path}")
            return route.fulfill(status=404, body="")
        return route.fulfill(body=file.read_bytes(), content_type=KINDS[file.suffix])

    def open_page(path="", width=1280, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.asked = asked
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: message.type == "error" and errors.append(message.text))
        page.route("**/*", serve)
        page.goto(f"http://figures.test/{path}")
        if path == "":
            page.wait_for_function("n => document.querySelectorAll('[data-ready]').length === n", arg=len(FIGURES))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []


HEIGHTS = "all => all.map(box => box.getBoundingClientRect().height)"


@pytest.fixture(scope="module")
def page(opened):
    page = opened()
    page.heights = page.eval_on_selector_all(".widget", HEIGHTS)  # before anything is moved
    return page


def call(page, module, function, cases):
    """What an exported function of a module returns for each list of arguments."""
    return page.evaluate(
        """async ([module, name, cases]) => {
            const found = (await import(`/${module}.js`))[name];
            const plain = (x) => (ArrayBuffer.isView(x) ? Array.from(x) : x);
            return cases.map((args) => plain(found(...args)));
        }""",
        [module, function, cases],
    )


def constant(name):
    """A constant of `trained.js`, read without JavaScript."""
    text = (WIDGETS / "trained.js").read_text(encoding="utf-8")
    value = re.search(rf"export const {name} = {{(.*)}};", text)[1]
    return json.loads("{" + re.sub(r"(\w+):", r'"\1":', value) + "}")


def table(name):
    value = constant(name)
    numbers = np.frombuffer(base64.b64decode(value["data"]), np.int8) * value["scale"]
    return numbers.reshape(value["shape"])


# ------------------------------------------------------------------ numbers


def test_coordinates_are_pytorchs(page):
    sizes = [(2, 4), (14, 24), (24, 14), (1, 3), (5, 1), (7, 7), (3, 20)]
    conventions = ("half-pixel", "corner-aligned", "asymmetric")
    cases = [[n, n_new, convention] for n, n_new in sizes for convention in conventions]
    for (n, n_new, convention), found in zip(cases, call(page, "resize", "coordinates", cases), strict=True):
        if convention == "asymmetric":
            expected = np.minimum(np.arange(n_new) * n / n_new, n - 1)
        else:
            ramp = torch.arange(n, dtype=torch.float64)[None, None]  # its value is its coordinate
            options = {"mode": "linear", "align_corners": convention == "corner-aligned"}
            expected = F.interpolate(ramp, n_new, **options)[0, 0].numpy()
        np.testing.assert_allclose(np.clip(found, 0, n - 1), expected, rtol=0, atol=1e-12)


def test_filters_are_resized_as_in_python(page):
    rng = np.random.default_rng(0)
    squares = [
        (p, p_new, rng.normal(size=p * p)) for p, p_new in [(1, 2), (3, 5), (8, 16), (8, 24), (8, 8), (8, 5), (8, 4)]
    ]
    cases = [[w.tolist(), p, p_new] for p, p_new, w in squares]
    enlarged, kept = (call(page, "filter-resize", name, cases) for name in ("resizePicture", "piResize"))
    for (p, p_new, w), picture, filter_ in zip(squares, enlarged, kept, strict=True):
        B = bilinear_resize_matrix(p, p_new)
        np.testing.assert_allclose(picture, B @ w, rtol=0, atol=1e-12)
        np.testing.assert_allclose(filter_, pi_resize(w, B), rtol=0, atol=1e-9)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def turned(scheme, H, W, d, base, degrees):
    """Keys of the same content, each pair (1, 0), turned to every place."""
    rows, cols = np.divmod(np.arange(H * W), W)
    x = np.tile([1.0, 0.0], (H * W, d // 2))
    if scheme == "axial":
        return rope_2d_axial(x, rows, cols, base=base)
    theta, a = base ** (-np.arange(d // 4) / (d // 4)), np.radians(degrees)
    along_x, along_y = theta * np.cos(a), theta * np.sin(a)
    return rope_2d_mixed(x, rows, cols, np.append(along_x, -along_y), np.append(along_y, along_x))


def position_vectors(scheme, H, W, d, base, degrees):
    """One vector for each patch whose inner products are the similarities."""
    if scheme == "none":
        return np.ones((H * W, 1))
    if scheme == "learned":
        return resize_pos_embed(table("learned"), 0, (7, 7), (H, W))
    if scheme == "factorized":
        return resize_pos_embed(factorized_table(table("rows"), table("columns")), 0, (7, 7), (H, W))
    if scheme == "raster":
        return sincos_1d(np.arange(H * W), d, base)
    if scheme == "sincos":
        return sincos_2d(H, W, d, base)
    return turned(scheme, H, W, d, base, degrees)


def test_similarities_are_those_of_the_tables(page):
    grids = [(14, 14, 5, 9), (3, 8, 2, 0), (7, 7, 0, 6)]
    schemes = ["none", "learned", "factorized", "raster", "sincos", "axial", "mixed"]
    widths = [(768, 10000, 20), (16, 100, 75)]
    cases = [
        [scheme, H, W, r, c, {"d": d, "base": base, "degrees": degrees}]
        for scheme in schemes
        for H, W, r, c in grids
        for d, base, degrees in widths
    ]
    for case, found in zip(cases, call(page, "position-similarity", "similarity", cases), strict=True):
        scheme, H, W, r, c, options = case
        vectors = unit(position_vectors(scheme, H, W, **options))
        np.testing.assert_allclose(found, vectors @ vectors[r * W + c], rtol=0, atol=1e-9, err_msg=str(case))


def test_rotary_scores_are_those_of_python(page):
    rng = np.random.default_rng(1)
    for form in ("axial", "mixed"):
        for query_at, key_at, degrees in [((2, 3), (5, 1), 30), ((0, 0), (7, 11), 75), ((4, 4), (4, 4), 0)]:
            q, k = rng.normal(size=(2, 1, 8))
            if form == "axial":
                ours = [rope_2d_axial(x, [r], [c]) for x, (r, c) in ((q, query_at), (k, key_at))]
            else:
                a, theta = np.radians(degrees), 10.0 ** -np.array([0, 0.5])
                along_x, along_y = theta * np.cos(a), theta * np.sin(a)
                thetas = np.append(along_x, -along_y), np.append(along_y, along_x)
                ours = [rope_2d_mixed(x, [r], [c], *thetas) for x, (r, c) in ((q, query_at), (k, key_at))]
            turns = call(page, "rope-score", "angles", [[form, query_at, degrees], [form, key_at, degrees]])
            contents = {"query": q.reshape(4, 2).tolist(), "key": k.reshape(4, 2).tolist()}
            parts = call(page, "rope-score", "parts", [[contents, *turns]])[0]
            np.testing.assert_allclose(parts, (ours[0] * ours[1]).reshape(4, 2).sum(axis=1), rtol=0, atol=1e-12)


def test_tokens_and_costs_are_those_of_python(page):
    images = [(224, 224, 16), (384, 250, 14), (100, 70, 16), (640, 32, 4), (33, 47, 32)]
    cases = [[*image, mode] for image in images for mode in ("crop", "pad")]
    for case, (rows, columns) in zip(cases, call(page, "token-cost", "patchGrid", cases), strict=True):
        assert rows * columns + 5 == patch_token_count(*case[:3], 5, case[3])

    # With pooling over patches, so that all tokens go through all blocks
    model = SmallViT((30, 44), 5, d=24, depth=3, n_heads=2, d_ff=96, registers=2, pooling="mean_then_norm")
    T = 6 * 8 + 2
    counted = flops(model)  # products and sums: two for each multiplication
    found = call(page, "token-cost", "work", [[T, 24, 3]])[0]
    assert [2 * found["alone"], 2 * found["pairs"]] == [counted["projections"], counted["scores"]]
    assert call(page, "token-cost", "scoreBytes", [[T, 2, 3]]) == [3 * attention_score_bytes(T, 2)]


def test_the_other_order_holds_every_patch_once(page):
    for n, order in zip((1, 2, 196), call(page, "patch-average", "shuffled", [[1], [2], [196]]), strict=True):
        assert sorted(order) == list(range(n))
    assert (np.array(order) != np.arange(196)).mean() > 0.95


# ------------------------------------------------------- what the reader does


def press(page, selector, *keys):
    page.focus(selector)
    for key in keys:
        page.keyboard.press(key)


def said(page, figure):
    return page.locator(f"{figure} [role=status]").inner_text()


def marker_place(page, selector):
    return page.locator(selector).get_attribute("aria-valuetext")


def drag(page, selector, rows, columns):
    """Drag a marker by so many cells."""
    marker, grid = page.locator(selector), page.locator(selector).locator("..")
    marker.scroll_into_view_if_needed()
    box, cells = marker.bounding_box(), grid.bounding_box()
    H, W = (float(grid.evaluate(f"box => box.style.getPropertyValue('--{name}')")) for name in ("rows", "columns"))
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + columns * cells["width"] / W, y + rows * cells["height"] / H, steps=4)
    page.mouse.up()


def test_a_patch_is_chosen_by_arrow_keys_and_by_dragging(page):
    figure, marker = "position-similarity", "position-similarity .marker"
    assert "(5, 9)" in said(page, figure) and "lowest 0.711, at (13, 0)" in said(page, figure)
    press(page, marker, "ArrowUp", "ArrowLeft", "ArrowLeft")
    assert marker_place(page, marker) == "row 4, column 7" and "(4, 7)" in said(page, figure)
    assert page.locator(marker).get_attribute("aria-valuenow") == str(4 * 14 + 7)
    drag(page, marker, 3, -2)
    assert marker_place(page, marker) == "row 7, column 5"
    drag(page, marker, 30, 30)
    assert marker_place(page, marker) == "row 13, column 13"

    # the grid need not be square, and a patch that no longer exists is moved
    press(page, f"{figure} .rows", *["ArrowLeft"] * 9)
    assert marker_place(page, marker) == "row 4, column 13"
    drawn = page.locator(f"{figure} canvas").evaluate("canvas => [canvas.height, canvas.width]")
    assert drawn == [5, 14]
    for scheme, remark in [("none", "Nothing"), ("raster", "list"), ("mixed", "offset alone")]:
        page.locator(f"{figure} .scheme").select_option(scheme)
        assert remark in said(page, figure)
        assert page.locator(f"{figure} .degrees").is_disabled() == (scheme != "mixed")
    assert page.locator(f"{figure} .width").input_value() == "64"
    page.locator(f"{figure} .scheme").select_option("sincos")


def test_the_map_is_brightest_at_its_patch(page):
    pixels = page.locator("position-similarity canvas").evaluate(
        "canvas => Array.from(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data)"
    )
    pixels = np.reshape(pixels, (5, 14, 4))[..., 1]  # viridis: green grows all the way
    assert np.unravel_index(pixels.argmax(), pixels.shape) == (4, 13)
    assert np.unravel_index(pixels.argmin(), pixels.shape) == (0, 0)


def test_query_and_key_moved_together_keep_their_score(page):
    figure = "rope-score"
    score, dials = page.locator(f"{figure} .score"), page.locator(f"{figure} .dials")
    for form in ("axial", "mixed"):
        page.locator(f"{figure} .form").select_option(form)
        before, hands = score.inner_text(), dials.inner_html()
        press(page, f"{figure} .both", "ArrowDown", "ArrowRight", "ArrowRight")
        assert score.inner_text() == before and "still" in said(page, figure)
        assert dials.inner_html() != hands
        drag(page, f"{figure} .both", -1, 3)
        assert score.inner_text() == before
        assert page.locator(f"{figure} .offset").inner_text() == "(3, −2)"
        drag(page, f"{figure} .marker.key", -1, 1)
        assert score.inner_text() != before and "another" in said(page, figure)
        drag(page, f"{figure} .marker.key", 1, -1)
        assert score.inner_text() == before
        press(page, f"{figure} .both", *["ArrowUp"] * 5, *["ArrowLeft"] * 6)  # not beyond the grid
        assert marker_place(page, f"{figure} .marker.query") == "row 0, column 2"
        assert marker_place(page, f"{figure} .marker.key") == "row 3, column 0"
        press(page, f"{figure} .both", "ArrowDown", "ArrowDown", "ArrowRight")


def test_resizing_a_row_by_hand(page):
    figure = "half-pixel"
    press(page, f"{figure} .old", "ArrowLeft", "ArrowLeft")
    press(page, f"{figure} .new", "ArrowLeft", "ArrowLeft", "ArrowLeft")
    press(page, f"{figure} .look", "Home", "ArrowRight")
    sentence = "New cell 1 is 0.75 of cell 0 + 0.25 of cell 1 (half-pixel, at 0.25); "
    sentence += "0.67 of cell 0 + 0.33 of cell 1 (corner-aligned, at 0.333); "
    sentence += "0.50 of cell 0 + 0.50 of cell 1 (asymmetric, at 0.5)."
    assert said(page, figure) == sentence
    reads = page.locator(f"{figure} svg").evaluate_all("all => all.map(svg => svg.getAttribute('aria-label'))")
    ends = ["−0.25, 0.25, 0.75, 1.25.", "0, 0.333, 0.667, 1.", "0, 0.5, 1, 1.5."]
    assert [label.split("reads: ")[1] for label in reads] == ends
    facts = page.locator(f"{figure} figcaption span").all_inner_texts()
    assert facts == [
        "step 0.5 · off by 0 · 2 clamped",
        "step 0.333 · off by 0.25 · 0 clamped",
        "step 0.5 · off by 0.25 · 1 clamped",
    ]
    page.locator(f"{figure} svg").nth(2).scroll_into_view_if_needed()
    box = page.locator(f"{figure} svg").nth(2).bounding_box()
    page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 20)
    assert said(page, figure).startswith("New cell 3 is old cell 1 ")


def test_counting_tokens(page):
    figure = "token-cost"
    assert page.locator(f"{figure} .tokens").inner_text() == "27 × 36 + 1 = 973"
    assert "6 rows and 8 columns of pixels, 3.1%, are never read" in said(page, figure)
    page.locator(f"{figure} .mode").select_option("pad")
    page.locator(f"{figure} .prefix").select_option("5")
    assert page.locator(f"{figure} .tokens").inner_text() == "28 × 37 + 5 = 1,041"
    assert "are empty" in said(page, figure)
    press(page, f"{figure} .side", "ArrowRight", "ArrowRight")
    assert "Every pixel is read" in said(page, figure)
    page.locator(f"{figure} .prefix").select_option("1")
    for side in ("height", "width"):
        page.locator(f"{figure} .{side}").fill("224")
    assert page.locator(f"{figure} .tokens").inner_text() == "14 × 14 + 1 = 197"
    assert "197 tokens: 1 times the scores" in said(page, figure)
    shown = [page.locator(f"{figure} .{name}").inner_text() for name in ("alone", "pairs", "memory")]
    assert shown == ["16.7 billion", "715 million", "11.2 MB"]  # 12 * 12 * 197 * 768**2, ...

    corner = page.locator(f"{figure} .corner")
    corner.scroll_into_view_if_needed()
    box, picture = corner.bounding_box(), page.locator(f"{figure} svg").bounding_box()
    x, y, pixel = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, picture["width"] / 640
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 96 * pixel, y - 32 * pixel, steps=3)
    page.mouse.up()
    assert page.locator(f"{figure} .tokens").inner_text() == "12 × 20 + 1 = 241"


def test_a_learned_filter_and_its_tokens(page):
    figure, value = "filter-resize", constant("picture")
    pixels = np.frombuffer(base64.b64decode(value["data"]), np.uint8) * value["gain"] + value["shift"]
    image = (bilinear_resize_matrix(28, 56) @ pixels).reshape(56, 56)
    filters = table("filters")

    def shown(way):
        return page.locator(f"{figure} .{way} b").inner_text().replace("−", "-")

    def expected(i, r, c, p):
        B, w = bilinear_resize_matrix(8, p), filters[i]
        x = image[8 * r : 8 * r + 8, 8 * c : 8 * c + 8].ravel()
        tokens = {"kept": x @ w, "naive": B @ x @ (B @ w), "divided": B @ x @ (B @ w) * 64 / p**2}
        return tokens | {"pi": B @ x @ pi_resize(w, B)}

    start = page.locator(f"{figure} .marker").get_attribute("aria-valuetext")
    r, c = map(int, re.findall(r"\d+", start))
    for way, token in expected(0, r, c, 16).items():
        assert float(shown(way).split()[1]) == pytest.approx(token, abs=6e-4)
    assert shown("pi") == shown("kept") and "exactly the old ones" in said(page, figure)

    press(page, f"{figure} input[type=radio]", "ArrowRight", "ArrowRight")
    press(page, f"{figure} .marker", "ArrowDown", "ArrowRight")
    press(page, f"{figure} .side", *["ArrowLeft"] * 10)
    for way, token in expected(2, r + 1, c + 1, 6).items():
        assert float(shown(way).split()[1]) == pytest.approx(token, abs=6e-4)
    assert "no filter so small fits every patch" in said(page, figure)


def test_a_picture_of_ones_own_stays_here(page):
    figure = "patch-average"
    before = len(page.asked)
    pixels = np.random.default_rng(3).integers(0, 256, size=(112, 224, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    own = {"name": "own.png", "mimeType": "image/png", "buffer": file.getvalue()}
    page.locator(f"{figure} input[type=file]").set_input_files(own)
    page.locator(f"{figure} button").wait_for()
    assert page.locator(f"{figure} .tokens").inner_text() == "7 × 14 = 98"
    press(page, f"{figure} .marker", "ArrowLeft")
    colour = pixels[4 * 16 : 5 * 16, 5 * 16 : 6 * 16].mean(axis=(0, 1))
    words = said(page, figure)
    assert words.startswith("Patch 61 is in row 4, column 5: 4 · 14 + 5.")
    np.testing.assert_allclose([int(x) for x in re.findall(r"\d+", words)[-3:]], colour, atol=0.51)

    page.locator(f"{figure} .show").select_option("shuffled")
    order = call(page, figure, "shuffled", [[98]])[0]
    shown = page.locator(f"{figure} .averages").evaluate(
        "canvas => Array.from(canvas.getContext('2d').getImageData(0, 0, 224, 112).data)"
    )
    shown = np.reshape(shown, (112, 224, 4))[..., :3]
    for place in (0, 50, 97):
        r, c, r_from, c_from = (16 * n for n in (*divmod(place, 14), *divmod(order[place], 14)))
        np.testing.assert_array_equal(shown[r : r + 16, c : c + 16], pixels[r_from : r_from + 16, c_from : c_from + 16])
    assert f"now stands at number {order.index(61)}" in said(page, figure)

    broken = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no picture"}
    page.locator(f"{figure} input[type=file]").set_input_files(broken)
    page.wait_for_function("document.querySelector('patch-average [role=status]').textContent.includes('cannot read')")
    page.locator(f"{figure} button").click()
    page.locator(f"{figure} .show").select_option("average")
    assert page.locator(f"{figure} .tokens").inner_text() == "14 × 14 = 196"

    drop = """async ([figure, bytes]) => {
        const files = new DataTransfer();
        files.items.add(new File([Uint8Array.from(bytes)], "own.png", { type: "image/png" }));
        document.querySelector(figure).dispatchEvent(new DragEvent("drop", { dataTransfer: files, cancelable: true }));
    }"""
    page.evaluate(drop, [figure, list(file.getvalue())])
    page.locator(f"{figure} button").wait_for()
    assert page.locator(f"{figure} .tokens").inner_text() == "7 × 14 = 98"

    line = io.BytesIO()
    Image.new("RGB", (3000, 1)).save(line, "PNG")
    page.locator(f"{figure} input[type=file]").set_input_files(own | {"buffer": line.getvalue()})
    expect(page.locator(f"{figure} .tokens")).to_have_text("1 × 224 = 224")
    page.locator(f"{figure} input[type=file]").set_input_files(own)  # the same file once more
    expect(page.locator(f"{figure} .tokens")).to_have_text("7 × 14 = 98")
    assert len(page.asked) == before  # nothing left the page


# ------------------------------------------------------------- for everybody


def test_a_phone_sees_all_and_moves_by_touch(opened):
    page = opened(width=390, has_touch=True, color_scheme="dark", reduced_motion="reduce")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    heights = page.eval_on_selector_all(".widget", HEIGHTS)
    before = opened("still", width=390).eval_on_selector_all(".widget", HEIGHTS)
    assert dict(zip(FIGURES, before, strict=True)) == dict(zip(FIGURES, heights, strict=True))
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.getAnimations().length") == 0

    grid = page.locator("position-similarity .map")
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    page.touchscreen.tap(box["x"] + 2.5 * box["width"] / 14, box["y"] + 11.5 * box["height"] / 14)
    assert marker_place(page, "position-similarity .marker") == "row 11, column 2"


def test_accessible_in_daylight(page):
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()


def test_nothing_jumps_when_the_modules_arrive(opened, page):
    before = opened("still").eval_on_selector_all(".widget", HEIGHTS)
    assert dict(zip(FIGURES, before, strict=True)) == dict(zip(FIGURES, page.heights, strict=True))


def test_modules_are_small():
    sizes = {file.name: len(file.read_bytes()) for file in WIDGETS.glob("*.js")}
    assert max(sizes[f"{name}.js"] for name in FIGURES) < 10_000
    assert (
        sum(len(gzip.compress((WIDGETS / f"{name}.js").read_bytes())) for name in [*FIGURES, "figure", "resize"])
        < 30_000
    )
