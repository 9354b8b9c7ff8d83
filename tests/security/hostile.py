"""Hostile submissions, whole ones: what each hands in for *Patchify*, and what it deserves.

`test_hostile.py` grades them with ours, `benchmarks/attacks.py` with stock nbgrader too. Each is a harmless version
of its attack: what it may write lies in a course and a home folder made to be thrown away, what it starts ends by
itself. A submission that has got what it wanted raises an error that says GAINED, which then stands in what the
grader returns.
"""

import contextlib
import hashlib
import json
import os
import re
import secrets
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

from build import STUDENTS, grade_id, notebook, submit

ROOT = Path(__file__).parents[2]

POINTS = {"patchify": 3.0, "unpatchify": 2.0, "conv_weight_to_linear": 3.0, "patch_embed_conv": 4.0}
WRONG = "\n\n".join(f"def {name}(*args, **kwargs):\n    return 0.0" for name in POINTS)
PRELUDE = """
import builtins, contextlib, ctypes, gc, glob, mmap, os, signal, socket, sqlite3, struct, sys, threading, time
import numpy as np
def gained(what):
    raise RuntimeError("GAI" + "NED " + str(what))
"""


@dataclass(frozen=True)
class Attack:
    """One hostile submission.

    Attributes
    ----------
    item : str
        What of `grading.md`'s list it belongs to.
    name : str
    cell : str
        Code of a cell that runs before the functions. @COURSE@, @ROOT@, @HOME@, @PORT@ and @MARK@ in it are what
        the attacker knows: the folders of the course, of this repository and of the grader's user, the port of a
        server on this machine and a word to leave behind.
    patchify : str
        Code for the cell of `patchify`; by default the function is as the other three.
    others : str
        "wrong": the four functions are wrong and deserve nothing; "right": the other three deserve their nine points.
    extra : float
        Points that the `patchify` of the attack may have in truth.
    text : str
        A Markdown cell.
    metadata : dict
        Put into nbgrader's metadata of every check.
    """

    item: str
    name: str
    cell: str = ""
    patchify: str = ""
    others: str = "right"
    extra: float = 0.0
    text: str = ""
    metadata: tuple = ()

    @property
    def least(self):
        """The points that it must have: those of its right functions."""
        if self.others == "wrong":
            return 0.0
        return sum(POINTS.values()) - (POINTS["patchify"] if self.patchify else 0.0)

    @property
    def most(self):
        """The points that it may have."""
        return self.least + self.extra

    def notebook(self, **known):
        """The notebook, with what the attacker knows filled in (`course`, `root`, `home`, `port`, `mark`)."""
        made = notebook(WRONG if self.others == "wrong" else STUDENTS["ada"])
        for cell in made["cells"]:
            if grade_id(cell) == "patchify" and self.patchify:
                own, cell["source"] = cell["source"], self.patchify.strip()
            if grade_id(cell) == "patch_embed_conv" and self.patchify:  # it calls the other one
                cell["source"] = f"{own}\n\n{cell['source']}".replace("patchify(", "_cut(")
            if (grade_id(cell) or "").startswith("check_"):
                cell["metadata"]["nbgrader"].update(self.metadata)
        first = {"cell_type": "code", "id": "attack", "metadata": {}, "outputs": [], "execution_count": None}
        made["cells"].insert(2, first | {"source": f"{PRELUDE}\n{self.cell.strip()}"})
        if self.text:
            made["cells"].insert(1, {"cell_type": "markdown", "id": "note", "metadata": {}, "source": self.text})
        text = json.dumps(made)
        for name, value in known.items():
            text = text.replace(f"@{name.upper()}@", json.dumps(str(value))[1:-1])
        return json.loads(text)


