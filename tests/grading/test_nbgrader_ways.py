"""nbgrader's own ways in and out: the exchange folder, downloads of an LMS, formgrader. Its real commands, each."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile

import pytest
from build import STUDENTS, hand_in, notebook, submit

from autograder.notebooks.generate import ROOT


def configured(course, *lines):
    """A course whose configuration has these lines more."""
    with open(course.folder / "nbgrader_config.py", "a", encoding="utf-8") as config:
        config.writelines(f"{line}\n" for line in lines)
    return course


def test_released_fetched_submitted_collected_graded_and_given_back(course, tmp_path):
    exchange = tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    configured(course, f"c.Exchange.root = {str(exchange)!r}")
    course.command("release_assignment", "patchify", module="nbgrader")

    ada = configured(type(course)(tmp_path / "ada"), f"c.Exchange.root = {str(exchange)!r}",
                     'c.CourseDirectory.student_id = "ada"')  # fmt: skip
    ada.command("fetch_assignment", "patchify", module="nbgrader")
    fetched = ada.folder / "patchify" / "patchify.ipynb"
    assert fetched.read_bytes() == (ROOT / "exercises" / "patchify" / "patchify.ipynb").read_bytes()
    fetched.write_text(json.dumps(notebook(STUDENTS["ada"])), encoding="utf-8")
    ada.command("submit", "patchify", module="nbgrader")

    course.command("collect", "patchify", module="nbgrader")
    course.run("grade")
    assert course.verdict("ada")["score"] == 12
    course.command("release_feedback", "patchify", module="nbgrader")
    ada.command("fetch_feedback", "patchify", module="nbgrader")
    (page,) = (ada.folder / "patchify" / "feedback").rglob("patchify.html")
    assert page.read_text("utf-8") == course.page("ada")


@pytest.fixture(scope="module")
def collected(module_course):
    """The student and the notebook that nbgrader, with our configuration, reads from a file's name."""
    from nbgrader.plugins.zipcollect import FileNameCollectorPlugin

    from autograder.grading.classroom import Classroom

    with contextlib.chdir(module_course.folder):
        plugin = FileNameCollectorPlugin(config=Classroom.here().config)

    def collected(name, folder="/courses/ws_2026_27_1/downloaded/patchify/extracted/submissions"):
        return plugin.collect(f"{folder}/{name}")

    return collected


NAMES = [
    "Ada Lovelace",
    "Zoë Müller-Lüdenscheidt",
    "Se\u0301an O'Brien",
    "Ada King_Lovelace",
    "van_der_waals",
    "李 小龍",
]
NAMES += ["John Smith 3rd", "Ada L. (A)", "Group 7-Ada Lovelace", "Participant"]
MOODLE = ["_41_assignsubmission_file/", "_41_assignsubmission_file_/", "_41_assignsubmission_file_"]
FILES = ["patchify.ipynb", "patchify-1.ipynb", "patchify (2).ipynb", "patchify(1).ipynb"]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("middle", MOODLE)
@pytest.mark.parametrize("name", NAMES)
def test_moodles_names_tell_student_and_notebook(name, middle, file, collected):
    """Of today's, where the folder ends in `file`, and of those before it."""
    assert collected(f"{name}{middle}{file}") == {"student_id": "41", "file_id": "patchify"}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("late", ["", "_LATE"])
@pytest.mark.parametrize("name", ["lovelaceada", "müllerlüdenscheidtzoë", "van_der_waals", "smith3rdjohn", "x"])
def test_canvas_names_tell_student_and_notebook(name, late, file, collected):
    assert collected(f"{name}{late}_41_9001_{file}") == {"student_id": "41", "file_id": "patchify"}


@pytest.mark.parametrize("start", ["ada_41_9001_", "Ada_41_assignsubmission_file/", "Ada_41_assignsubmission_file_"])
@pytest.mark.parametrize(
    "file_id", ["my solution", "Übung", "patchify_final_2_3", "v1.2 patchify", "Ada's", "pat-chify"]
)
def test_the_name_of_the_notebook_does_not_matter(start, file_id, collected):
    assert collected(f"{start}{file_id}.ipynb") == {"student_id": "41", "file_id": file_id}


@pytest.mark.parametrize("folder", ["", "/submissions", "/submissions (1)", "/ViT-Patchify-77", "/ws_2026_27"])
def test_zips_and_courses_have_any_name(folder, collected):
    for course in ("/courses/patchify", "/home/x_1_2_y/vit", "/home/extracted_1_2_3/vit"):
        for name in ("Ada_41_assignsubmission_file/patchify.ipynb", "ada_41_9001_patchify.ipynb"):
            found = collected(name, f"{course}/downloaded/patchify/extracted{folder}")
            assert found == {"student_id": "41", "file_id": "patchify"}


