// <position-similarity>: how like the position of one patch is to those of all others, in every scheme.

import { PatchGrid, choice, define, fixed, magnitude, paint, showValue, slider } from "./figure.js";
import { axisMatrix } from "./resize.js";
import { columns, learned, numbers, rows } from "./trained.js";

// What each scheme is called, and the width and base that it is mostly used with
export const SCHEMES = {
  none: { name: "no positions" },
  learned: { name: "learned table" },
  factorized: { name: "learned, factorized" },
  raster: { name: "sines of the number", d: 768, base: 10000 },
  sincos: { name: "sines on the grid", d: 768, base: 10000 },
  axial: { name: "axial RoPE", d: 64, base: 100 },
  mixed: { name: "mixed RoPE", d: 64, base: 10 },
};

/** The mean over `pairs` frequencies of cos(x ω). */
function meanCosine(x, pairs, base) {
  let sum = 0;
  for (let i = 0; i < pairs; i++) sum += Math.cos(x * base ** (-i / pairs));
  return sum / pairs;
}

/** The vectors of a learned table on an H by W grid, resized as `resize_pos_embed` does. */
function resized(table, H, W) {
  const [h, w, d] = table.shape;
  const [A, B] = [axisMatrix(h, H), axisMatrix(w, W)];
  const at = (r, c) => {
    const vector = new Float64Array(d);
    A[r].forEach((a, i) => a && B[c].forEach((b, j) => {
      if (b) for (let k = 0; k < d; k++) vector[k] += a * b * table.values[(i * w + j) * d + k];
    }));
    return vector;
  };
  return Array.from({ length: H * W }, (_, i) => at(Math.floor(i / W), i % W));
}

function tableOf(scheme) {
  if (scheme === "learned") return { shape: [7, 7, learned.shape[1]], values: numbers(learned) };
  const [row, column, half] = [numbers(rows), numbers(columns), rows.shape[1]];
  const [H, W] = [rows.shape[0], columns.shape[0]];
  const values = new Float64Array(H * W * 2 * half);
  for (let i = 0; i < H * W; i++) {
    const [r, c] = [Math.floor(i / W), i % W];
    values.set(column.subarray(c * half, (c + 1) * half), 2 * half * i);
    values.set(row.subarray(r * half, (r + 1) * half), 2 * half * i + half);
  }
  return { shape: [H, W, 2 * half], values };
}

/**
 * Similarity of the patch at (r, c) with every patch of an H by W grid, in raster order: the cosine of two vectors of
 * a table, or the score of two equal contents under rotary positions, divided by the largest there is.
 *
 * @param {string} scheme - a key of SCHEMES
 * @param {{d: number, base: number, degrees: number}} options - the last for mixed RoPE: half of the pairs turn along
 *   this direction, the others across it
 * @returns {Float64Array} of length H * W
 */
export function similarity(scheme, H, W, r, c, { d, base, degrees } = {}) {
  if (scheme === "none") return new Float64Array(H * W).fill(1);
  if (scheme === "learned" || scheme === "factorized") {
    const table = resized(tableOf(scheme), H, W);
    const dot = (u, v) => u.reduce((sum, x, k) => sum + x * v[k], 0);
    const own = table[r * W + c];
    return Float64Array.from(table, (v) => dot(own, v) / Math.sqrt(dot(own, own) * dot(v, v)));
  }
  const angle = scheme === "mixed" ? (degrees * Math.PI) / 180 : 0;
  const [x, y] = [Math.cos(angle), Math.sin(angle)];
  return Float64Array.from({ length: H * W }, (_, i) => {
    const [down, right] = [Math.floor(i / W) - r, (i % W) - c];
    if (scheme === "raster") return meanCosine(down * W + right, d / 2, base);
    return (meanCosine(x * right + y * down, d / 4, base) + meanCosine(x * down - y * right, d / 4, base)) / 2;
  });
}

const REMARKS = {
  none: "Nothing tells one patch from another.",
  learned: "Training has found the grid, if roughly. On other grids than 7 × 7 the table is interpolated.",
  factorized: "A row term plus a column term: a cross. On other grids than 7 × 7 both tables are interpolated.",
  raster: "The list knows neighbours in a row. The patch below is a whole row further in the list.",
  sincos: "A row term plus a column term, the same cross around every patch.",
  axial: "The score knows the offset alone: the same cross around every patch.",
  mixed: "The score knows the offset alone, and the two directions are not those of the axes.",
};

