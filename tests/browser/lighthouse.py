"""Lighthouse on one page: for the tests and for benchmarks/site.py."""

import json
import os
import subprocess

from serving import CHROMIUM

LIGHTHOUSE = "lighthouse@12.8.2"  # the last that runs on Node 20


def scores(folder, address):
    """Lighthouse's scores of a page, as a phone on a slow network sees it.

    Parameters
    ----------
    folder : Path
        Where npm has put Lighthouse.
    address : str

    Returns
    -------
    dict
        `performance`, `accessibility`, `best-practices` and `seo`, each from 0 to 1.
    """
    command = [folder / "node_modules/.bin/lighthouse", address, "--output=json", "--quiet"]
    command += [f"--chrome-flags=--headless=new --no-sandbox --disable-gpu --user-data-dir={folder / 'profile'}"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"CHROME_PATH": CHROMIUM})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["categories"]
    return {name: category["score"] for name, category in found.items()}
