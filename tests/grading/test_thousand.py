"""A thousand submissions in one run, some hostile, some broken: each in a named status, graded as if it were alone."""

import json
from collections import Counter

import pytest
from build import STUDENTS, colab, notebook, submit

from autograder.grading.grade import Limits, close_sandbox, grade

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

RIGHT = STUDENTS["ada"]
HOSTILE = {
    "endless": "def unpatchify(patches, H, W, P):\n    while True:\n        pass",
    "exits": "import os\n\ndef unpatchify(patches, H, W, P):\n    os._exit(0)",
    "hog": "def unpatchify(patches, H, W, P):\n    x = []\n    while True:\n        x.append(bytearray(10**7))",
    "forks": "import os\n\ndef unpatchify(patches, H, W, P):\n    while True:\n        os.fork()",
    "flood": "def unpatchify(patches, H, W, P):\n    while True:\n        print('x' * 10**6)",
    "files": "def unpatchify(patches, H, W, P):\n"
    "    for n in range(9999):\n        open(f'{n}', 'wb').write(b'0' * 10**7)",
}


def kinds():
    """Everything that is handed in, by name."""
    made = {student: notebook(code) for student, code in STUDENTS.items() if student not in ("chen", "zoë")}
    made["stub"] = notebook()
    made["colab"] = colab(notebook(RIGHT))
    made["empty"] = b""
    made["torn"] = json.dumps(notebook(RIGHT)).encode()[:4000]
    made["other"] = b'{"cells": []}'
    return made


def hostile():
    start, end = RIGHT.index("def unpatchify"), RIGHT.index("def conv_weight_to_linear")
    return {name: notebook(RIGHT[:start] + code + "\n\n\n" + RIGHT[end:]) for name, code in HOSTILE.items()}


def test_a_thousand(course):
    plain, bad = kinds(), hostile()
    contents = {f"{name}-{n:03}": plain[name] for n in range(70) for name in plain}
    contents |= {f"{name}-{n:03}": bad[name] for n in range(15) for name in bad}
    assert len(contents) >= 1000
    for student, content in contents.items():
        submit(course.folder, student, content)
    done = course.command("grade", "--time-limit", "2")
    assert f"{len(contents)} submissions" in done.stdout.splitlines()[-1]

    limits = Limits(time_limit=2.0)
    alone = {}
    for name, content in (plain | bad).items():
        data = json.dumps(content, ensure_ascii=False, indent=1).encode() if isinstance(content, dict) else content
        alone[name] = grade(data, assignment="patchify", filename="patchify.ipynb", limits=limits)[0]
    close_sandbox()
    assert {alone[name]["score"] for name in bad} == {10.0}  # the attack costs its author that function
    statuses = Counter()
    for student in contents:
        verdict, expected = course.verdict(student), alone[student.rpartition("-")[0]]
        statuses[verdict["status"]] += 1
        assert (verdict["status"], verdict["score"]) == (expected["status"], expected["score"]), student
        if student.rpartition("-")[0] in plain:  # a hog may run into its memory or its time, as the machine has it
            got, wanted = ([row["status"] for row in one["exercises"]] for one in (verdict, expected))
            assert got == wanted, student
    assert set(statuses) == {"graded", "not readable"}
    with course.gradebook() as book:
        assert len(book.find_assignment("patchify").submissions) == len(contents)