const STYLE = `
  position-similarity .widget-legend { display: flex; align-items: center; gap: .6rem; margin-top: .6rem; font: .88rem var(--sans); font-variant-numeric: tabular-nums; }
  position-similarity .widget-legend i { flex: 1; height: .6rem; border-radius: .2rem; background: linear-gradient(to right, #440154, #3e4a89, #26828e, #35b779, #b5de2b, #fde725); }`;

class PositionSimilarity extends HTMLElement {
  build() {
    const start = (name, otherwise) => this.getAttribute(name) ?? otherwise;
    const scheme = start("scheme", "sincos");
    this.innerHTML = `
      <style>${STYLE}</style>
      <div class="widget-split">
        <div class="side-a">
          <div class="stage"><div class="picture"><canvas></canvas><div class="map"></div></div></div>
          <div class="widget-legend"><span class="lowest"></span><i aria-hidden="true"></i><span>1</span></div>
        </div>
        <div class="side-b widget-controls">
          ${choice("scheme", "Positions", Object.entries(SCHEMES).map(([key, { name }]) => [key, name]), scheme)}
          ${slider("rows", "Rows", 2, 24, start("rows", 14))}
          ${slider("columns", "Columns", 2, 24, start("columns", 14))}
          ${choice("width", "Width d", [8, 16, 32, 64, 128, 256, 768])}
          ${choice("base", "Base", [10, 100, 1000, 10000].map((base) => [base, base.toLocaleString("en")]))}
          ${slider("degrees", "Direction", 0, 90, start("degrees", 20))}
        </div>
        <p class="widget-say" role="status"></p>
      </div>`;
    const names = ["scheme", "rows", "columns", "width", "base", "degrees"];
    this.fields = Object.fromEntries(names.map((name) => [name, this.querySelector(`.widget-controls .${name}`)]));
    this.at = [Number(start("row", 5)), Number(start("column", 9))];
    this.grid = new PatchGrid(this.querySelector(".map"), { patch: "Patch to compare with all others" }, (_, ...at) => {
      this.at = at;
      this.draw();
    });
    this.fields.scheme.addEventListener("input", () => this.usual());
    for (const field of Object.values(this.fields)) field.addEventListener("input", () => this.draw());
    this.usual();
    this.draw();
    this.dataset.ready = "";
  }

  /** Width and base as the scheme is mostly used; what it does not have cannot be set. */
  usual() {
    const { scheme, width, base, degrees } = this.fields;
    const { d, base: b } = SCHEMES[scheme.value];
    if (d) [width.value, base.value] = [d, b];
    width.disabled = base.disabled = !d;
    degrees.disabled = scheme.value !== "mixed";
  }

  draw() {
    const { scheme, rows, columns, width, base, degrees } = this.fields;
    const [H, W] = [Number(rows.value), Number(columns.value)];
    for (const field of [rows, columns]) showValue(field);
    showValue(degrees, degrees.disabled ? "none" : `${degrees.value}°`);
    const [r, c] = (this.at = [Math.min(this.at[0], H - 1), Math.min(this.at[1], W - 1)]);
    const options = { d: Number(width.value), base: Number(base.value), degrees: Number(degrees.value) };
    const values = similarity(scheme.value, H, W, r, c, options);
    const lowest = values.reduce((best, x, i) => (x < values[best] ? i : best), 0);
    const floor = values[lowest];
    paint(this.querySelector(".picture canvas"), H, W, (i, j) => magnitude(floor < 1 - 1e-9 ? (values[i * W + j] - floor) / (1 - floor) : 1));
    this.grid.resize(H, W);
    this.grid.place("patch", r, c);
    this.querySelector(".lowest").textContent = fixed(floor, 2);

    const [below, beside] = [r + 1 < H ? r + 1 : r - 1, c + 1 < W ? c + 1 : c - 1];
    const across = fixed(values[r * W + beside]);
    const along = fixed(values[below * W + c]);
    this.querySelector("[role=status]").textContent =
      `Patch (${r}, ${c}): similarity ${across} with its neighbour to the ${beside > c ? "right" : "left"}, ${along} with the one ` +
      `${below > r ? "below" : "above"}; lowest ${fixed(floor)}, at (${Math.floor(lowest / W)}, ${lowest % W}). ${REMARKS[scheme.value]}`;
  }
}

define("position-similarity", PositionSimilarity);
