"""The built pages: nothing from elsewhere, no dead link, nothing hidden shown."""

import pickle
import re
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from addresses import dead_links, outside_addresses, page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_theme"))


def test_nothing_is_loaded_from_elsewhere(site):
    assert outside_addresses(site) == []


def test_what_a_page_depends_on_is_there(site):
    """Else Sphinx would take the page for changed, and `make page` run it each time."""
    env = pickle.loads((site.parent / ".doctrees" / "environment.pickle").read_bytes())
    assert sum(map(len, env.dependencies.values())) > 10
    gone = [(page, path) for page, paths in env.dependencies.items() for path in paths if not (ROOT / path).exists()]
    assert gone == []


def test_what_cells_read_is_what_their_outputs_are_kept_for(opened_by_cells):
    """Else a page would show what is no longer so: outputs are kept as long as nothing changes of CALLED."""
    from course_site import CALLED

    ours = {path.relative_to(ROOT) for path in opened_by_cells if path.is_relative_to(ROOT) and path.is_file()}
    ours = {path for path in ours if path.parts[0] not in (".venv", "_build", ".git") and path.suffix != ".pyc"}
    assert {"pavilion.webp", "torch.json", "position_ablation.json", "training.py"} <= {path.name for path in ours}
    called = {path.relative_to(ROOT) for pattern in CALLED for path in ROOT.glob(pattern)}
    assert ours - called == set()


def test_outputs_are_kept_for_one_state_of_the_course_and_its_surroundings(tmp_path, monkeypatch):
    import course_site

    file = tmp_path / "tests" / "golden" / "a.json"
    file.parent.mkdir(parents=True)
    file.write_text("1")
    monkeypatch.setattr(course_site, "ROOT", tmp_path)
    folders = [course_site.cells_folder("kept")]
    assert course_site.cells_folder("kept") == folders[0]
    file.write_text("2")
    folders.append(course_site.cells_folder("kept"))
    file.rename(file.with_name("b.json"))
    folders.append(course_site.cells_folder("kept"))
    monkeypatch.setenv("COURSE_SIZE", "tiny")
    folders.append(course_site.cells_folder("kept"))
    monkeypatch.setenv("FASHION_MNIST", str(file.parent))
    folders.append(course_site.cells_folder("kept"))
    monkeypatch.setattr(course_site.metadata, "distributions", list)  # nothing installed
    folders.append(course_site.cells_folder("kept"))
    assert len(set(folders)) == len(folders)


def test_the_math_font_has_what_the_formulas_use(site):
    from subset_fonts import FORMULAS, codepoints

    formulas = [math for path in site.rglob("*.html") for math in page(path).find_all("math")]
    used = set("".join(text for math in formulas for text in math.stripped_strings))
    assert len(formulas) > 1000 and "∑" in used
    assert used - set(map(chr, codepoints(FORMULAS))) == set()


def test_the_text_fonts_have_what_the_pages_say(site):
    from subset_fonts import FORMULAS, TEXT, codepoints

    texts = [text for path in site.rglob("*.html") for text in page(path).find_all(string=True)]
    used = set("".join(text for text in texts if not text.find_parent(["math", "script", "style"])))
    assert "é" in used and "→" in used  # an arrow is taken from the math font
    names, marks = set("ćčŁ"), set("○●")  # no Latin file of these faces has them
    assert used - set(map(chr, [*codepoints(TEXT), *codepoints(FORMULAS)])) - names - marks - set("\n\u200b") == set()


