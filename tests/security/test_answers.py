"""Submissions that lie: forged, malformed and oversized answers, hostile objects, patched modules, peeping."""

import json
import os
import struct

import numpy as np
import pytest

WRITE = """
import os, struct, json, time
def frame(header, body=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<II", len(header), len(body)) + header + body
"""


def raw(data):
    """A submission that writes bytes of its own to the grader's socket and then goes to sleep."""
    return f"{WRITE}\ndef attack(x):\n    os.write(3, {data})\n    time.sleep(30)"


@pytest.mark.parametrize(
    "data",
    [
        "b'x' * 100",
        "bytes(100)",
        "struct.pack('<II', 2**32 - 1, 0)",
        "struct.pack('<II', 100, 2**32 - 1)",
        "frame(b'not json')",
        "frame(b'\\xff\\xfe')",
        "frame(b'[' * 100000)",
        "frame(b'9' * 100000)",
        "frame([])",
        "frame({})",
        "frame(7)",
        "frame({'arrays': 5, 'value': 1})",
        "frame({'arrays': [['<f8', [2]]], 'value': {'array': 0}})",  # 16 bytes that do not follow
        "frame({'arrays': [['<f8', [-1]]], 'value': {'array': 0}}, b'')",
        "frame({'arrays': [['<f8', [2**31, 2**31, 2**31]]], 'value': {'array': 0}})",
        "frame({'arrays': [['<f8', [0, 10**30]]], 'value': {'array': 0}})",
        "frame({'arrays': [['<f8', [1.5]]], 'value': {'array': 0}}, bytes(12))",
        "frame({'arrays': [['<f8', [True]]], 'value': {'array': 0}}, bytes(8))",
        "frame({'arrays': [['<f8', [1] * 40]], 'value': {'array': 0}}, bytes(8))",
        "frame({'arrays': [['|O', [1]]], 'value': {'array': 0}}, bytes(8))",
        "frame({'arrays': [['<c16', [1]]], 'value': {'array': 0}}, bytes(16))",
        "frame({'arrays': [[['<f8'], [1]]], 'value': {'array': 0}}, bytes(8))",
        "frame({'arrays': [], 'value': {'array': 0}})",
        "frame({'arrays': [], 'value': {'array': -1}})",
        "frame({'arrays': [], 'value': {'pickle': 'x'}})",
        "frame({'arrays': [], 'value': {'dict': [['id', {'list': []}]]}})",
        "frame({'arrays': [['<f8', [2]]], 'value': {'dict': [['id', {'array': 0}]]}}, bytes(16))",
        "frame({'arrays': [], 'value': " + repr({"list": [{"list": [{"list": []}]}]}) + "})",
        "frame(b'{\"arrays\": [], \"value\": ' + b'{\"list\": [' * 50 + b']}' * 50 + b'}')",
    ],
)
def test_malformed_answer(attack, data):
    outcome = attack(raw(data), 1.0)
    assert outcome.kind == "crashed" and "no answer" in outcome.error, outcome


def test_every_part_of_an_outcome_is_checked(attack):
    """A frame that is right in form and carries the question's number, which the frames of the stack give away."""
    source = (
        WRITE
        + """
import sys
def number():
    f = sys._getframe()
    while f:
        if isinstance(f.f_locals.get("request"), dict) and "id" in f.f_locals["request"]:
            return f.f_locals["request"]["id"]
        f = f.f_back
def attack(parts):
    outcome = {"id": number(), "kind": "returned", "value": {"array": 0}, "after": None, "error": "",
               "bases": {"list": []}, "lacks": ""}
    outcome.update(json.loads(parts))
    value = {"dict": [[key, outcome[key]] for key in outcome if outcome[key] != "absent"]}
    os.write(3, frame({"arrays": [["<f8", []]], "value": value}, struct.pack("<d", 7)))
    time.sleep(30)
"""
    )
    honest = attack(source, "{}")
    assert honest.kind == "returned" and honest.value == 7.0, honest  # a value, as if it had been returned
    wrong = [
        {"kind": "passed"},
        {"kind": {"array": 0}},
        {"kind": "timed out"},
        {"kind": None},
        {"value": None},
        {"value": 3},
        {"value": {"list": []}},
        {"value": "absent"},
        {"after": 5},
        {"after": {"tuple": [1, 2]}},
        {"error": None},
        {"error": {"array": 0}},
        {"bases": {"list": [1]}},
        {"bases": "x"},
        {"lacks": None},
        {"lacks": {"array": 0}},
        {"id": "0000000000000000"},
        {"id": {"array": 0}},
    ]
    for parts in wrong:
        outcome = attack(source, json.dumps(parts))
        assert outcome.kind == "crashed" and "no answer" in outcome.error, (parts, outcome)


