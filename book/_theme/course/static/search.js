// What Sphinx's search shows of a page that it has found: the section in which the words stand, and what is around
// them. Its own summary looks for the stems of the words, which English words often do not contain ("rotari").

const BLOCKS = "h1, h2, h3, p, li, td, th, dt, dd, pre, figcaption";
const NOISE = ".headerlink, .admonition-title, .notebook-links, .moved, script, style, template";
const LENGTH = 240;

const typed = new URLSearchParams(location.search).get("q")?.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

function count(text, words) {
  return words.filter((word) => text.includes(word)).length;
}

/** About LENGTH characters around the first of the words, cut between words. */
function excerpt(text, words) {
  const places = words.map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0);
  const from = Math.max(0, Math.min(...places, text.length) - LENGTH / 3);
  const start = from === 0 ? 0 : text.indexOf(" ", from) + 1;
  const end = start + LENGTH >= text.length ? text.length : text.lastIndexOf(" ", start + LENGTH);
  return (start ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
}

// Words such as "constructor" are no entries of the index, though every object has them: a search for one never ended.
const bare = Object.create(null, { hasOwnProperty: { value: Object.prototype.hasOwnProperty } });
for (const entries of [Search._index.terms, Search._index.titleterms]) Object.setPrototypeOf(entries, bare);

// Sphinx lists a theorem's name as " (Name)"
const titles = Search._index.alltitles;
for (const [title, places] of Object.entries(titles)) {
  if (!title.startsWith(" (")) continue;
  delete titles[title];
  (titles[title.slice(2, -1)] ??= []).push(...places);
}

Documentation.addTranslations({
  messages: {
    "Search finished, found ${resultCount} page(s) matching the search query.": "Places found: ${resultCount}.",
    "Your search did not match any documents. Please make sure that all words are spelled correctly and that you've selected enough categories.":
      "No page has all of these words.",
  },
  plural_expr: "n != 1",
  locale: "en",
});

const shown = new Set(); // a page and one of its sections may both have been found

Search.makeSearchSummary = (html, stems, anchor) => {
  const main = new DOMParser().parseFromString(html, "text/html").querySelector('[role="main"]');
  for (const noise of main.querySelectorAll(NOISE)) noise.remove();
  for (const power of main.querySelectorAll("msup > :last-child")) power.prepend("^");
  const words = [...typed, ...stems];
  let best = null;
  const part = (anchor && main.querySelector(anchor)) || main; // a section or a theorem that was found by its title
  for (const block of part.querySelectorAll(BLOCKS)) {
    const section = block.closest("section");
    const heading = section?.querySelector(":scope > :is(h2, h3)");
    if (block === heading) continue;
    const text = block.textContent.replace(/\s+/g, " ").trim();
    if (shown.has(text)) continue;
    const own = count(text.toLowerCase(), words);
    if (!own && part === main) continue;
    // A section that the words name comes before one that mentions them, and a sentence before a cell of a table
    const found = own + count(heading?.textContent.toLowerCase() ?? "", words) + Math.min(text.length, 100) / 1000;
    if (found > (best?.found ?? 0)) best = { found, text, section, heading };
  }
  const summary = document.createElement("p");
  summary.className = "context";
  if (!best) return summary;
  shown.add(best.text);
  if (best.heading && `#${best.section.id}` !== anchor) {
    const link = document.createElement("a");
    link.href = `${document.documentElement.dataset.content_root}${main.dataset.page}.html#${best.section.id}`;
    link.textContent = best.heading.textContent.trim();
    summary.append(link, ": ");
  }
  summary.append(excerpt(best.text, words));
  return summary;
};