def test_no_link_inside_the_site_is_dead(site):
    assert dead_links(site) == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("page.html", '<img src="https://example.org/a.png" alt="">'),
        ("page.html", '<img srcset="//example.org/a.png 2x" alt="">'),
        ("page.html", '<link rel="stylesheet" href="https://example.org/a.css">'),
        ("page.html", '<script src="//example.org/a.js"></script>'),
        ("page.html", '<script type="module">import "https://example.org/a.js"</script>'),
        ("page.html", '<p style="background: url(https://example.org/a.png)">'),
        ("page.html", "<style>@import 'https://example.org/a.css'</style>"),
        ("page.html", '<svg><use xlink:href="https://example.org/a.svg#b"/></svg>'),
        ("style.css", "p { background: url('//example.org/a.png') }"),
        ("style.css", '@import "https://example.org/a.css";'),
        ("script.js", 'import { a } from "https://example.org/a.js";'),
        ("script.js", "await import('https://example.org/a.js')"),
        ("script.js", "fetch(`https://example.org/a.json`)"),
        ("script.js", 'picture.src = "https://example.org/a.png"'),
    ],
)
def test_an_outside_address_is_seen(tmp_path, file, content):
    (tmp_path / "page.html").write_text('<link rel="stylesheet" href="style.css"><script src="script.js"></script>')
    (tmp_path / file).write_text((tmp_path / file).read_text() + content if file == "page.html" else content)
    assert len(outside_addresses(tmp_path)) == 1


def test_a_plain_link_elsewhere_is_no_outside_address(tmp_path):
    (tmp_path / "page.html").write_text('<a href="https://example.org">there</a>')
    assert outside_addresses(tmp_path) == []


@pytest.mark.parametrize(
    "link", ['<a href="nowhere.html">', '<a href="other.html#nowhere">', '<a href="#nowhere">', '<img src="no.png">']
)
def test_a_dead_link_is_seen(tmp_path, link):
    (tmp_path / "other.html").write_text('<p id="here">')
    living = '<p id="top"><a href="other.html#here"></a><a href="#top"></a><a href="https://example.org/nowhere"></a>'
    (tmp_path / "page.html").write_text(living)
    assert dead_links(tmp_path) == []
    (tmp_path / "page.html").write_text(living + link)
    assert len(dead_links(tmp_path)) == 1


def test_a_site_without_solutions_is_another_site(monkeypatch):
    """So that the tests do not take what `make book SOLUTIONS=hidden` left behind for the site."""
    from course_site import sources_digest

    monkeypatch.delenv("SOLUTIONS", raising=False)
    shown = sources_digest()
    monkeypatch.setenv("SOLUTIONS", "shown")
    assert sources_digest() == shown
    monkeypatch.setenv("SOLUTIONS", "hidden")
    assert sources_digest() != shown


def test_ids_are_unique(site):
    for path in site.glob("book/**/*.html"):
        ids = [tag["id"] for tag in page(path).find_all(id=True)]
        assert len(ids) == len(set(ids)), (path.name, sorted(i for i in set(ids) if ids.count(i) > 1))


def test_no_solution_marks_and_no_sources_on_the_site(site):
    assert not (site / "_sources").exists()
    for path in site.glob("book/**/*.html"):
        if path.stem not in ("add_an_exercise", "a_course_of_your_own"):  # which show how a solution is marked
            assert not re.search(r"### (BEGIN|END)", path.read_text()), path


def test_what_finds_the_site_and_what_is_found(site):
    address = "https://patches-and-positions.github.io/course/"
    found = re.findall(r"<loc>(.*?)</loc>", (site / "sitemap.xml").read_text())
    assert f"{address}book/patchify.html" in found
    assert all((site / one.removeprefix(address)).is_file() for one in found)
    for path in site.glob("book/**/*.html"):
        soup = page(path)
        said = soup.find("meta", attrs={"name": "description"})["content"]
        opening = soup.select_one("article section > p:not(.notebook-links)")  # a list of references has none
        assert said.strip() if opening is None else said.split()[:2] == opening.text.split()[:2], path
        picture = soup.find("meta", property="og:image")["content"]
        assert (site / picture.removeprefix(address)).is_file()


def numbered_chapters():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    return [chapter["file"] for part in toc["parts"] if part.get("numbered") for chapter in part["chapters"]]