def test_answers_sent_ahead(attack):
    """An answer before its question lacks the question's number."""
    ahead = {"arrays": [], "value": {"dict": [["id", "0"], ["kind", "returned"]]}}
    outcome = attack(f"{WRITE}\ndef attack(x):\n    os.write(3, frame({ahead}) * 3)\n    return x", 1.0)
    assert outcome.kind == "crashed", outcome


@pytest.mark.parametrize(
    "forged",
    [
        "b'x' * 100",
        "frame({'arrays': [], 'value': 5})",
        "frame({'arrays': [], 'value': True})",
        "frame({'arrays': [], 'value': {'list': []}})",
        "frame({'arrays': [['<f8', [2]]], 'value': {'array': 0}}, bytes(16))",
        "frame({'arrays': [], 'value': 1}) + frame({'arrays': [], 'value': 2}) + frame({'arrays': [], 'value': 7})",
        "frame({'arrays': [], 'value': 1}) + frame({'arrays': [], 'value': 2}) + frame({'arrays': [], 'value':"
        " {'dict': [['statuses', {'dict': [['f', 5]]}], ['errors', 7]]}})",
    ],
)
def test_frames_among_the_cells(box, forged):
    """What is said of the cells is believed as little as the answers; the functions are judged all the same."""
    with box.session(["x = 1", f"{WRITE}\nos.write(3, {forged})", "def f():\n    return 1.0"], ["f"]) as session:
        outcomes = [session.call("f", (), {}) for _ in range(2)]
    assert [outcome.kind for outcome in outcomes] in (["returned", "returned"], ["not found", "not found"]), outcomes


def test_trickling_answer(attack, hasty):
    outcome = attack(
        f"{WRITE}\ndef attack():\n    os.write(3, struct.pack('<II', 1000, 0))\n    while True:\n"
        "        os.write(3, b' ')\n        time.sleep(0.01)",
        box=hasty,
    )
    assert outcome.kind == "timed out", outcome


def test_value_too_large(attack):
    outcome = attack("import numpy as np\ndef attack():\n    return np.zeros(10**7)")
    assert outcome.kind == "returned" and "more than can be sent" in outcome.value.what, outcome


def test_array_that_is_larger_than_its_memory(attack):
    outcome = attack("import numpy as np\ndef attack():\n    return np.broadcast_to(1.0, (10**5, 10**5))")
    assert outcome.kind in ("raised", "crashed"), outcome


@pytest.mark.parametrize(
    "code",
    [
        "class Liar(np.ndarray):\n"
        "    __array_priority__ = 1e9\n"
        "    def __eq__(self, other): return True\n"
        "    def __array_finalize__(self, obj): pass\n"
        "    @property\n"
        "    def shape(self): return (3, 3)\n"
        "def attack(): return np.zeros(2).view(Liar)",
        "class Liar:\n"
        "    def __eq__(self, other): return True\n"
        "    def __array__(self, *args, **kwargs): return np.zeros(2)\n"
        "def attack(): return Liar()",
        "class Liar(float):\n    def __eq__(self, other): return True\ndef attack(): return [Liar(), Liar()]",
        "def attack(): return np.ma.masked_array(np.zeros(2), mask=True)",
        "def attack(): return np.matrix([0.0, 0.0]).A1.view(np.matrix).A1",
    ],
)
def test_lying_objects_arrive_as_plain_arrays(attack, code):
    outcome = attack(f"import numpy as np\n{code}")
    assert outcome.kind == "returned", outcome
    assert type(outcome.value) is np.ndarray and outcome.value.dtype == float and outcome.value.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "value",
    [
        "type('X', (), {'__array__': lambda s, *a, **k: exit(3)})()",
        "type('X', (), {'__getattr__': lambda s, n: 1 / 0})()",
        "type('X', (), {'detach': lambda s: s, 'cpu': lambda s: 5, 'dtype': 5})()",
        "np.array([{}], dtype=object)",
        "np.array(['x'])",
        "np.zeros(1, dtype='M8[s]')",
        "np.zeros(1, dtype=[('a', float)])",
        "1 + 2j",
        "10 ** 400",
        "lambda: 1",
        "(x for x in range(3))",
        "[[1], [2, 3]]",
    ],
)
def test_values_that_are_no_numbers(attack, value):
    outcome = attack(f"import numpy as np\ndef attack(): return {value}")
    assert outcome.kind == "raised" or not isinstance(outcome.value, np.ndarray), outcome


