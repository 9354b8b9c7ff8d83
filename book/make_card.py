"""Draw the picture that stands beside a link to the course (card.jpg). Run by hand; needs Playwright's Chromium.

python book/make_card.py
"""

import base64
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
STATIC = HERE / "_theme/course/static"
PAGE = """<style>
@font-face {{ font-family: Sans; src: url({font}); font-weight: 200 900; }}
body {{ margin: 0; width: 1200px; height: 630px; display: flex; align-items: center; gap: 64px; background: #fdfcfa;
  color: #1d2126; font-family: Sans; }}
.grid {{ display: grid; grid-template-columns: repeat(7, 1fr); gap: 8px; width: 500px; height: 500px;
  margin-left: 64px; }}
.grid div {{ background: url({picture}) 0 0 / 500px; }}
h1 {{ margin: 0 0 20px; font-size: 76px; font-weight: 650; line-height: 1.05; }}
p {{ margin: 0; font-size: 34px; color: #586069; line-height: 1.3; }}
</style><div class="grid">{patches}</div>
<div><h1>Patches and Positions</h1><p>How a Vision Transformer<br>reads an image</p></div>"""


def data(path, kind):
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def main():
    step = 500 / 7
    patches = "".join(
        f'<div style="background-position: {-column * step}px {-row * step}px"></div>'
        for row in range(7)
        for column in range(7)
    )
    font = data(STATIC / "fonts/course-sans.woff2", "font/woff2")
    picture = data(HERE / "widgets/pavilion.webp", "image/webp")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 630})
        page.set_content(PAGE.format(font=font, picture=picture, patches=patches))
        page.evaluate("document.fonts.ready")
        page.screenshot(path=HERE / "card.jpg", type="jpeg", quality=80)
        browser.close()


if __name__ == "__main__":
    main()
