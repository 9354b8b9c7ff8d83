"""The site in Firefox and in WebKit, the engine of Safari, where these are installed.

    apt-get install firefox-esr webkit2gtk-driver xvfb

`make test` uses Chromium alone; what differs between engines is mostly layout, which each of these pages is asked for.
"""

import glob
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from test_pages import PAGES
from test_solve import TEXTS

PACKAGES = {"firefox": "puppeteer-core@24.43.1", "webkit": "selenium-webdriver@4.27.0"}
pytestmark = pytest.mark.slow
WRONG = "def patchify(img, P):\n    return img\n"
ENDLESS = "def patchify(img, P):\n    while True:\n        pass\n"


def program(engine):
    if engine == "firefox":
        return shutil.which("firefox-esr") or shutil.which("firefox")
    browsers = glob.glob("/usr/lib/*/webkit2gtk-4*/MiniBrowser")
    return browsers[-1] if browsers and shutil.which("WebKitWebDriver") and shutil.which("xvfb-run") else None


@pytest.fixture(scope="module", params=PACKAGES)
def found(request, npm, solving):
    """What the engine makes of every page, and of an exercise solved rightly, wrongly, endlessly and rightly again."""
    engine = request.param
    browser = program(engine)
    if not browser:
        pytest.skip(f"{engine} is not here")
    tries = [{"code": code, "stop": code is ENDLESS} for code in (TEXTS["patchify"].solution, WRONG, ENDLESS)]
    task = {
        "address": solving,
        "pages": PAGES,
        "widths": [1280, 460],
        "solving": {"path": "book/patchify.html", "name": "patchify", "tries": [*tries, tries[0]]},
    }
    script = Path(__file__).with_name("engines.mjs")
    command = ["node", script, engine, npm(PACKAGES[engine]), browser]
    environment = os.environ | {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}  # the tests may run as root
    if engine == "webkit":
        command = ["xvfb-run", "-a", "-s", "-screen 0 1400x1000x24", *command]
    done = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_page_fits_and_is_put_together(found):
    assert len(found["pages"]) == 2 * len(PAGES)
    amiss, formulas_seen = {}, 0
    for name, facts in found["pages"].items():
        formulas, cut = facts.pop("formulas"), facts.pop("cut")
        formulas_seen += formulas
        wanted = {"excess": 0, "flat": 0, "unmade": 0, "reaching": [], "font": True}
        if facts != wanted or (cut and name.endswith("1280")):
            amiss[name] = facts | {"cut": cut}
    assert amiss == {}
    assert formulas_seen > 2000
    assert found["complaints"] == []


def test_an_exercise_is_solved(found):
    right, wrong, stopped, again = found["verdicts"]
    assert right == again and "5 of 5 checks pass" in right
    assert "should have shape (1, 12); yours has (2, 2, 3)" in wrong
    assert stopped.startswith("Stopped")
