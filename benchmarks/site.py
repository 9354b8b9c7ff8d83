"""The site: how soon an exercise has its verdict, how soon a touched page is built again, what Lighthouse says.

python benchmarks/site.py              prints the figures
python benchmarks/site.py --keep       writes them to benchmarks/results/site.json too

Needs the built site (make book). The verdicts need Pyodide's packages in the folder that PYODIDE_PACKAGES names, and
npm; Lighthouse needs npm. Where these are not, their lines are left out.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "browser"), str(ROOT / "book" / "_ext")]

from course_run import write_run  # noqa: E402
from lighthouse import LIGHTHOUSE, scores  # noqa: E402
from serving import CHROMIUM, FLAGS, served  # noqa: E402

from autograder.notebooks.solution import exercise_texts  # noqa: E402

SITE = ROOT / "_build" / "html"
PRESS = """(name) => new Promise((done) => {
    const box = document.querySelector(`[data-exercise=${name}]`), verdict = box.querySelector(".solve-verdict");
    const start = performance.now();
    const watch = new MutationObserver(() => {
        if (!/checks pass|could not/.test(verdict.textContent)) return;
        watch.disconnect();
        done([(performance.now() - start) / 1000, verdict.textContent]);
    });
    watch.observe(verdict, { childList: true, subtree: true, characterData: true });
    box.querySelector(".solve-button.primary").click();
})"""


def package(name):
    """A folder with a package of npm; fetched once, as the tests do."""
    folder = ROOT / "_build" / "npm" / name
    if not (folder / "node_modules").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--prefix", folder, name], check=True)
    return folder


def ninetieth(values):
    return round(float(np.quantile(values, 0.9)), 3)


def verdicts(address, chapter, visits=5, presses=8):
    """Seconds from *Check* to the verdict: of the first press on a page that was just opened, and of the next ones."""
    name, text = next(iter(exercise_texts(chapter).items()))
    cold, warm = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for _ in range(visits):
            context = browser.new_context()  # nothing kept from the visit before
            page = context.new_page()
            page.goto(f"{address}book/{chapter}.html", wait_until="networkidle")
            for press in range(1 + presses):
                page.locator(f"[data-exercise={name}] textarea").fill(text.solution + "\n" * press)
                seconds, verdict = page.evaluate(PRESS, name)
                assert "checks pass" in verdict, verdict
                (warm if press else cold).append(seconds)
            context.close()
        browser.close()
    return {"cold": ninetieth(cold), "warm": ninetieth(warm)}


def rebuild(page, times=3):
    """Seconds that `make page` takes after that page was touched."""
    found = []
    command = [sys.executable, ROOT / "book" / "build.py", "build", ROOT, "-n", "-W", "--keep-going", "-q"]
    for _ in range(times):
        os.utime(ROOT / f"{page}.md")
        start = time.perf_counter()
        subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
        found.append(time.perf_counter() - start)
    return ninetieth(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/site.json")
    keep = parser.parse_args().keep
    if not (SITE / "index.html").exists():
        sys.exit("There is no site yet: make book")
    results = {"load": os.getloadavg()[0]}
    packages = os.environ.get("PYODIDE_PACKAGES")
    if packages and shutil.which("npm"):
        with tempfile.TemporaryDirectory() as scratch:
            html = shutil.copytree(SITE, Path(scratch) / "html")
            write_run(html, "", packages)
            with served(html) as address:
                for chapter in ("patchify", "pooling"):  # pooling needs SciPy
                    results[f"verdict, {chapter}"] = verdicts(address, chapter)
    if shutil.which("npm"):
        folder = package(LIGHTHOUSE)
        toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
        pages = [toc["root"]]
        pages += [page["file"] for part in toc["parts"] if part.get("numbered") for page in part["chapters"]]
        with served(SITE) as address:
            for page in pages:
                results[f"Lighthouse, {page}"] = scores(folder, f"{address}{page}.html")
    results["seconds to build a touched page again"] = {
        page: rebuild(page) for page in ("book/notation", "book/patchify", "book/resolution", "book/gpu/small_vit")
    }
    for name, value in results.items():
        print(f"{name}: {value}")
    if keep:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT)
        settings = {
            "date": datetime.date.today().isoformat(),
            "commit": commit.stdout.strip(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "what": "seconds, 90th percentile; verdicts from the press of Check, cold on a page just opened",
        }
        path = ROOT / "benchmarks" / "results" / "site.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings | results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