def test_the_front_page_maps_every_chapter(site):
    chapters = numbered_chapters()
    found = page(site / "book/intro.html").select(".chapter-map li")
    assert [f"book/{item.a['href']}" for item in found] == [f"{chapter}.html" for chapter in chapters]
    assert [item.select_one(".chapter-number").text for item in found] == [str(i + 1) for i in range(len(chapters))]
    assert all(item.find_all("p")[1].text.strip() for item in found)
    tokens = found[chapters.index("book/tokens")]
    assert tokens.find_all("p")[1].text == "A Transformer reads no words and no pixels. What does it read?"


def test_a_prime_is_no_superscript(site):
    """Its sign is raised and small already."""
    primes = [mo for path in site.rglob("*.html") for mo in page(path).find_all("mo", string="′")]
    assert len(primes) > 50
    assert {mo.parent.name for mo in primes} == {"mrow"}


def test_progress_names_each_question_by_its_section(site):
    links = page(site / "book/progress.html").select("[data-record^='quiz/'] a")
    assert len(links) > 40
    for link in links:
        path, _, label = link["href"].partition("#")
        section = page(site / "book" / path).find(id=label).find_parent("section")
        assert section.find(["h1", "h2", "h3"]).find(string=True) == re.sub(r" \(\d\)$", "", link.text)
    assert len({(link["href"].partition("#")[0], link.text) for link in links}) == len(links)


def test_each_chapter_leads_to_its_notebook(site):
    """To download, to Colab, and to how it is opened in JupyterLab."""
    for chapter in numbered_chapters():
        path = site / f"{chapter}.html"
        download, colab, lab = page(path).select_one(".notebook-links").find_all("a")
        notebook = (path.parent / download["href"]).resolve()
        assert notebook.suffix == ".ipynb" and notebook.is_file()
        assert colab["href"].startswith("https://colab.research.google.com/github/")
        assert colab["href"].endswith(f"/exercises/{notebook.relative_to(site.resolve() / 'notebooks')}")
        target, _, anchor = lab["href"].partition("#")
        assert (path.parent / target).resolve() == site.resolve() / "book/start.html"
        assert "make lab" in page(site / "book/start.html").find(id=anchor).find_parent("section").text


def test_the_same_words_lead_to_the_same_notebook(site):
    """A page of the GPU part is a notebook and has the exercises in another one: whoever takes the first to hand in
    what stands in the second is lost."""
    seen = set()
    for path in site.glob("book/**/*.html"):
        links = [link for line in page(path).select(".notebook-links") for link in line.find_all("a")]
        leads, saved = {}, {}
        for link in links:
            leads.setdefault(link.text, set()).add(link["href"])
            if link.get("download"):
                saved.setdefault(link["download"], set()).add(link["href"])
        assert all(len(addresses) == 1 for addresses in (*leads.values(), *saved.values())), path.name
        seen |= saved.keys()
    assert {"small_vit.ipynb", "small_vit_page.ipynb", "patchify.ipynb"} <= seen


def test_a_missing_page_leads_back(site):
    soup = page(site / "404.html")
    assert soup.base["href"] == "/course/"
    assert all((site / link["href"]).is_file() for link in soup.find_all(["a", "link"]))


def test_the_copy_for_reading_offline_is_whole(site):
    with zipfile.ZipFile(site / "patches-and-positions.zip") as archive:
        names = {name.removeprefix("patches-and-positions/") for name in archive.namelist()}
        assert "index.html" in archive.read("patches-and-positions/README.txt").decode()
    for path in (
        *site.glob("book/**/*.html"),
        *site.glob("widgets/*"),
        site / "index.html",
        site / "run/settings.json",
    ):
        assert str(path.relative_to(site)) in names
    assert {name for name in names if name.endswith(".zip")} == {"run/course.zip"}  # which the checks are run by


def test_what_a_cell_prints_does_not_hang_on_timing():
    from course_site import join_streams

    def stream(text, name="stdout"):
        return {"output_type": "stream", "name": name, "text": text}

    figure = {"output_type": "display_data"}
    pieces = [stream("a\n\nb"), figure, stream(" c\n"), stream("x", "stderr"), stream("d")]
    assert join_streams(pieces) == [stream("a\n\nb c\nd"), figure, stream("x", "stderr")]
