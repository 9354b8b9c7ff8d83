"""Which system calls honest submissions make: the measurement behind the list of `autograder/sandbox/filter.py`.

    python benchmarks/system_calls.py

Needs strace. The cells below and the solutions of every chapter run without isolation, and what their process asks of
the kernel is written down; each call is printed with who makes it, and whether the filter allows it.
"""

import functools
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from autograder.judging.exercise import CHAPTERS, exercises
from autograder.judging.judge import judge
from autograder.notebooks.generate import source_notebook
from autograder.sandbox import filter
from autograder.sandbox.host import Sandbox

USES = {
    "NumPy": """
import numpy as np
a = np.random.default_rng(0).normal(size=(900, 900))
a @ a, np.linalg.svd(a[:200, :200]), np.fft.fft(a), np.linalg.pinv(a[:99, :99])
np.save("/tmp/a.npy", a), np.load("/tmp/a.npy", mmap_mode="r"), np.savetxt("/tmp/a.txt", a[:3])
np.memmap("/tmp/m", mode="w+", shape=1000).flush()
""",
    "SciPy": """
import numpy as np
import scipy.fft, scipy.integrate, scipy.interpolate, scipy.io, scipy.linalg, scipy.ndimage, scipy.optimize
import scipy.signal, scipy.sparse.linalg, scipy.spatial, scipy.special, scipy.stats
scipy.fft.fft2(np.ones((64, 64)), workers=2)
scipy.optimize.minimize(lambda x: (x**2).sum(), [1.0, 2.0])
scipy.spatial.cKDTree(np.random.rand(100, 3)).query(np.random.rand(5, 3), workers=2)
""",
    "Matplotlib": """
import matplotlib.pyplot as plt, numpy as np
fig, ax = plt.subplots()
ax.plot(np.arange(9)), ax.imshow(np.ones((9, 9)))
for kind in ("png", "svg", "pdf"): fig.savefig(f"/tmp/a.{kind}")
from PIL import Image
Image.open("/tmp/a.png").resize((9, 9)).save("/tmp/b.png")
""",
    "PyTorch": """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(2)
block = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
optimizer = torch.optim.AdamW(block.parameters())
block(torch.randn(2, 3, 16)).sum().backward(), optimizer.step()
torch.save(block.state_dict(), "/tmp/m.pt"), torch.load("/tmp/m.pt"), torch.randn(500, 500) @ torch.randn(500, 500)
for workers in (0, 2):
    for batch in DataLoader(TensorDataset(torch.randn(20, 3)), batch_size=4, num_workers=workers): pass
""",
    "threads": """
import asyncio, concurrent.futures, threading, time
with concurrent.futures.ThreadPoolExecutor(4) as pool: list(pool.map(abs, range(9)))
threading.Timer(0.01, print).start(), threading.Event().wait(0.05)
async def later(): await asyncio.sleep(0.01); return await asyncio.to_thread(abs, -1)
asyncio.run(later())
""",
    "processes": """
import concurrent.futures, multiprocessing, os
with multiprocessing.get_context("fork").Pool(2) as pool: pool.map(abs, range(9))
manager = multiprocessing.Manager()
manager.dict()[1] = 2
manager.shutdown()
if os.fork() == 0: os._exit(0)
os.wait()
""",
    "files": """
import os, pathlib, shutil, sqlite3, tempfile
with tempfile.TemporaryDirectory() as folder:
    one, two = pathlib.Path(folder, "one"), pathlib.Path(folder, "two")
    one.write_text("x"), os.chmod(one, 0o600), os.symlink("one", two), os.link(one, folder + "/three")
    shutil.copy(one, folder + "/four"), shutil.copytree(folder, folder + "s"), shutil.rmtree(folder + "s")
    os.utime(one), os.truncate(one, 0), list(os.walk(folder)), os.statvfs(folder), os.path.realpath(two)
    with open(one, "r+") as file: os.fsync(file.fileno()), file.truncate(9)
sqlite3.connect(":memory:").execute("create table a(b)")
""",
}


def calls(name, cells, names=(), judged=()):
    """The calls of the process of a submission."""
    packages = ("numpy", "torch") if name in ("PyTorch", "small_vit") else ("numpy",)
    limits = {"time_limit": 600, "cell_limit": 300, "notebook_limit": 1200, "memory_mb": 16_000, "processes": 400}
    with Sandbox(packages, "none", **limits) as box, tempfile.NamedTemporaryFile("r") as file:
        warm = box.process.pid
        command = ["strace", "-f", "-qq", "-s", "0", "-e", "signal=none", "-o", file.name, "-p", str(warm)]
        with subprocess.Popen(command) as tracer:
            time.sleep(1.5)
            with box.session(cells, names) as session:
                for error in session.errors:
                    print(f"{name}: {error}", file=sys.stderr)
                for exercise in judged:
                    judge(exercise, functools.partial(session.call, exercise.name), hidden=True)
            tracer.terminate()
        lines = re.findall(r"^(\d+)\s+(\w+)\(", file.read(), re.MULTILINE)
    return {call for pid, call in lines if int(pid) != warm}


def main():
    who = defaultdict(list)
    for name, cell in USES.items():
        for call in calls(name, [cell]):
            who[call].append(name)
    for chapter in CHAPTERS:
        cells = [cell.source for cell in source_notebook(chapter).cells if cell.cell_type == "code"]
        judged = exercises(chapter)
        for call in calls(chapter, cells, [exercise.name for exercise in judged], judged):
            who[call].append(chapter)
    for call in sorted(who):
        how = {**dict.fromkeys(filter.ALLOWED, "allowed"), **dict.fromkeys(filter._CHECKED, "by argument")}
        how |= dict.fromkeys(filter._IDLE, "idle")
        print(f"{call:<20}{how.get(call, 'REFUSED'):<13}{', '.join(who[call])}")


if __name__ == "__main__":
    main()
