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
  for (const number of document.querySelectorAll("[data-done]")) {
    const counted = (number.closest("td") ?? table).querySelectorAll(`[data-record^="${number.dataset.done}/"]`);
    number.textContent = [...counted].filter((item) => isDone(item.dataset.record)).length;
  }
}

function exportRecord() {
  const record = Object.fromEntries(names().sort().map((name) => [name, read(name)]));
  const url = URL.createObjectURL(new Blob([JSON.stringify(record, null, 1)], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: url, download: `${document.documentElement.dataset.course}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

/** Whether a file's entry is one that the pages write. */
function isRecord([name, kept]) {
  if (name.startsWith("exercise/")) return typeof kept?.code === "string" && typeof kept.solved === "boolean";
  const answer = kept?.answer;
  const isAnswer = typeof answer === "string" || (Array.isArray(answer) && answer.every(Number.isInteger));
  return name.startsWith("quiz/") && isAnswer && typeof kept.right === "boolean";
}

async function importRecord() {
  const text = await file.files[0].text();
  file.value = "";
  let record = [];
  try {
    record = Object.entries(JSON.parse(text)).filter(isRecord);
  } catch {
    // no JSON
  }
  if (!record.length) {
    said.textContent = "This file is no record of progress.";
    return;
  }
  const other = record.filter(([name, { code }]) => code !== undefined && (read(name)?.code ?? code) !== code);
  const count = other.length === 1 ? "1 exercise has" : `${other.length} exercises have`;
  const question = `${count} other code in this browser. Replace it with the code of the file?`;
  const replaced = other.length && !confirm(question) ? record.filter((one) => !other.includes(one)) : record;
  const kept = replaced.filter(([name, value]) => write(name, value)).length;
  show();
  const lost = replaced.length - kept;
  said.textContent = `${kept} of ${record.length} entries loaded.${lost ? " This browser keeps no more." : ""}`;
}

function reset() {
  if (!confirm("Forget all your code and answers in this browser?")) return;
  for (const name of names()) write(name, null);
  show();
  said.textContent = "Everything is forgotten.";
}

const said = document.querySelector(".progress-said");
const file = Object.assign(document.createElement("input"), { type: "file", accept: ".json", hidden: true });
file.addEventListener("change", importRecord);
said.before(file);
const actions = [exportRecord, () => file.click(), reset];
const buttons = document.querySelectorAll(".progress-tools button");
for (const [number, button] of buttons.entries()) button.addEventListener("click", actions[number]);
show();
addEventListener("pageshow", show);