@pytest.mark.parametrize(
    "name",
    [
        # chosen for a file
        "eve_41_9001_99_9002_patchify.ipynb",
        "eve_LATE_41_9001_99_9002_patchify.ipynb",
        "eve_41_9001_x_99_assignsubmission_file_patchify.ipynb",
        "eve_41_9001_assignsubmission_file_patchify.ipynb",
        "Eve_41_assignsubmission_file_99_assignsubmission_file_patchify.ipynb",
        "Eve_41_assignsubmission_file_x_99_assignsubmission_file_patchify.ipynb",
        "Eve_41_assignsubmission_file/Mal_99_assignsubmission_file_patchify.ipynb",
        "Eve_41_assignsubmission_file\n_99_assignsubmission_file_patchify.ipynb",
        "Eve_41_assignsubmission_file/x_99_9002_patchify.ipynb",
        # for oneself
        "eve_99_41_9001_patchify.ipynb",
        "eve_99_LATE_41_9001_patchify.ipynb",
        "Eve_99_41_assignsubmission_file_patchify.ipynb",
        "Eve_99_assignsubmission_file_41_assignsubmission_file/patchify.ipynb",
        "Eve_99_assignsubmission_file_ X_41_assignsubmission_file_patchify.ipynb",
        "Eve_99_9002_x_41_assignsubmission_file_patchify.ipynb",
        "Eve_99_9002_x_41_assignsubmission_file/patchify.ipynb",
        # in a zip that was handed in
        "eve_41_9001_hw/mal_99_9002_patchify.ipynb",
        "eve_41_9001_hw/Mal_99_assignsubmission_file/patchify.ipynb",
        "eve_41_9001_hw/extracted/mal_99_9002_patchify.ipynb",
        "Eve_41_assignsubmission_file/hw/Mal_99_assignsubmission_file/patchify.ipynb",
        "Eve_41_assignsubmission_file/downloaded/patchify/extracted/mal_99_9002_patchify.ipynb",
    ],
)
@pytest.mark.parametrize("zip", ["/submissions", ""])
def test_no_name_lands_with_another_student(name, zip, collected):
    """Eve is 41; who would be 99 is someone else. Where one cannot say, nothing is collected, which nbgrader tells."""
    found = collected(name, f"/courses/vit/downloaded/patchify/extracted{zip}")
    assert found is None or found["student_id"] == "41"


@pytest.mark.parametrize(
    ("name", "student"),
    [
        # The rest of the name is the student's own.
        ("mallory_41_9001_a b_42_9002_patchify.ipynb", ("41", None)),
        ("mallory_41_9001_x_42_9002_patchify.ipynb", ("41", None)),
        ("mallory_41_9001_patchify_42_assignsubmission_file_x.ipynb", ("41", None)),
        ("Mallory_41_assignsubmission_file_/x_42_assignsubmission_file_patchify.ipynb", ("41", None)),
        ("Mallory_41_assignsubmission_file_/sub/x_42_9002_patchify.ipynb", ("41", None)),
        ("Mallory_41_assignsubmission_file_/extracted/x_42_9002_patchify.ipynb", ("41", None)),
        ("mallory_41_9001_evil/x_42_9002_patchify.ipynb", ("41", None)),
        ("mallory_41_9001_\n_42_9002_patchify.ipynb", ("41", None)),
        # So is the name before it, on some platforms.
        ("mallory_42_41_9001_patchify.ipynb", (None,)),
        ("Mallory_42_41_assignsubmission_file_/patchify.ipynb", (None,)),
        ("Mallory_42_assignsubmission_file__41_assignsubmission_file_/patchify.ipynb", (None,)),
        ("Mallory_42_7_41_assignsubmission_file_/patchify.ipynb", (None,)),
        # Honest ones.
        ("lovelaceada_41_9001_my homework, at last.ipynb", ("41",)),
        ("lovelaceada_41_9001_Lösung (3).ipynb", ("41",)),
        ("ada2_41_9001_patchify_v_2.ipynb", ("41",)),
    ],
)
@pytest.mark.parametrize("folder", ["submissions", "Course_7_2026", ""])
def test_no_name_leads_into_the_folder_of_another(name, student, folder, course):
    from autograder.grading.classroom import Classroom
    from autograder.lms.collect import LmsNames

    with contextlib.chdir(course.folder):
        plugin = LmsNames(config=Classroom.here().config)
    found = plugin.collect(f"/courses/2026_1/downloaded/patchify/extracted/{folder}/{name}".replace("//", "/"))
    assert (found and found["student_id"]) in student


