// The exercises of a page: an editor for each, Python to run and check it, and the way to the notebook and back.

import { makeEditor } from "./editor.js";
import { whenNear } from "./near.js";
import { keyOf, read, write } from "./store.js";

const TIME_LIMIT = 20000; // milliseconds
const exercises = [...document.querySelectorAll(".exercise[data-solve]")].map(makeExercise);

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function button(text, action, className = "solve-button") {
  const element = make("button", { type: "button", className, textContent: text });
  element.addEventListener("click", action);
  return element;
}

function makeExercise(box) {
  const name = box.dataset.exercise;
  const stubBox = box.querySelector(".exercise-stub");
  const help = make("p", {
    className: "solve-help",
    id: `${box.id}-keys`,
    textContent: "Tab indents; Esc, then Tab leaves the editor. Ctrl+Enter checks.",
  });
  const exercise = {
    box,
    name,
    chapter: box.dataset.chapter,
    help,
    stub: stubBox.querySelector("pre").textContent.trimEnd(),
    editor: makeEditor({ label: `Your code for ${name}`, help: help.id, typed: () => noteTyping(exercise) }),
    verdict: make("div", { className: "solve-verdict" }),
    busy: make("p", { className: "solve-busy", hidden: true }, make("progress"), make("span")),
    output: make("pre", { className: "solve-output", tabIndex: 0, hidden: true }),
    solved: make("span", { className: "solve-solved" }),
    isUnsaved: false, // only then is it written when the page is left: another tab may know better
    saving: null, // the timer that will
    replaced: [], // what stood there before each Reset or load, { code, solved }: it can be brought back
  };
  exercise.verdict.setAttribute("role", "status");
  exercise.busy.querySelector("progress").setAttribute("aria-label", "Python is busy");
  exercise.output.setAttribute("role", "region");
  exercise.output.setAttribute("aria-label", `Output of ${name}`);
  exercise.run = button("Run", () => start(exercise, false));
  exercise.check = button("Check", () => start(exercise, true), "solve-button primary");
  exercise.stop = button("Stop", () => finish(exercise, "stopped", "Stopped."));
  exercise.stop.hidden = true;
  exercise.reset = button("Reset", () => reset(exercise));
  exercise.undo = button("Undo", () => undo(exercise));
  exercise.undo.hidden = true;
  const buttons = make("div", { className: "solve-buttons" });
  buttons.append(exercise.check, exercise.run, exercise.stop, exercise.reset, exercise.undo);
  if (box.querySelector("details.hint")) buttons.append(button("Hint", () => openNext(exercise, "details.hint")));
  if (box.querySelector("details.solution")) buttons.append(button("Solution", () => openNext(exercise, "details.solution")));
  const { editor, busy, verdict, output } = exercise;
  const solve = make("div", { className: "solve" }, editor.element, help, buttons, busy, verdict, output);
  whenNear(box, () => {
    stubBox.hidden = true;
    stubBox.after(solve);
  });
  box.querySelector(".exercise-facts").append(exercise.solved);
  addNotebookButtons(exercise);

  bringBack(exercise);
  addEventListener("pagehide", () => exercise.isUnsaved && keep(exercise));
  addEventListener("storage", ({ key }) => {
    // Another tab has written. What was typed here and is not kept yet stays.
    if (key !== keyOf(`exercise/${name}`) || exercise.isUnsaved || running?.exercise === exercise) return;
    bringBack(exercise);
  });
  exercise.editor.field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      start(exercise, true);
    }
  });
  return exercise;
}

function noteTyping(exercise) {
  exercise.editor.mark(0);
  exercise.isUnsaved = true;
  clearTimeout(exercise.saving);
  exercise.saving = setTimeout(() => keep(exercise), 300);
}

/** Show what is kept of an exercise. */
function bringBack(exercise) {
  const kept = read(`exercise/${exercise.name}`);
  exercise.editor.set(kept?.code ?? exercise.stub);
  markSolved(exercise, Boolean(kept?.solved));
}

function keep(exercise) {
  exercise.isUnsaved = false;
  clearTimeout(exercise.saving);
  const code = exercise.editor.field.value;
  const untouched = code.trimEnd() === exercise.stub;
  const value = untouched && !exercise.isSolved ? null : { code, solved: exercise.isSolved };
  if (!write(`exercise/${exercise.name}`, value)) {
    exercise.help.textContent = "This browser keeps nothing: before you leave, download the notebook with your code.";
  }
}

function markSolved(exercise, solved) {
  exercise.isSolved = solved;
  exercise.solved.textContent = solved ? " · ✓ solved" : "";
}

