// What the interactive figures share: colours, numbers as text, and a grid of patches with markers to drag.

import { whenNear } from "./near.js";

const VIRIDIS = ["440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"];
const BLUE_RED = ["053061", "2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b", "67001f"];

function between(colors, share) {
  const place = Math.min(Math.max(share, 0), 1) * (colors.length - 1);
  const [low, high] = [Math.floor(place), Math.ceil(place)];
  const mixed = [0, 2, 4].map((i) => {
    const [a, b] = [low, high].map((k) => parseInt(colors[k].slice(i, i + 2), 16));
    return Math.round(a + (b - a) * (place - low));
  });
  return `rgb(${mixed.join(" ")})`;
}

/** A colour for a size from 0 to 1, and one for a signed number from -1 to 1, as in the book's figures. */
export const magnitude = (share) => between(VIRIDIS, share);
export const signed = (x) => between(BLUE_RED, (x + 1) / 2);

/** A number with so many decimals at most, and a proper minus. */
export const short = (x, decimals = 3) =>
  (Math.round(x * 10 ** decimals) / 10 ** decimals + 0).toLocaleString("en", { maximumFractionDigits: decimals }).replace("-", "−");

/** A number with so many decimals, always. */
export const fixed = (x, decimals = 3) => (Math.abs(x) < 0.5 * 10 ** -decimals ? 0 : x).toFixed(decimals).replace("-", "−");

/** A `<select>` in its label. Options are texts, or pairs of a value and a text. */
export function choice(name, label, options, chosen) {
  const items = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  const inner = items.map(([value, text]) => `<option value="${value}"${String(value) === String(chosen) ? " selected" : ""}>${text}</option>`);
  return `<label>${label} <select class="${name}">${inner.join("")}</select></label>`;
}

/** A range with its value beside it, which is no part of its name. */
export const slider = (name, label, min, max, value) =>
  `<label>${label} <input class="${name}" type="range" aria-label="${label}" min="${min}" max="${max}" value="${value}"><output></output></label>`;

/** Show a range's value, also to screen readers. */
export function showValue(input, text = input.value) {
  input.nextElementSibling.textContent = text;
  input.setAttribute("aria-valuetext", text);
}

/** Draw a picture of one pixel for each cell; the page enlarges it. */
export function paint(canvas, rows, columns, color) {
  Object.assign(canvas, { width: columns, height: rows });
  const context = canvas.getContext("2d");
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      context.fillStyle = color(r, c);
      context.fillRect(c, r, 1, 1);
    }
  }
}

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/**
 * A grid of patches in `box`, with markers that pointer and arrow keys move from cell to cell.
 *
 * To a screen reader a marker is a slider over the raster numbers which says its row and column.
 */
export class PatchGrid {
  /**
   * @param {HTMLElement} box - over a picture, in an element of class "picture"
   * @param {Object<string, string>} markers - the name of each, and what it is called
   * @param {(name: string, row: number, column: number) => void} asked - where the reader wants a marker;
   *   `place` puts it there
   */
  constructor(box, markers, asked) {
    Object.assign(this, { box, asked, rows: 1, columns: 1 });
    box.classList.add("patch-grid");
    this.markers = Object.fromEntries(
      Object.entries(markers).map(([name, label]) => {
        const marker = document.createElement("div");
        marker.className = `marker ${name}`;
        marker.tabIndex = 0;
        marker.setAttribute("role", "slider");
        marker.setAttribute("aria-label", label);
        marker.addEventListener("keydown", (event) => this.key(event, name));
        box.append(marker);
        return [name, marker];
      }),
    );
    box.addEventListener("pointerdown", (event) => this.grab(event));
    box.addEventListener("pointermove", (event) => this.held && this.move(event, this.held));
    for (const end of ["pointerup", "pointercancel"]) box.addEventListener(end, () => (this.held = null));
    // A tap on the grid moves a marker; a finger that slides over it scrolls the page
    box.addEventListener("click", (event) => this.move(event, this.nearest(event)));
  }

  /** Cover the whole of a picture of that ratio of width to height, or these shares of it. */
  resize(rows, columns, ratio = columns / rows, [down, across] = [1, 1]) {
    Object.assign(this, { rows, columns });
    this.box.parentElement.style.setProperty("--ratio", ratio);
    this.box.style.cssText = `--rows: ${rows}; --columns: ${columns}; width: ${100 * across}%; height: ${100 * down}%`;
  }

  place(name, row, column, text = `row ${row}, column ${column}`) {
    const marker = this.markers[name];
    marker.at = [row, column];
    marker.style.left = `${((column + 0.5) / this.columns) * 100}%`;
    marker.style.top = `${((row + 0.5) / this.rows) * 100}%`;
    marker.setAttribute("aria-valuemin", 0);
    marker.setAttribute("aria-valuemax", this.rows * this.columns - 1);
    marker.setAttribute("aria-valuenow", Math.floor(row) * this.columns + Math.floor(column));
    marker.setAttribute("aria-valuetext", text);
  }

  ask(name, row, column) {
    const clamp = (x, n) => Math.min(Math.max(x, 0), n - 1);
    this.asked(name, clamp(row, this.rows), clamp(column, this.columns));
  }

  key(event, name) {
    const step = STEPS[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const [row, column] = this.markers[name].at;
    this.ask(name, row + step[0], column + step[1]);
  }

  cell(event) {
    const { left, top, width, height } = this.box.getBoundingClientRect();
    return [((event.clientY - top) / height) * this.rows - 0.5, ((event.clientX - left) / width) * this.columns - 0.5];
  }

  nearest(event) {
    const [row, column] = this.cell(event);
    const far = ({ at }) => (at[0] - row) ** 2 + (at[1] - column) ** 2;
    return Object.keys(this.markers).reduce((best, name) => (far(this.markers[name]) < far(this.markers[best]) ? name : best));
  }

  grab(event) {
    const own = event.target.closest(".marker");
    if (!own && event.pointerType !== "mouse") return;
    this.held = Object.keys(this.markers).find((name) => this.markers[name] === own) ?? this.nearest(event);
    this.box.setPointerCapture(event.pointerId);
    this.markers[this.held].focus({ preventScroll: true });
    event.preventDefault();
    this.move(event, this.held);
  }

  move(event, name) {
    this.ask(name, ...this.cell(event).map(Math.round));
  }
}

/** Define a custom element that is put together (`build`) when the reader comes near. */
export function define(name, Figure) {
  class Near extends Figure {
    connectedCallback() {
      whenNear(this, () => this.build());
    }
  }
  customElements.define(name, Near);
}