def test_third_truth_value(attack):
    outcome = attack("import numpy as np\ndef attack(): return np.array([0, 1, 2, 255], np.uint8).view(bool)")
    assert outcome.value.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_text_is_safe_to_print(attack):
    outcome = attack(r"def attack(): raise ValueError('\x1b[2J\x00\ud800\u202e<script>' + 'x' * 10**6)")
    assert outcome.kind == "raised" and len(outcome.error) < 2000
    assert not set(outcome.error) & set("\x1b\x00\ud800\u202e")
    outcome.error.encode()


@pytest.mark.parametrize(
    "patch",
    [
        "import numpy as np\nnp.testing.assert_allclose = np.allclose = np.array_equal = lambda *a, **k: True",
        "import autograder\nautograder.check = autograder.evaluate = lambda *a, **k: True",
        "import unittest, builtins\nbuiltins.isinstance = lambda *a: True",
        "import numpy as np\nnp.asarray = np.array = lambda *a, **k: 'full marks'",
        "import json\njson.dumps = lambda *a, **k: '{\"score\": 1}'",
        "import json\njson.loads = lambda *a, **k: {'score': 1}",
        "import struct\nstruct.Struct.pack = 1",
        "import socket\nsocket.socket.send = lambda self, data: len(data)",
        "from autograder import wire\nwire._pack = lambda *a: {'passed': 1}",
        "from autograder import calls, inside\ninside.run = calls.run = lambda *a: 'passed'",
        "import time\ntime.monotonic = lambda: -1e9",
        "import sys\nsys.modules.clear()",
        "import gc\nfor o in gc.get_objects():\n    if type(o) is dict and '__name__' not in o:\n"
        "        try: o.clear()\n        except Exception: pass",
    ],
)
def test_patched_modules_hurt_only_their_author(attack, hasty, patch):
    """None of them turns the wrong answer into another one; after that, the honest submission is judged rightly."""
    outcome = attack(f"{patch}\ndef attack(): return 1.0", box=hasty)
    assert outcome.kind in ("returned", "raised", "crashed", "timed out", "not found"), outcome
    assert not isinstance(outcome.value, np.ndarray) or outcome.value == 1.0


def test_nothing_secret_in_memory(attack, box):
    """Neither what the grader holds nor the submission before is in the memory of this one."""
    expected = f"token{os.urandom(8).hex()}"  # stays in the grader, as expected values do
    before = f"token{os.urandom(8).hex()}"
    with box.session([f"answer = {before!r}\ndef attack():\n    return 1.0"], ["attack"]) as session:
        assert session.call("attack", (), {}).value == 1.0
    own = f"token{os.urandom(8).hex()}"
    outcome = attack(
        f"""
import ctypes, re
def attack():
    found = set()
    for line in open("/proc/self/maps").readlines():
        first, last, rights = re.match(r"(\\w+)-(\\w+) (\\S+)", line).groups()
        if rights.startswith("rw"):
            memory = ctypes.string_at(int(first, 16), int(last, 16) - int(first, 16))
            found |= set(re.findall(rb"token[0-9a-f]{{16}}", memory))
    raise RuntimeError(found)
own = {own!r}
"""
    )
    assert own in outcome.error, outcome  # the search finds what is there
    assert before not in outcome.error and expected not in outcome.error, outcome


def test_frames_and_collector_hold_no_answers(attack):
    """Walking up the stack leads to the arguments of this call and to nothing that the grader compares with."""
    outcome = attack(
        """
import gc, sys
import numpy as np
def attack(x):
    arrays, frame = [], sys._getframe(1)
    while frame:
        arrays += [value for value in frame.f_locals.values() if isinstance(value, np.ndarray)]
        frame = frame.f_back
    arrays += [item for item in gc.get_objects() if isinstance(item, np.ndarray)]
    others = [a for a in arrays if a.shape != x.shape or not (a == x).all()]
    names = {name for item in gc.get_objects() if type(item) is dict for name in item if isinstance(name, str)}
    return [len(others), len(names & {"expected", "reference", "misconceptions", "Verdict"})]
""",
        np.array([3.0, 1.0, 4.0]),
    )
    assert outcome.kind == "returned" and outcome.value.tolist() == [0, 0], outcome


def test_mutated_inputs_are_seen(attack):
    outcome = attack("def attack(x):\n    x[0] = 9.0\n    return x", np.zeros(2))
    assert outcome.after[0][0].tolist() == [9.0, 0.0]


def test_cells_cannot_hide_a_definition_in_a_callable(attack):
    """A callable whose attributes lie about it is called like any other."""
    outcome = attack(
        "class F:\n    def __getattr__(self, n): raise SystemExit\n    def __call__(self): return 5.0\nattack = F()"
    )
    assert outcome.kind in ("returned", "crashed"), outcome


assert struct.calcsize("<II") == 8  # the frame's two sizes, which the attacks above write by hand