/** Say how things stand; a line "See: heading" becomes a link to the heading. */
function say(exercise, kind, text) {
  exercise.verdict.dataset.verdict = kind;
  exercise.verdict.replaceChildren(
    ...text.split("\n").map((line) => {
      const heading = line.startsWith("See: ") && findHeading(line.slice(5));
      return heading ? make("p", {}, "See: ", make("a", { href: `#${heading}`, textContent: line.slice(5) })) : make("p", {}, line);
    }),
  );
}

function findHeading(text) {
  const heading = [...document.querySelectorAll("article :is(h1, h2, h3)")].find(
    (one) => one.firstChild.textContent.trim() === text,
  );
  return heading?.closest("section[id]")?.id;
}

function reset(exercise) {
  replaceCode(exercise, exercise.stub);
  say(exercise, "", "The exercise is as it was.");
}

function replaceCode(exercise, code) {
  const before = exercise.editor.field.value;
  if (before !== code) exercise.replaced.push({ code: before, solved: exercise.isSolved });
  put(exercise, { code, solved: false });
}

function undo(exercise) {
  put(exercise, exercise.replaced.pop());
  if (exercise.undo.hidden) exercise.reset.focus();
  say(exercise, "", "Your code is back.");
}

function put(exercise, { code, solved }) {
  exercise.editor.set(code);
  exercise.undo.hidden = exercise.replaced.length === 0;
  exercise.output.hidden = true;
  markSolved(exercise, solved);
  keep(exercise);
}

function openNext(exercise, selector) {
  const all = [...exercise.box.querySelectorAll(selector)];
  const next = all.find((one) => !one.open) ?? all.at(-1);
  next.open = true;
  next.querySelector("summary").focus();
  next.scrollIntoView({ block: "nearest" });
}

// --- Running ---------------------------------------------------------------------------------------------

let worker = null;
let running = null; // { exercise, checking, code, timer }

async function start(exercise, checking) {
  if (running) return;
  const code = exercise.editor.field.value;
  running = { exercise, checking, code };
  setBusy(exercise, true);
  exercise.output.textContent = "";
  exercise.output.hidden = true;
  exercise.editor.mark(0);
  if (exercise.isUnsaved) keep(exercise);
  say(exercise, "", worker ? "Running" : "Loading Python and NumPy");
  try {
    const setup = await setupCells(exercise.chapter);
    if (running?.exercise !== exercise) return; // stopped meanwhile
    worker ??= startWorker();
    const mine = exercises.filter((one) => one.chapter === exercise.chapter);
    worker.postMessage({
      name: exercise.name,
      code,
      setup,
      before: mine.slice(0, mine.indexOf(exercise)).map((one) => one.editor.field.value),
      checking,
    });
  } catch (error) {
    finish(exercise, "error", `This did not load: ${error.message}`);
  }
}

function startWorker() {
  const fresh = new Worker(new URL("solve-worker.js", import.meta.url), { type: "module" });
  fresh.onmessage = ({ data }) => fresh === worker && running && receive(data);
  fresh.onerror = (event) => {
    event.preventDefault();
    if (fresh === worker && running) finish(running.exercise, "error", `Python did not start: ${event.message ?? "no answer"}`);
  };
  return fresh;
}

function receive(data) {
  const { exercise } = running;
  if (data.progress) exercise.busy.querySelector("span").textContent = data.progress; // too often to be read out
  if (data.output) {
    exercise.output.hidden = false;
    exercise.output.textContent += data.output;
  }
  if (data.started) {
    exercise.busy.querySelector("span").textContent = "";
    say(exercise, "", "Running");
    running.timer = setTimeout(
      () => finish(exercise, "error", `Stopped after ${TIME_LIMIT / 1000} seconds. Is there a loop that does not end?`),
      TIME_LIMIT,
    );
  }
  if (data.failed) finish(exercise, "error", `Python could not do this: ${data.failed}`);
  if (data.answer) showAnswer(running, data.answer);
}

function showAnswer({ exercise, checking, code }, { kind, message, line }) {
  if (kind === "passed") {
    say(exercise, "right", message);
  } else if (kind === "failed") {
    say(exercise, "wrong", message);
  } else if (kind === "error") {
    exercise.output.hidden = false;
    exercise.output.textContent += message;
    say(exercise, "wrong", `${message.split("\n").at(-1)}${line ? `\nLine ${line} of your code.` : ""}`);
    exercise.editor.mark(line);
  } else {
    say(exercise, "", exercise.output.hidden ? "Ran; nothing was printed. Call your function, or press Check." : "Ran.");
  }
  // An answer is about the code that was sent, whatever was typed since
  if (checking && exercise.editor.field.value === code) {
    markSolved(exercise, kind === "passed");
    keep(exercise);
  }
  end();
}