HOSTILE_NAMES = [
    "patchify.ipynb",
    "patchify-1.ipynb",
    "patchify (1).ipynb",
    "patchify-2.ipynb",
    "a.b.ipynb",
    "a.c.ipynb",
]
HOSTILE_NAMES += ["a\\..\\b.ipynb", "x" * 230 + ".ipynb"]
LEFT_OUT = ["x" * 250 + ".ipynb", "/../../../../up.ipynb"]  # a name has 255 characters at most
HOSTILE_NAMES += ["....ipynb", "\x1b[2J.ipynb", "\u202ex.ipynb", "\U00020000" * 55 + ".ipynb"]


def test_no_name_stops_the_collection(course):
    archive = course.folder / "downloaded" / "patchify" / "archive"
    archive.mkdir(parents=True)
    right = json.dumps(notebook(STUDENTS["ada"]))
    with zipfile.ZipFile(archive / "submissions.zip", "w") as made:
        made.writestr("lovelaceada_41_9001_patchify.ipynb", right)
        for name in [*HOSTILE_NAMES, *LEFT_OUT]:
            made.writestr(f"mallory_66_9002_{name}", right)
        made.writestr("mallory_66_9002_broken.zip", "PK\x03\x04 no archive")
    course.command("zip_collect", "patchify", module="nbgrader")
    assert (
        len(list(course.folder.glob("submitted/66/patchify/*.ipynb"))) == len(HOSTILE_NAMES) - 1
    )  # a hidden file is skipped
    course.run("grade")
    assert course.verdict("41")["score"] == 12
    assert course.verdict("66")["status"] == "graded"


def test_downloads_of_an_lms_are_collected_and_graded(course):
    archive = course.folder / "downloaded" / "patchify" / "archive"
    archive.mkdir(parents=True)
    with zipfile.ZipFile(archive / "submissions.zip", "w") as made:
        made.writestr("lovelaceada_41_9001_patchify-1.ipynb", json.dumps(notebook(STUDENTS["ada"])))
        made.writestr("Emil Noether_42_assignsubmission_file/patchify.ipynb", json.dumps(notebook(STUDENTS["emil"])))
    course.command("zip_collect", "patchify", module="nbgrader")
    course.run("grade")
    assert course.verdict("41")["score"] == 12
    assert course.verdict("42")["score"] == pytest.approx(8 + 4 * 2 / 9)


def test_what_was_not_collected_is_told_where_the_page_says(course):
    """nbgrader's exit status is 0 all the same, so a teacher has to look."""
    archive = course.folder / "downloaded" / "patchify" / "archive"
    archive.mkdir(parents=True)
    with zipfile.ZipFile(archive / "submissions.zip", "w") as made:
        made.writestr("patchify of Ada.ipynb", json.dumps(notebook(STUDENTS["ada"])))
    done = course.command("zip_collect", "patchify", module="nbgrader")
    assert "0 files collected, 1 files skipped" in done.stderr
    assert "Skipped submission with no match information provided" in done.stderr and "of Ada.ipynb" in done.stderr
    assert not (course.folder / "submitted").exists()
    page = " ".join((ROOT / "book" / "teach" / "course.md").read_text("utf-8").split())
    assert "`files collected, … files skipped`" in page and "`Skipped submission`" in page


def own_home(course):
    """An environment in which Jupyter keeps what it trusts in the course's folder."""
    return os.environ | {name: str(course.folder / name.lower()) for name in ("HOME", "JUPYTER_DATA_DIR")}


@contextlib.contextmanager
def jupyter(course, program, *options):
    """A Jupyter server of one of its programs on a course; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyter", program, "--allow-root", "--no-browser", f"--port={port}",
         "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True",
         f"--ServerApp.root_dir={course.folder}", *options],
        cwd=course.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=own_home(course),
    )  # fmt: skip
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            assert server.poll() is None, server.stderr.read()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.communicate()


@contextlib.contextmanager
def formgrader(course):
    """nbgrader's formgrader on a course; yields a function that asks it."""
    extension = '--ServerApp.jpserver_extensions={"nbgrader.server_extensions.formgrader": True}'
    with jupyter(course, "server", extension) as root:

        def ask(path, data=None):
            data = data and json.dumps(data).encode()
            request = urllib.request.Request(f"{ask.address}{path}", data, method=data and "PUT")
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.read().decode()

        ask.address = f"{root}formgrader/"
        yield ask