class World:
    """What an attacker may hope to reach: a course with another student's work, a home folder, a server.

    Parameters
    ----------
    folder : path
        The course and the home folder are made in it.
    files : dict
        Place in the course -> bytes.
    """

    def __init__(self, folder, files):
        self.course, self.home = Path(folder, "course"), Path(folder, "home")
        self.home.mkdir(parents=True)
        for place, content in files.items():
            (self.course / place).parent.mkdir(parents=True, exist_ok=True)
            (self.course / place).write_bytes(content)
        submit(self.course, "next", notebook(STUDENTS["ada"]))
        self.mark = f"m{secrets.token_hex(6)}"  # a process's name has at most 15 characters
        self.before = self._files()

    def __enter__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.neighbour = socket.socket(socket.AF_UNIX)
        self.neighbour.bind(f"\0{self.mark}")
        self.neighbour.listen()
        for listener in (self.server, self.neighbour):
            listener.setblocking(False)
        return self

    def __exit__(self, *_):
        self.server.close()
        self.neighbour.close()

    def notebook(self, attack):
        """The attack's notebook, filled in with what there is in this world."""
        port = self.server.getsockname()[1]
        return attack.notebook(course=self.course, root=ROOT, home=self.home, port=port, mark=self.mark)

    def _files(self):
        kept = [self.course / "nbgrader_config.py", *(self.course / "exercises").rglob("*")]
        kept += (self.course / "submitted" / "next").rglob("*")
        digest = {path: hashlib.sha256(path.read_bytes()).digest() for path in kept if path.is_file()}
        return digest | dict.fromkeys((self.home / ".ipython").rglob("startup/*.py"), b"")

    def gains(self, returned, page):
        """What an attack has reached, in words; a process that it left is ended.

        Parameters
        ----------
        returned : str
            All that the grader says of the submission.
        page : str
            Its feedback, as HTML.
        """
        said = set(re.findall(r"GAINED ([\w .:/-]{1,40}\w)", returned + page))
        gained = [f"had {what}" for what in sorted(said)]
        if f"<script>alert('{self.mark}')" in page.replace("&#39;", "'").replace('\\"', '"'):
            gained.append("its script is in the feedback")
        if len(page) > 10**6:
            gained.append(f"feedback of {len(page) / 1e6:.0f} MB")
        after = self._files()
        for path in sorted({path for path in self.before | after if self.before.get(path) != after.get(path)}):
            place = path.relative_to(self.course.parent)
            gained.append(f"wrote {place.name if place.parts[0] == 'home' else place.relative_to('course')}")
        if (self.home / self.mark).exists():
            gained.append("its code ran in the grader")
        for listener, whose in ((self.server, "a server"), (self.neighbour, "a process outside")):
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                gained.append(f"reached {whose}")
        for pid in self._left():
            os.kill(pid, signal.SIGKILL)
            gained.append("left a process")
        return gained

    def _left(self):
        """Processes with the mark for their name."""
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if Path("/proc", entry, "comm").read_text().strip() == self.mark:
                    yield int(entry)


def _from(lines):
    """A `patchify` that tries something; being refused is an error like any other."""
    body = "\n".join(f"    {line}" for line in lines.strip().splitlines())
    return f"def patchify(img, P):\n{body}"


# Answers with the reference of the declared exercise. `objects` yields what is to be searched for it.
USE_REFERENCE = """
def patchify(*args):
    for value in objects():
        if type(value).__name__ == "Exercise" and value.name == "patchify":
            return value.reference(*args)
    return 0.0
"""

