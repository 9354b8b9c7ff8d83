// What the reader has solved and answered, on the page of progress.

import { names, read, write } from "./store.js";

const table = document.querySelector("table.progress");
const items = [...table.querySelectorAll("[data-record]")];

/** Whether what was kept under a name is solved or rightly answered. */
export function isDone(name) {
  const kept = read(name);
  return Boolean(kept?.solved ?? kept?.right);
}

function mark(element, className, text) {
  const found = element.querySelector(`:scope > .${className}`) ?? document.createElement("span");
  found.className = className;
  found.textContent = text;
  return found;
}

function show() {
  for (const item of items) item.append(mark(item, "done", isDone(item.dataset.record) ? " ✓ done" : ""));
  for (const cell of table.querySelectorAll("td:has(li)")) {
    const all = [...cell.querySelectorAll("[data-record]")];
    const done = all.filter((item) => isDone(item.dataset.record)).length;
    cell.prepend(mark(cell, "count", `${done} of ${all.length}`));
  }
  const share = (kind) => {
    const all = items.filter((item) => item.dataset.record.startsWith(kind));
    return [all.filter((item) => isDone(item.dataset.record)).length, all.length];
  };
  const [solved, exercises] = share("exercise/");
  const [right, questions] = share("quiz/");
  total.textContent = `${solved} of ${exercises} exercises solved, ${right} of ${questions} questions answered rightly.`;
}

function makeButton(text, action) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "solve-button", textContent: text });
  button.addEventListener("click", action);
  return button;
}

function exportRecord() {
  const record = Object.fromEntries(names().sort().map((name) => [name, read(name)]));
  const url = URL.createObjectURL(new Blob([JSON.stringify(record, null, 1)], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: url, download: "patches-and-positions.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

async function importRecord() {
  const text = await file.files[0].text();
  file.value = "";
  try {
    const record = Object.entries(JSON.parse(text)).filter(([name, kept]) => /^(exercise|quiz)\//.test(name) && kept);
    for (const [name, kept] of record) write(name, kept);
    show();
    said.textContent = `${record.length} records loaded.`;
  } catch {
    said.textContent = "This file is no record of progress.";
  }
}

function reset() {
  if (!confirm("Forget all your code and answers in this browser?")) return;
  for (const name of names()) write(name, null);
  show();
  said.textContent = "Everything is forgotten.";
}

const total = Object.assign(document.createElement("p"), { className: "progress-total" });
const said = Object.assign(document.createElement("p"), { className: "progress-said" });
said.setAttribute("role", "status");
const file = Object.assign(document.createElement("input"), { type: "file", accept: ".json", hidden: true });
file.addEventListener("change", importRecord);
const buttons = document.createElement("div");
buttons.className = "solve-buttons";
buttons.append(makeButton("Export", exportRecord), makeButton("Import", () => file.click()), makeButton("Forget all", reset), file);
table.closest(".table-box").before(total, buttons, said);
show();
addEventListener("pageshow", show);