def test_formgrader_shows_our_grades_and_ours_keeps_what_is_given_there(course):
    hand_in(course.folder)
    for student in ("ada", "emil"):
        course.run("grade", "--student", student)
    with formgrader(course) as ask:
        shown = {one["student"]: one for one in json.loads(ask("api/submitted_notebooks/patchify/patchify"))}
        assert set(shown) == {"ada", "emil"}
        assert (shown["ada"]["score"], shown["ada"]["max_score"]) == (12, 12)
        assert shown["emil"]["score"] == pytest.approx(8 + 4 * 2 / 9)
        page = ask(f"submissions/{shown['emil']['id']}/")
        assert "patch_embed_conv" in page
        grades = json.loads(ask(f"api/grades?submission_id={shown['emil']['id']}"))
        (grade,) = (one for one in grades if one["name"] == "check_patch_embed_conv")
        assert grade["auto_score"] == pytest.approx(4 * 2 / 9)
        ask(f"api/grade/{grade['id']}", {"manual_score": 3.5})
    course.run("grade", "--force", "--student", "emil")
    with course.gradebook() as book:
        assert book.find_submission("patchify", "emil").score == pytest.approx(8 + 3.5)


RUNS = "fetch('/api/contents/', {method: 'POST', body: '{}'}); document.title = 'ran'"
CELLS = [
    f"<script>{RUNS}</script>",
    f'# A heading\n\n<img src=x onerror="{RUNS}">',
    f'<svg onload="{RUNS}">',
    f'<details open ontoggle="{RUNS}"><summary>x</summary></details>',
    f'<iframe srcdoc="<script>parent.{RUNS}</script>"></iframe>',
    f"`<script>`<script>{RUNS}</script>",
    f"```\n</code></pre><script>{RUNS}</script>\n```",
    f"$x<script>{RUNS}</script>$",
    f'<b title="\n\n<script>{RUNS}</script>">',
    f"</div></body><script>{RUNS}</script>",
    f"<!-- --!><script>{RUNS}</script>",
    f"\\<script>{RUNS}\\</script>",
    f"[click](javascript:{RUNS.replace(' ', '')})",
    f"[click](< javascript:{RUNS}>)",
    f"[click](java&#115;cript:{RUNS.replace(' ', '')})",
    f"[click][x]\n\n[x]:\n  javascript:{RUNS.replace(' ', '')}",
    f"[click][y]\n\n> [y]: javascript:{RUNS.replace(' ', '')}",
]
ELSEWHERE = "http://elsewhere.test/"  # whoever is there would learn when and from where a teacher looks
DRAWN = f'flowchart TD\n    A@{{ img: "{ELSEWHERE}drawn.png", label: "x", h: 60, w: 60 }}\n'
CELLS += [
    f"![seen]({ELSEWHERE}inline.png)",
    f"![seen][s]\n\n[s]: {ELSEWHERE}reference.png",
    "![seen](//elsewhere.test/scheme.png)",
    f"[![seen]({ELSEWHERE}in_a_link.png)](https://example.org)",
    f"```mermaid\n{DRAWN}```",
    f"~~~~ &#109;ermaid\n{DRAWN}~~~~",
]


def watched(browser, only=None):
    """A page of its own context, and a list of what is done on it that nobody asked for: dialogs, what is posted
    (`only` there), and what is asked of another host."""
    page, told = browser.new_context().new_page(), []

    def note(request):
        if request.url.startswith(ELSEWHERE) or (request.method == "POST" and only in (None, request.url)):
            told.append(request.url)

    page.on("request", note)
    page.on("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
    page.route("**/*", lambda route: route.continue_() if "127.0.0.1" in route.request.url else route.abort())
    return page, told


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_what_a_learner_writes_runs_nothing_in_formgrader(course, kind):
    """In a real browser, at a real formgrader. The same cells as they were handed in do run there."""
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(ROOT / "tests" / "browser"))
    from serving import CHROMIUM

    made = notebook(STUDENTS["emil"])
    made["cells"] += [
        {"cell_type": kind, "id": f"c{n}", "metadata": {}, "source": text} for n, text in enumerate(CELLS)
    ]
    submit(course.folder, "mal", made)
    course.run("grade")
    kept = course.folder / "autograded" / "mal" / "patchify" / "patchify.ipynb"
    cleaned = kept.read_text("utf-8")

    def ran(source):
        """What ran when the page was opened and every link on it was clicked."""
        kept.write_text(source, "utf-8")
        (shown,) = json.loads(ask("api/submitted_notebooks/patchify/patchify"))
        page, told = watched(browser)
        page.goto(f"{ask.address}submissions/{shown['id']}/", wait_until="domcontentloaded")
        page.wait_for_timeout(1500)
        for link in page.locator("#notebook a", has_text="click").all():
            link.click(no_wait_after=True)
        page.wait_for_timeout(500)
        return told + [page.title()] * (page.title() == "ran")

    with formgrader(course) as ask, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        raw = json.loads(cleaned)
        for cell in raw["cells"]:
            if cell["id"].startswith("cell-") and cell["cell_type"] == kind:
                number = int(cell["id"][5:]) - (len(made["cells"]) - len(CELLS))
                if number >= 0:
                    cell["source"] = CELLS[number]
        if kind == "markdown":  # raw cells are not shown by this version
            assert {f"{ELSEWHERE}inline.png", f"{ELSEWHERE}scheme.png"} < set(ran(json.dumps(raw)))
        assert ran(cleaned) == []
        browser.close()


