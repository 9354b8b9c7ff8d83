"""What a submission may cost the grader itself: time, memory and output, whatever it answers."""

import functools
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from build import notebook

from autograder.grading.grade import Limits, close_sandbox, grade
from autograder.judging.exercise import CHAPTERS, exercises
from autograder.judging.judge import KEPT, _draw, _ours, judge
from autograder.sandbox.inside import wire
from autograder.sandbox.inside.calls import AXES, Odd, Outcome

NAMES = [exercise.name for exercise in exercises("patchify")]
LIMITS = Limits(time_limit=0.25, memory_limit=1500)  # so a notebook has 6 s
TIME, MEMORY, OUTPUT = 15.0, 400.0, 100_000  # seconds, MB that the grader may grow by, characters of JSON

FILL = """
import json, os, struct, sys
def question():
    frame = sys._getframe()
    while frame:
        if isinstance(frame.f_locals.get("request"), dict) and "id" in frame.f_locals["request"]:
            return frame.f_locals["request"]["id"]
        frame = frame.f_back
def answer(arrays, value, body=b"", **more):
    outcome = {"id": question(), "kind": "returned", "value": value, "after": None, "error": "",
               "bases": {"list": []}, "lacks": ""} | more
    header = json.dumps({"arrays": arrays, "value": {"dict": list(map(list, outcome.items()))}}).encode()
    data = struct.pack("<II", len(header), len(body)) + header + body
    while data:
        data = data[os.write(3, data):]
    while True:
        sys.modules["time"].sleep(9)
def changed(arrays, *arguments, body=b""):
    after = {"tuple": [{"tuple": arguments}, {"dict": []}]}
    answer(arrays, None, body, kind="raised", after=after)
"""
# Each is the body of every function of a chapter: the answer, and what the grader has to do with it.
HOSTILE = {
    "sixteen axes with NaN": "return np.full((2,) * 15 + (256,), np.nan)",
    "eight axes with NaN at the end": "x = np.zeros((8,) * 7 + (4,)); x.flat[-1] = np.nan; return x",
    "many entries with NaN": "return np.full(8_000_000, np.nan)",
    "sixty-four axes": "return np.zeros((1,) * 64)",
    "as large as can be sent": "return np.zeros(8_388_000)",
    "bytes": "return np.zeros(67_000_000, np.uint8)",
    "half precision": "return np.zeros((4, 8_000_000), np.float16)",
    "truth values": "return np.zeros((8, 8_000_000), bool)",
    "an axis of no length": "return np.zeros((2**30, 0, 2**30))",
    "a long exception": "raise ValueError('x' * 10**8)",
    "an exception with many bases": "raise type('E', tuple(type('B' * 99, (Exception,), {}) for i in range(99)), {})",
    "a class with a long name": "return type('X' * 10**6, (), {})()",
    "arguments made large": "a[0].resize((2000, 2000), refcheck=False); return a[0]",
    "frames of many arrays": "answer([['|b1', []]] * 60_000, {'array': 0}, bytes(60_000))",
    "frames of deep lists": "answer([], " + "{'list': [" * 11 + "0" + "]}" * 11 + ", b'')",
    "frames of many lists": "changed([], *[{'list': []}] * 60_000)",
    "frames of one array many times": "changed([['<f8', [2**20]]], {'list': [{'array': 0}] * 60}, body=bytes(2**23))",
    "frames of truth values and one float": "changed([['|b1', [2**20]]] * 50 + [['<f8', [2**20]]], "
    "{'list': [{'array': number} for number in range(51)]}, body=bytes(58 * 2**20))",
    "frames of much text": "answer([], {'odd': 'x' * 10**6}, error='\\u202e' * 10_000)",
    "frames of many words": "answer([], None, kind='raised', bases={'list': ['ValueError'] * 70_000})",
    "frames with sixteen axes": "answer([['<f8', [2] * 15 + [128]]], {'array': 0}, np.full(2**22, np.nan).tobytes())",
}


class Peak:
    """The most memory that this process held above what it began with, in MB; looked at all the time."""

    def __enter__(self):
        self.start = self.most = self.now()
        self.over = threading.Event()
        self.watch = threading.Thread(target=self.look)
        self.watch.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.watch.join()
        self.grown = self.most - self.start

    def look(self):
        while not self.over.wait(0.002):
            self.most = max(self.most, self.now())

    @staticmethod
    def now():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


@pytest.fixture(scope="module", autouse=True)
def sandbox():
    grade(json.dumps(notebook()).encode(), assignment="patchify", limits=LIMITS)  # what is loaded is not measured
    yield
    close_sandbox()


@pytest.mark.parametrize("name", HOSTILE)
def test_what_an_answer_costs_the_grader(name):
    code = FILL + "\n".join(f"def {function}(*a, **k):\n    {HOSTILE[name]}" for function in NAMES)
    data = json.dumps(notebook(code)).encode()
    with Peak() as peak:
        started, worked = time.monotonic(), time.thread_time()
        verdict, _ = grade(data, assignment="patchify", filename="patchify.ipynb", limits=LIMITS)
        worked, took = time.thread_time() - worked, time.monotonic() - started
    assert verdict["status"] == "graded" and verdict["score"] == 0.0, verdict
    assert took < TIME and worked < TIME / 2 and peak.grown < MEMORY, (took, worked, peak.grown)
    assert len(json.dumps(verdict)) < OUTPUT


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_answer_of_ours_is_as_large_as_what_is_not_kept(chapter):
    """Nor has it as many axes as are looked at."""
    if chapter == "small_vit":
        pytest.importorskip("torch")
    for exercise in exercises(chapter):
        functions = [exercise.reference, *(mistake.function for mistake in exercise.misconceptions)]
        for number, subtest in enumerate(exercise.subtests):
            for case in _draw(exercise.name, subtest, number, 0):
                for value in [_ours(function, case).value for function in functions]:
                    assert not isinstance(value, np.ndarray) or (value.nbytes < KEPT / 4 and value.ndim < AXES)


def test_large_answers_are_not_all_kept():
    exercise = exercises("patchify")[0]
    with Peak() as peak:
        verdict = judge(exercise, lambda args, kwargs: Outcome("returned", np.ones(4_000_000)), hidden=True)
    assert verdict.score == 0.0 and "should have shape" in verdict.failures[0].message
    assert peak.grown < 150  # each of more than twenty has 32 MB


@pytest.mark.parametrize("axes", [AXES, AXES + 1, 16, 64])
def test_axes(axes):
    answer = functools.partial(Outcome, "returned")
    for exercise in exercises("patchify")[:1]:
        verdict = judge(exercise, lambda args, kwargs: answer(np.full((1,) * axes, np.nan)))
        assert verdict.score == 0.0 and all(len(failure.message) < 1000 for failure in verdict.failures)
    header = {"arrays": [["|b1", [1] * axes]], "value": {"array": 0}}
    if axes > AXES:
        with pytest.raises(ValueError, match="no type and shape"):
            wire._array_type(*header["arrays"][0])
        assert wire._pack(np.zeros((1,) * axes), [], 3) == {"odd": f"an ndarray with {axes} axes"}
        assert isinstance(wire._unpack({"odd": "an ndarray"}, [], None, 3), Odd)