# Each item is in the words of the list.
_EQUAL = "an object equal to everything"
_TESTING = "numpy.testing patched"
_CHECKER = "the checker patched"
_BLANKED = "test cells blanked"
_FORGED = "a forged result or partial credit"
_HIDDEN = "hidden cases or expected values read"
_REFERENCE = "the reference imported or read"
_GRADEBOOK = "the gradebook read or written"
_FILES = "another student's files read or written"
_INFECTED = "later students infected"
_CRASH = "sys.exit, os._exit, a crash"
_LOOP = "an endless loop"
_HOG = "memory, process and disk hogs"
_FLOOD = "a flood of output"
_OUTLIVES = "a process that outlives the grading"
_NETWORK = "network use"
_ENVIRONMENT = "grading detected from the environment"
_SCRIPT = "HTML or script in returned feedback"
_VALUES = "inputs mutated, NaN, broadcasting, lying subclasses"
_CODED = "visible cases hard-coded"
ITEMS = (_EQUAL, _TESTING, _CHECKER, _BLANKED, _FORGED, _HIDDEN, _REFERENCE, _GRADEBOOK, _FILES, _INFECTED, _CRASH,
         _LOOP, _HOG, _FLOOD, _OUTLIVES, _NETWORK, _ENVIRONMENT, _SCRIPT, _VALUES, _CODED)  # fmt: skip

