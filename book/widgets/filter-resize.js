// <filter-resize>: a learned filter, resized for larger or smaller patches in three ways, and the tokens it gives.

import { PatchGrid, define, fixed, paint, short, showValue, signed, slider } from "./figure.js";
import { axisMatrix, bothAxes, pseudoinverse } from "./resize.js";
import { filters, numbers, picture } from "./trained.js";

const P = 8;
const GRID = 7;
const SIDE = P * GRID;
const MOST = 24;

/** A square in reading order, resized bilinearly. */
export const resizePicture = (x, p, pNew) => bothAxes(axisMatrix(p, pNew), x);

/** A filter in reading order, resized so that tokens stay: `pi_resize` with the matrix of `bilinear_resize_matrix`. */
export const piResize = (w, p, pNew) => bothAxes(pseudoinverse(p, pNew), w);

const dot = (u, v) => u.reduce((sum, x, i) => sum + x * v[i], 0);

const grey = (x) => `rgb(${new Array(3).fill(Math.round((x - picture.shift) / picture.gain)).join(" ")})`;

const WAYS = [
  ["kept", "as trained"],
  ["naive", "like a picture"],
  ["divided", "divided by the area"],
  ["pi", "PI-resize"],
];

const STYLE = `
  filter-resize fieldset { display: grid; grid-template-columns: repeat(6, 1fr); gap: .4rem; margin: 0 0 .9rem; padding: 0; border: 0; font-family: var(--sans); }
  filter-resize legend { padding: 0 0 .3rem; font-weight: 600; }
  filter-resize fieldset label { position: relative; display: block; cursor: pointer; }
  filter-resize fieldset input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; }
  filter-resize fieldset :checked + canvas { outline: 3px solid var(--accent); outline-offset: 1px; }
  filter-resize fieldset :focus-visible + canvas { outline: 3px solid var(--figure-2); outline-offset: 3px; }
  filter-resize .ways { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 1rem; margin-top: 1.1rem; }
  filter-resize .ways div { display: grid; grid-template-columns: 2fr 3fr; gap: .3rem; align-items: end; }
  filter-resize .ways figcaption { line-height: 1.35; font-variant-numeric: tabular-nums; }
  filter-resize .ways b { display: block; color: var(--ink); }
  filter-resize .ways figcaption span { display: block; font-size: .88em; }
  @media (max-width: 40rem) { filter-resize .ways { grid-template-columns: repeat(2, minmax(0, 1fr)); } }`;

class FilterResize extends HTMLElement {
  build() {
    const bytes = Uint8Array.from(atob(picture.data), (letter) => letter.charCodeAt(0));
    const image = resizePicture(Float64Array.from(bytes, (x) => x * picture.gain + picture.shift), 28, SIDE);
    this.patches = Array.from({ length: GRID * GRID }, (_, i) => {
      const corner = Math.floor(i / GRID) * P * SIDE + (i % GRID) * P;
      return Array.from({ length: P * P }, (_, k) => image[corner + Math.floor(k / P) * SIDE + (k % P)]);
    });
    const [count, length] = filters.shape;
    const all = Array.from(numbers(filters));
    this.filters = Array.from({ length: count }, (_, i) => all.slice(i * length, (i + 1) * length));

    const start = (name, otherwise) => Number(this.getAttribute(name) ?? otherwise);
    this.innerHTML = `
      <style>${STYLE}</style>
      <div class="widget-split">
        <div class="side-a stage"><div class="picture"><canvas></canvas><div class="map"></div></div></div>
        <div class="side-b">
          <fieldset><legend>Filter</legend>${this.filters.map((_, i) => `<label><input type="radio" name="filter-resize" value="${i}" aria-label="Filter ${i}"${i ? "" : " checked"}><canvas></canvas></label>`).join("")}</fieldset>
          <div class="widget-controls">${slider("side", "New side", 4, MOST, start("side", 16))}</div>
        </div>
      </div>
      <div class="ways">${WAYS.map(([way, title]) => `<figure class="${way}"><div><canvas class="patch"></canvas><canvas class="filter"></canvas></div>
        <figcaption>${title}<br><b></b><span></span></figcaption></figure>`).join("")}</div>
      <p class="widget-say" role="status"></p>`;
    paint(this.querySelector(".picture canvas"), SIDE, SIDE, (r, c) => grey(image[r * SIDE + c]));
    this.querySelectorAll("fieldset canvas").forEach((canvas, i) => {
      const limit = Math.max(...this.filters[i].map(Math.abs));
      paint(canvas, P, P, (r, c) => signed(this.filters[i][r * P + c] / limit));
    });
    this.grid = new PatchGrid(this.querySelector(".map"), { patch: "Patch of the picture" }, (_, ...at) => {
      this.at = at;
      this.draw();
    });
    this.grid.resize(GRID, GRID);
    this.at = [start("row", 3), start("column", 3)];
    this.side = this.querySelector(".side");
    for (const input of this.querySelectorAll("input")) input.addEventListener("input", () => this.draw());
    this.draw();
    this.dataset.ready = "";
  }

  draw() {
    const p = Number(this.side.value);
    const w = this.filters[Number(this.querySelector("fieldset :checked").value)];
    showValue(this.side, `${p} pixels`);
    this.grid.place("patch", ...this.at);
    const area = (p / P) ** 2;
    const enlarged = resizePicture(w, P, p);
    const ways = { kept: w, naive: enlarged, divided: enlarged.map((x) => x / area), pi: piResize(w, P, p) };
    const resized = this.patches.map((x) => resizePicture(x, P, p));
    const chosen = this.at[0] * GRID + this.at[1];
    const limit = Math.max(...w.map(Math.abs)) / area;
    const tokens = {};
    for (const [way, filter] of Object.entries(ways)) {
      const [patches, side] = way === "kept" ? [this.patches, P] : [resized, p];
      tokens[way] = patches.map((x) => dot(x, filter));
      const figure = this.querySelector(`.ways .${way}`);
      // One scale for all: a trained weight stands for `area` new ones
      const strength = way === "kept" ? limit * area : limit;
      paint(figure.querySelector(".patch"), side, side, (r, c) => grey(patches[chosen][r * side + c]));
      paint(figure.querySelector(".filter"), side, side, (r, c) => signed(filter[r * side + c] / strength));
      figure.querySelector("b").textContent = `token ${fixed(tokens[way][chosen])}`;
    }
    const length = Math.sqrt(dot(tokens.kept, tokens.kept));
    const error = (way) => Math.sqrt(tokens[way].reduce((sum, x, i) => sum + (x - tokens.kept[i]) ** 2, 0)) / length;
    const percent = (x) => (x < 1e-9 ? "0%" : x < 1e-3 ? "under 0.1%" : `${fixed(100 * x, 1)}%`);
    for (const way of ["naive", "divided", "pi"]) this.querySelector(`.${way} span`).textContent = `all 49: off by ${percent(error(way))}`;
    this.querySelector(".kept span").textContent = "all 49: as they were";
    const times = dot(tokens.naive, tokens.kept) / length ** 2;
    const pi = error("pi") < 1e-9 ? "exactly the old ones" : `off by ${percent(error("pi"))}, since no filter so small fits every patch`;
    this.querySelector("[role=status]").textContent =
      `From ${P} to ${p}, over all patches of the picture: resized like a picture, the filter gives tokens ${short(times, 2)} times as large; ` +
      `divided by the area, off by ${percent(error("divided"))}; PI-resized, ${pi}.`;
  }
}

define("filter-resize", FilterResize);