/** End what runs, and Python with it. */
function finish(exercise, kind, text) {
  worker?.terminate();
  worker = null;
  say(exercise, kind === "stopped" ? "" : "wrong", text);
  end();
}

function end() {
  clearTimeout(running.timer);
  setBusy(running.exercise, false);
  running = null;
}

function setBusy(exercise, busy) {
  const focused = document.activeElement;
  for (const one of exercises) {
    for (const each of [one.run, one.check]) each.setAttribute("aria-disabled", busy);
  }
  exercise.stop.hidden = !busy;
  exercise.busy.hidden = !busy;
  exercise.busy.querySelector("span").textContent = "";
  if (!busy && focused === exercise.stop) exercise.check.focus();
}

// --- Notebooks -------------------------------------------------------------------------------------------

const notebooks = new Map();

/** The released notebook of a chapter, as text. */
function released(chapter) {
  if (!notebooks.has(chapter)) {
    const loading = fetch(new URL(`../notebooks/${chapter}/${chapter}.ipynb`, import.meta.url)).then((response) => {
      if (!response.ok) throw new Error(`${response.status} for the notebook`);
      return response.text();
    });
    loading.catch(() => notebooks.delete(chapter));
    notebooks.set(chapter, loading);
  }
  return notebooks.get(chapter);
}

const source = (cell) => (Array.isArray(cell.source) ? cell.source.join("") : String(cell.source ?? ""));
const gradeId = (cell) => cell.metadata?.nbgrader?.grade_id;

/** The cells of a chapter's notebook that are neither an exercise nor a check; nor the one, a form in Colab, that finds
 * the course: here it is found. */
async function setupCells(chapter) {
  const { cells } = JSON.parse(await released(chapter));
  return cells.filter((cell) => cell.cell_type === "code" && !gradeId(cell) && !cell.metadata.cellView).map(source);
}

/** A chapter's notebook with these functions in it: { name: code }. */
export function fillNotebook(text, codes) {
  const notebook = JSON.parse(text);
  for (const cell of notebook.cells) {
    if (cell.metadata?.nbgrader?.solution && gradeId(cell) in codes) {
      cell.source = codes[gradeId(cell)].trimEnd().split(/(?<=\n)/);
    }
  }
  return JSON.stringify(notebook, null, 1) + "\n";
}

/** The code of an exercise in a notebook: by the cell's grade_id, else by the function's name; or null. */
export function findCode(text, name) {
  const { cells } = JSON.parse(text);
  const code = cells.filter((cell) => cell.cell_type === "code");
  const cell =
    code.find((one) => gradeId(one) === name && one.metadata.nbgrader.solution) ??
    code.findLast((one) => new RegExp(`^def ${name}\\(`, "m").test(source(one)));
  return cell ? source(cell).trimEnd() : null;
}

function addNotebookButtons(exercise) {
  const links = exercise.box.querySelector(".notebook-links");
  const file = make("input", { type: "file", accept: ".ipynb,application/json", hidden: true });
  file.addEventListener("change", () => file.files.length && load(exercise, file));
  links.append(
    " · ",
    button("Download it with my code", () => download(exercise), "link-button"),
    " · ",
    button("Load a notebook", () => file.click(), "link-button"),
    file,
  );
}

async function download(exercise) {
  try {
    const mine = exercises.filter((one) => one.chapter === exercise.chapter);
    const codes = Object.fromEntries(mine.map((one) => [one.name, one.editor.field.value]));
    const text = fillNotebook(await released(exercise.chapter), codes);
    const url = URL.createObjectURL(new Blob([text], { type: "application/x-ipynb+json" }));
    make("a", { href: url, download: `${exercise.chapter}.ipynb` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  } catch (error) {
    say(exercise, "wrong", `The notebook did not load: ${error.message}`);
  }
}

async function load(exercise, input) {
  const file = input.files[0];
  const text = await file.text();
  input.value = "";
  const loaded = [];
  let found = 0;
  try {
    for (const one of exercises) {
      const code = findCode(text, one.name);
      found += code !== null;
      if (!code || code === one.stub || code === one.editor.field.value.trimEnd()) continue;
      replaceCode(one, code);
      loaded.push(one.name);
    }
  } catch {
    return say(exercise, "wrong", `${file.name} is not a notebook.`);
  }
  const all = loaded.join(", ");
  if (loaded.length) say(exercise, "", `From ${file.name}: ${all}. Undo brings your code back.`);
  else say(exercise, "", `${found ? "Nothing new" : "No exercise of this page"} in ${file.name}.`);
}