OUTPUTS = [
    {"text/html": f"<script>{RUNS}</script>"},
    {"text/html": f'<img src=x onerror="{RUNS}">'},
    {"application/javascript": RUNS},
    {"image/svg+xml": f'<svg xmlns="http://www.w3.org/2000/svg"><script>{RUNS}</script></svg>'},
    {"text/markdown": f'<img src=x onerror="{RUNS}">'},
]
VIEWS = {"lab": "lab/tree/", "notebook": "notebooks/"}


@pytest.mark.slow
@pytest.mark.parametrize("program", VIEWS)
def test_what_a_learner_writes_runs_nothing_in_jupyter(course, program):
    """In a real browser, in JupyterLab and the Notebook, even where the teacher trusts all notebooks of the class.

    The notebook as it was handed in runs scripts there once it is trusted.
    """
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(ROOT / "tests" / "browser"))
    from serving import CHROMIUM

    made = notebook(STUDENTS["emil"])
    for number, text in enumerate(CELLS):
        for kind in ("markdown", "raw"):
            cell = {"cell_type": kind, "id": f"{kind}{number}", "metadata": {"trusted": True}, "source": text}
            made["cells"].append(cell | {"attachments": {"x.svg": OUTPUTS[3]}})
    for number, data in enumerate(OUTPUTS):
        shown = {"output_type": "display_data", "data": data, "metadata": {}}
        made["cells"].append({"cell_type": "code", "id": f"o{number}", "metadata": {"trusted": True}, "source": "1",
                              "execution_count": 1, "outputs": [shown]})  # fmt: skip
    made["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}, "version_major": 2}}
    submit(course.folder, "mal", made)
    course.run("grade")
    kept = course.folder / "autograded" / "mal" / "patchify" / "patchify.ipynb"
    cleaned = kept.read_text("utf-8")

    def ran(source):
        """What ran when the notebook was trusted, opened and every link in it clicked."""
        kept.write_text(source, "utf-8")
        trusted = [sys.executable, "-m", "jupyter", "trust", str(kept)]
        subprocess.run(trusted, check=True, cwd=course.folder, env=own_home(course), capture_output=True)
        page, told = watched(browser, f"{root}api/contents/")  # Jupyter itself posts, too
        page.goto(f"{root}{VIEWS[program]}autograded/mal/patchify/patchify.ipynb", wait_until="domcontentloaded")
        page.locator(".jp-Notebook .jp-MarkdownCell").first.wait_for(timeout=60_000)
        shown = ""
        for _ in range(40):  # cells come when they are scrolled to, and go
            page.mouse.move(640, 400)
            page.mouse.wheel(0, 400)
            page.wait_for_timeout(50)
            shown += page.locator(".jp-Notebook").inner_text()
        for link in page.locator(".jp-Notebook a", has_text="click").all():
            link.click(no_wait_after=True)
        page.wait_for_timeout(500)
        return told, shown

    with jupyter(course, program) as root, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        raw = json.loads(cleaned) | {"cells": made["cells"][-2 * len(CELLS) - len(OUTPUTS) :]}
        told, _ = ran(json.dumps(raw))
        assert {f"{ELSEWHERE}inline.png", f"{ELSEWHERE}drawn.png", f"{root}api/contents/"} <= set(told)
        told, shown = ran(cleaned)
        assert told == [] and "A heading" in shown
        browser.close()
