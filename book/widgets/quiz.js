// Checks the answers of the {quiz} questions on a page, and keeps them.

import { whenNear } from "./near.js";
import { read, write } from "./store.js";

/** A number as people type it: 1,000 and 1 000 are a thousand, 2/3 and 2^10 are worked out; else NaN. */
export function parseNumber(text) {
  const plain = text
    .trim()
    .replace(/(?<![\d.,])[1-9]\d{0,2}([,\s]\d{3})+(?!\d)/g, (thousands) => thousands.replace(/[,\s]/g, ""))
    .replace(/[−–]/, "-");
  const parts = plain.match(/^(-?[\d.]+(?:e-?\d+)?)(?:\s*([/^])\s*(-?[\d.]+))?$/i);
  if (!parts) return NaN;
  const [first, second] = [Number(parts[1]), Number(parts[3])];
  if (parts[2] === "/") return first / second;
  return parts[2] === "^" ? first ** second : first;
}

/** Whether a number answers the question. */
export function isRight(value, answer, tolerance) {
  return Math.abs(value - answer) <= Math.max(tolerance, 1e-9 * Math.abs(answer));
}

function judgeNumber(quiz) {
  const value = parseNumber(quiz.querySelector("input").value);
  if (Number.isNaN(value)) return [null, "Type a number, such as 576, 0.25 or 2/3."];
  return [isRight(value, Number(quiz.dataset.answer), Number(quiz.dataset.tolerance))];
}

function judgeChoices(quiz) {
  const boxes = [...quiz.querySelectorAll("input")];
  if (!boxes.some((box) => box.checked)) return [null, "Choose an answer first."];
  for (const box of boxes) {
    const why = box.closest("li").querySelector(".quiz-why");
    if (why) why.hidden = !box.checked;
  }
  return [boxes.every((box) => box.checked === "right" in box.dataset)];
}

function check(quiz) {
  const [right, message] = quiz.dataset.kind === "numeric" ? judgeNumber(quiz) : judgeChoices(quiz);
  const hint = quiz.querySelector(".hint") ? " The hint below may help." : "";
  quiz.dataset.verdict = right === null ? "" : right ? "right" : "wrong";
  quiz.querySelector(".quiz-verdict").textContent = message ?? (right ? "Right." : `Not yet.${hint}`);
  if (right !== null) write(`quiz/${quiz.id}`, { answer: answerOf(quiz), right });
}

/** What was typed, or the numbers of the choices. */
function answerOf(quiz) {
  const boxes = [...quiz.querySelectorAll("input")];
  return quiz.dataset.kind === "numeric" ? boxes[0].value : boxes.flatMap((box, number) => (box.checked ? [number] : []));
}

function bringBack(quiz) {
  const kept = read(`quiz/${quiz.id}`);
  if (!kept) return;
  const boxes = [...quiz.querySelectorAll("input")];
  if (quiz.dataset.kind === "numeric") boxes[0].value = kept.answer;
  else for (const [number, box] of boxes.entries()) box.checked = kept.answer.includes(number);
  check(quiz);
}

function open(quiz) {
  const field = quiz.querySelector("template"); // that which a number is typed in
  field?.replaceWith(field.content);
  const button = quiz.querySelector(".quiz-check");
  button.hidden = false;
  button.addEventListener("click", () => check(quiz));
  quiz.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("input")) check(quiz);
  });
  bringBack(quiz);
}

for (const quiz of document.querySelectorAll(".quiz")) whenNear(quiz, () => open(quiz));