ATTACKS = (
    Attack(_EQUAL, "returns an object that is equal to everything", others="wrong", cell="""
class Same:
    shape, ndim, dtype = (2, 12), 2, np.dtype(float)
    __eq__ = __le__ = __ge__ = __lt__ = __gt__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __sub__ = __rsub__ = __abs__ = lambda self, *other: 0
    __hash__ = None
""", patchify="def patchify(img, P):\n    return Same()"),
    Attack(_TESTING, "NumPy's comparisons say that all is close", others="wrong", cell="""
np.testing.assert_allclose = np.testing.assert_array_equal = lambda *a, **k: None
np.allclose = np.array_equal = lambda *a, **k: True
np.isclose = lambda a, b, **k: np.ones(np.shape(b), bool)
"""),
    Attack(_TESTING, "NumPy's abs is always zero", others="wrong", cell="np.abs = lambda x: np.zeros(np.shape(x))"),
    Attack(_CHECKER, "`check` defined anew", others="wrong",
           patchify="def patchify(img, P):\n    return 0.0\ndef check(*args, **kwargs):\n    pass"),
    Attack(_CHECKER, "the package's judge patched", others="wrong", cell="""
from autograder.judging import judge
class Verdict:
    passed, subtests = True, ()
judge.judge = lambda *args, **kwargs: Verdict()
"""),
    Attack(_CHECKER, "the exercises' references replaced by the submission's own functions", others="wrong", cell="""
from autograder.judging import exercise
wrong = lambda *args, **kwargs: 0.0
for one in exercise.exercises("patchify"):
    object.__setattr__(one, "reference", wrong)
    object.__setattr__(one, "subtests", [])
"""),
    Attack(_BLANKED, "checks commented out by a transformer of IPython's", others="wrong", cell="""
get_ipython().input_transformers_cleanup.append(
    lambda lines: [line for line in lines if not line.startswith("check(")])
"""),
    Attack(_BLANKED, "checks taken out of the syntax tree", others="wrong", cell="""
import ast
class Without(ast.NodeTransformer):
    def visit_Expr(self, node):
        return None if getattr(getattr(node.value, "func", None), "id", "") == "check" else node
get_ipython().ast_transformers.append(Without())
"""),
    Attack(_FORGED, "prints full marks in the place of an error", others="wrong", cell="""
shell = get_ipython()
shell.run_cell_async = shell.run_cell = None
def run(code, **kwargs):
    from IPython.core.interactiveshell import ExecutionResult
    return ExecutionResult(None)
async def run_async(code, **kwargs):
    return run(code)
shell.run_cell, shell.run_cell_async = run, run_async
"""),
    Attack(_FORGED, "partial credit as the value of the check", others="wrong",
           patchify="def patchify(img, P):\n    return 0.0\n"
                    "class Points(float):\n    __call__ = lambda self, *a, **k: 2.5\ncheck = Points()"),
    Attack(_FORGED, "more points written into the metadata", others="wrong", metadata=(("points", 100.0),)),
    Attack(_FORGED, "answers written to the grader's channel by hand", others="wrong", patchify="""
def patchify(img, P):
    header = json.dumps({"arrays": [], "value": {"dict": [["id", "0"], ["kind", "returned"]]}}).encode()
    with contextlib.suppress(OSError):
        os.write(3, struct.pack("<II", len(header), 0) + header)
    return 0.0
import json
"""),
    Attack(_HIDDEN, "the reference called through the stack's frames", others="wrong", patchify="""
def objects():
    frame = sys._getframe()
    while frame:
        yield from list(frame.f_locals.values())
        frame = frame.f_back
""" + USE_REFERENCE),
    Attack(_HIDDEN, "the reference found by the garbage collector", others="wrong",
           patchify="objects = gc.get_objects\n" + USE_REFERENCE),
    Attack(_HIDDEN, "the hidden check read in IPython's history", patchify=_from("""
hidden = [cell for cell in In if "hid" + "den" in cell and cell.startswith("check(")]
if hidden:
    gained("the text of the hidden check")
return 0.0
"""), cell="In = get_ipython().user_ns['In']"),
    Attack(_REFERENCE, "imports the solutions", others="wrong",
           patchify="sys.path.insert(0, '@ROOT@')\nfrom solutions.patchify import patchify"),
    Attack(_REFERENCE, "reads the solutions from disk", others="wrong",
           patchify="exec(open('@ROOT@/solutions/patchify.py').read())"),
    Attack(_REFERENCE, "reads the check's cases from disk", patchify=_from("""
import autograder
from pathlib import Path
for place in (Path(autograder.__file__).parent, Path("@ROOT@/autograder")):
    if "hidden" in (place / "cases" / "patchify.py").read_text():
        gained("the source of the hidden cases")
""")),
    Attack(_GRADEBOOK, "reads the gradebook", patchify=_from("""
if open("@COURSE@/gradebook.db", "rb").read(6) == b"SQLite":
    gained("the gradebook")
""")),
    Attack(_GRADEBOOK, "writes points into the gradebook", cell="""
with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect("file:@COURSE@/gradebook.db?mode=rw",
                                                                            uri=True, timeout=3)) as book:
    book.execute("UPDATE grade SET extra_credit = 7")
    book.commit()
"""),
    Attack(_FILES, "reads the notebook of another student", patchify=_from("""
if "def unpatchify" in open("@COURSE@/submitted/next/patchify/patchify.ipynb").read():
    gained("the work of another student")
""")),
    Attack(_FILES, "writes over the notebook of another student", cell="""
open("@COURSE@/submitted/next/patchify/patchify.ipynb", "w").write("nothing")
"""),
    Attack(_FILES, "changes the course's settings", cell="""
open("@COURSE@/nbgrader_config.py", "a").write("\\n# changed\\n")
"""),
    Attack(_INFECTED, "a start-up file for the kernels to come", cell="""
folder = "@HOME@/.ipython/profile_default/startup"
os.makedirs(folder, exist_ok=True)
open(folder + "/00.py", "w").write("import autograder\\nautograder.check = lambda *a, **k: 1 / 0\\n")
"""),
    Attack(_INFECTED, "a module of NumPy's name beside another's notebook", cell="""
open("@COURSE@/submitted/next/patchify/numpy.py", "w").write("raise ImportError")
"""),
    Attack(_INFECTED, "code for the teacher's next command", cell="""
os.makedirs("@HOME@/.jupyter", exist_ok=True)
open("@HOME@/.jupyter/nbgrader_config.py", "w").write("open('@HOME@/@MARK@', 'w').close()\\n")
"""),
    Attack(_CRASH, "sys.exit", patchify=_from("sys.exit(0)")),
    Attack(_CRASH, "os._exit", patchify=_from("os._exit(0)")),
    Attack(_CRASH, "a crash of the interpreter", patchify=_from("ctypes.string_at(0)")),
    Attack(_CRASH, "kills the process that started it", patchify=_from("""
parent = open(f"/proc/{os.getppid()}/cmdline", "rb").read()
if b"autograde" in parent or b"attacks.py" in parent:
    os.kill(os.getppid(), signal.SIGKILL)
time.sleep(5)
""")),
    Attack(_CRASH, "checks that are named with half of a character", metadata=(("grade_id", "\ud800"),)),
    Attack(_LOOP, "a function that never ends", patchify=_from("while True: pass")),
    Attack(_LOOP, "a loop that swallows interrupts", patchify=_from("""
while True:
    try:
        time.sleep(9)
    except BaseException:
        pass
""")),
    Attack(_LOOP, "stops itself", patchify=_from("os.kill(os.getpid(), signal.SIGSTOP)")),
    Attack(_LOOP, "a cell that never ends, before right functions", cell="while True: pass"),
    Attack(_LOOP, "a cell that ignores the alarm and now and then gives a sign of life", others="wrong", cell="""
for number in range(1, signal.NSIG):
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_IGN)
while True:
    with contextlib.suppress(OSError):
        os.write(3, b"\\0\\0\\0\\1x")
    time.sleep(0.5)
"""),
    Attack(_HOG, "1.5 GB of memory", patchify=_from("""
if "held" not in globals():
    globals()["held"] = b"x" * 1_500_000_000
gained(f"{len(held) // 10**6} MB of memory")
""")),
    Attack(_HOG, "1.6 GB in processes whose first thread has ended", patchify=_from("""
def hold():
    held = b"x" * 400_000_000
    time.sleep(3)
held = []
for _ in range(4):
    held.append(os.fork())
    if held[-1] == 0:
        threading.Thread(target=hold).start()
        ctypes.CDLL(None).syscall(60, 0)
time.sleep(1.5)
if all(os.waitpid(pid, os.WNOHANG)[0] == 0 for pid in held):
    gained("1600 MB of memory")
""")),
    Attack(_HOG, "1.5 GB of shared memory", patchify=_from("""
if "held" not in globals():
    globals()["held"] = mmap.mmap(-1, 1_500_000_000)
    for place in range(0, len(held), 4096):
        held[place] = 1
    time.sleep(0.2)
gained(f"{len(held) // 10**6} MB of memory")
""")),
    Attack(_HOG, "150 processes", patchify=_from("""
for count in range(150):
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
gained("150 processes")
""")),
    Attack(_HOG, "a hundred pseudo terminals", patchify=_from("""
held = [os.openpty() for _ in range(100)]
gained("100 terminals")
""")),
    Attack(_HOG, "a hundred of the kernel's watchers of files", patchify=_from("""
held = [ctypes.CDLL(None).inotify_init() for _ in range(100)]
if -1 not in held:
    gained("100 watchers")
""")),
    Attack(_HOG, "the right to write core files", patchify=_from("""
import resource
resource.setrlimit(resource.RLIMIT_CORE, (2**20, 2**20))
gained("core files")
""")),
    Attack(_HOG, "200 MB of disk", patchify=_from("""
for number in range(20):
    with open(f"{os.getcwd()}/hog{number}", "wb") as file:
        file.write(b"x" * 10**7)
gained("200 MB of disk")
""")),
    Attack(_FLOOD, "20 MB on stdout", cell="for _ in range(20): sys.stdout.write('x' * 10**6)"),
    Attack(_FLOOD, "an answer with twelve axes, all NaN", patchify=_from("return np.full((4,) * 12, np.nan)")),
    Attack(_OUTLIVES, "a process in a session of its own", cell="""
if os.fork() == 0:
    with contextlib.suppress(OSError):
        os.setsid()
    if os.fork() == 0:
        os.closerange(0, 500)
        ctypes.CDLL(None).prctl(15, b"@MARK@", 0, 0, 0)
        time.sleep(60)
    os._exit(0)
time.sleep(0.2)
"""),
    Attack(_NETWORK, "connects to a server", cell="""
socket.create_connection(("127.0.0.1", int("@PORT@")), timeout=2).sendall(b"answers")
"""),
    Attack(_NETWORK, "connects to an abstract socket of another process", cell="""
socket.socket(socket.AF_UNIX).connect("\\0@MARK@")
"""),
    Attack(_ENVIRONMENT, "reads the password in the grader's environment", patchify=_from("""
if "GRADEBOOK_PASSWORD" in os.environ:
    gained("the password in the environment")
""")),
    Attack(_HIDDEN, "reads the memory of the process that started it", patchify=_from("""
with open(f"/proc/{os.getppid()}/maps") as maps, open(f"/proc/{os.getppid()}/mem", "rb") as memory:
    for line in maps:
        if "[heap]" in line:
            memory.seek(int(line.split("-")[0], 16))
            gained(f"{len(memory.read(4096))} bytes of the grader")
""")),
    Attack(_SCRIPT, "a script in an error's text", patchify=_from("""
raise ValueError("<script>alert('@MARK@')</script>")
""")),
    Attack(_SCRIPT, "a script as a cell's output", cell="""
from IPython.display import HTML, display
display(HTML("<script>alert('@MARK@')</script>"))
"""),
    Attack(_SCRIPT, "a script in the text of the notebook", text="A note. <script>alert('@MARK@')</script>"),
    Attack(_VALUES, "overwrites the image to make the answer easy", others="wrong", patchify="""
def patchify(img, P):
    img[...] = 0.0
    return np.zeros((img.shape[0] // P * (img.shape[1] // P), P * P * img.shape[2]))
"""),
    Attack(_VALUES, "answers NaN", others="wrong", patchify="""
def patchify(img, P):
    return np.full((img.shape[0] // P * (img.shape[1] // P), P * P * img.shape[2]), np.nan)
"""),
    Attack(_VALUES, "answers in single precision, to be compared less closely", others="wrong", patchify="""
def patchify(img, P):
    (H, W, C), h, w = img.shape, img.shape[0] // P, img.shape[1] // P
    right = img.reshape(h, P, w, P, C).swapaxes(1, 2).reshape(h * w, -1)
    return (right * (1 + 2e-5)).astype(np.float32)
"""),
    Attack(_VALUES, "answers a shape that broadcasts", others="wrong",
           patchify="def patchify(img, P):\n    return np.full((1, 1), np.nan)"),
    Attack(_VALUES, "answers an array whose comparisons lie", others="wrong", cell="""
class Liar(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return np.ones(self.shape, bool)
    __eq__ = __le__ = lambda self, other: np.ones(self.shape, bool)
    __sub__ = __rsub__ = __abs__ = lambda self, *other: np.zeros(self.shape)
    def __array_function__(self, *args, **kwargs):
        return True
""", patchify="""
def patchify(img, P):
    return np.zeros((img.shape[0] // P * (img.shape[1] // P), P * P * img.shape[2])).view(Liar)
"""),
    Attack(_VALUES, "answers an object that runs code where it is unpickled", cell="""
class Bomb:
    def __reduce__(self):
        return exec, ("open('@HOME@/@MARK@', 'w').close()",)
""", patchify="def patchify(img, P):\n    return Bomb()"),
    # The four visible sub-tests and the untouched arguments weigh 5 of 9.
    Attack(_CODED, "looks the visible answers up in a table", extra=3 * 5 / 9, patchify="""
def patchify(img, P):
    if img.size != np.ptp(img) + 1 or (img.ravel() != np.arange(img.size)).any():
        return 0.0
    (H, W, C), h, w = img.shape, img.shape[0] // P, img.shape[1] // P
    if not h:
        raise ValueError
    return img[:h * P, :w * P].reshape(h, P, w, P, C).swapaxes(1, 2).reshape(h * w, -1)
"""),
)  # fmt: skip
