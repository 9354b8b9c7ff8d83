// <half-pixel>: which old cells the new cells of a row read, in the three conventions for resizing a grid.

import { define, fixed, short, showValue, slider } from "./figure.js";
import { CONVENTIONS, clamp, coordinates } from "./resize.js";

const MOST = 24;
const outside = (s, n) => Math.abs(clamp(s, n) - s) > 1e-9;

const STYLE = `
  half-pixel figure { padding-top: .9rem; }
  half-pixel figcaption { margin: 0 0 .3rem; font-variant-numeric: tabular-nums; }
  half-pixel figcaption b { color: var(--ink); }
  half-pixel svg { display: block; width: 100%; height: 103px; overflow: visible; font: 12px var(--sans); text-anchor: middle; fill: var(--ink); touch-action: pan-y; }
  half-pixel rect { fill: var(--paper); stroke: var(--muted); }
  half-pixel g { --hue: var(--figure-1); opacity: .55; }
  half-pixel g.outside { --hue: var(--figure-2); }
  half-pixel :is(line, circle) { stroke: var(--hue); fill: var(--hue); stroke-width: 1.3; }
  half-pixel g.chosen { opacity: 1; }
  half-pixel g.chosen line { stroke-width: 3; }
  half-pixel rect.chosen { fill: var(--accent-soft); stroke: var(--accent); stroke-width: 2; }
  half-pixel text.chosen { font-weight: 700; }`;

class HalfPixel extends HTMLElement {
  build() {
    const start = (name, otherwise) => this.getAttribute(name) ?? otherwise;
    this.innerHTML = `
      <style>${STYLE}</style>
      <div class="widget-controls">
        ${slider("old", "Old cells", 1, MOST, start("old", 4))}
        ${slider("new", "New cells", 1, MOST, start("new", 7))}
        ${slider("look", "Look at new cell", 0, MOST - 1, start("look", 2))}
      </div>
      ${CONVENTIONS.map((name) => `<figure class="${name}"><figcaption><b>${name}</b> <span></span></figcaption><svg role="img"></svg></figure>`).join("")}
      <p class="widget-say" role="status"></p>`;
    this.fields = Object.fromEntries(["old", "new", "look"].map((name) => [name, this.querySelector(`.${name}`)]));
    for (const field of Object.values(this.fields)) field.addEventListener("input", () => this.draw());
    for (const svg of this.querySelectorAll("svg")) {
      svg.addEventListener("pointermove", (event) => this.point(event));
      svg.addEventListener("click", (event) => this.point(event));
    }
    this.draw();
    this.dataset.ready = "";
  }

  /** Look at the new cell under the pointer. */
  point(event) {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const cell = String(Math.floor(((event.clientX - left) / width) * Number(this.fields.new.value)));
    if (cell === this.fields.look.value) return;
    this.fields.look.value = cell;
    this.draw();
  }

  draw() {
    const [n, nNew] = [Number(this.fields.old.value), Number(this.fields.new.value)];
    this.fields.look.max = nNew - 1;
    const cell = Number(this.fields.look.value);
    for (const field of Object.values(this.fields)) showValue(field);
    const own = coordinates(n, nNew);
    const says = CONVENTIONS.map((name) => {
      const reads = coordinates(n, nNew, name);
      const off = Math.max(...reads.map((s, i) => Math.abs(s - own[i])));
      const clamped = reads.filter((s) => outside(s, n)).length;
      const figure = this.querySelector(`.${name}`);
      figure.querySelector("span").textContent =
        `step ${nNew > 1 ? short(reads[1] - reads[0]) : "none"} · off by ${short(off)} · ${clamped} clamped`;
      const svg = figure.querySelector("svg");
      svg.innerHTML = picture(n, nNew, reads, cell);
      svg.setAttribute("aria-label", `${n} old cells above ${nNew} new ones, and a line from each new cell to where it reads: ${reads.map((s) => short(s)).join(", ")}.`);
      return `${mix(reads[cell], n)} (${name}, at ${short(reads[cell])})`;
    });
    this.querySelector("[role=status]").textContent = `New cell ${cell} is ${says[0]}; ${says[1]}; ${says[2]}.`;
  }
}

/** What a read at `place` adds up to, in words. */
export function mix(place, n) {
  const s = clamp(place, n);
  const [low, t] = [Math.floor(s), s % 1];
  if (t < 5e-4 || t > 1 - 5e-4) return `old cell ${Math.round(s)}`;
  return `${fixed(1 - t, 2)} of cell ${low} + ${fixed(t, 2)} of cell ${low + 1}`;
}

/** Both rows over one image, so that a line is upright where a new cell reads at its own place. */
function picture(n, nNew, reads, chosen) {
  const share = (x) => `${(100 * x).toFixed(3)}%`;
  const row = (count, y) =>
    Array.from({ length: count }, (_, i) => {
      const loud = y > 50 && i === chosen ? ' class="chosen"' : "";
      return `<rect x="${share(i / count)}" y="${y}" width="${share(1 / count)}" height="22"${loud}/>
        <text x="${share((i + 0.5) / count)}" y="${y + 15}"${loud}>${i}</text>`;
    }).join("");
  const lines = reads.map((s, i) => {
    const [from, to] = [share((i + 0.5) / nNew), share(Math.min((s + 0.5) / n, 1))];
    const kind = `${outside(s, n) ? "outside" : ""} ${i === chosen ? "chosen" : ""}`;
    return `<g class="${kind}"><line x1="${from}" y1="78" x2="${to}" y2="27"/><circle cx="${to}" cy="27" r="3.5"/></g>`;
  });
  return `${row(n, 1)}${row(nNew, 79)}${lines.join("")}`;
}

define("half-pixel", HalfPixel);
