// What the reader has solved and answered, on the page of progress.

import { names, read, write } from "./store.js";

const table = document.querySelector("table.progress");
const items = [...table.querySelectorAll("[data-record]")];

/** Whether what was kept under a name is solved or rightly answered. */
export function isDone(name) {
  const kept = read(name);
  return Boolean(kept?.solved ?? kept?.right);
}

function show() {
  for (const item of items) {
    item.querySelector(".done")?.remove();
    if (!isDone(item.dataset.record)) continue;
    const mark = Object.assign(document.createElement("span"), { className: "done", textContent: " ✓ done" });
    item.append(mark);
  }
  for (const cell of table.querySelectorAll("td:has(li)")) {
    const all = [...cell.querySelectorAll("[data-record]")];
    const done = all.filter((item) => isDone(item.dataset.record)).length;
    cell.querySelector(".count").textContent = `${done} of ${all.length}`;
  }
  const share = (kind) => {
    const all = items.filter((item) => item.dataset.record.startsWith(kind));
    return [all.filter((item) => isDone(item.dataset.record)).length, all.length];
  };
  const [solved, exercises] = share("exercise/");
  const [right, questions] = share("quiz/");
  total.textContent = `${solved} of ${exercises} exercises solved, ${right} of ${questions} questions answered correctly.`;
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

const [total, said] = ["total", "said"].map((name) => document.querySelector(`.progress-${name}`));
const file = Object.assign(document.createElement("input"), { type: "file", accept: ".json", hidden: true });
file.addEventListener("change", importRecord);
said.before(file);
const actions = [exportRecord, () => file.click(), reset];
const buttons = document.querySelectorAll(".progress-tools button");
for (const [number, button] of buttons.entries()) button.addEventListener("click", actions[number]);
show();
addEventListener("pageshow", show);
