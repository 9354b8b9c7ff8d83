// <frequency-inspector>: positions as clock hands, one pair of sine and cosine for each frequency.

import { define } from "./figure.js";

/**
 * Sine-cosine vectors: entries 2k and 2k + 1 are the sine and the cosine of p * base ** (-2k / d).
 *
 * @param {ArrayLike<number>} positions
 * @param {number} d - width of a vector, even
 * @param {number} base
 * @returns {Float64Array[]} one vector of length d for each position
 * @throws {RangeError} with a sentence for the reader
 */
export function sincos1d(positions, d, base) {
  if (!Number.isInteger(d) || d < 2 || d % 2) throw new RangeError("The width d must be an even number, 2 or more.");
  if (!(base > 0 && base < Infinity)) throw new RangeError("The base must be a positive number.");
  return Array.from(positions, (p) => {
    const vector = new Float64Array(d);
    for (let i = 0; i < d; i += 2) {
      const angle = p * frequency(i / 2, d, base);
      vector[i] = Math.sin(angle);
      vector[i + 1] = Math.cos(angle);
    }
    return vector;
  });
}

/** Radians for each step by which pair k turns. */
export function frequency(k, d, base) {
  return base ** ((-2 * k) / d);
}

/** Inner product, distance and angle of two vectors of equal length. */
export function compare(one, other) {
  const product = one.reduce((sum, x, i) => sum + x * other[i], 0);
  // The angle from |u - v| and |u + v|, which keeps its digits where an arc cosine loses them.
  const distance = Math.hypot(...one.map((x, i) => x - other[i]));
  const angle = 2 * Math.atan2(distance, Math.hypot(...one.map((x, i) => x + other[i])));
  return { product, distance, angle };
}

const MOST_POSITIONS = 6; // as many as there are colours for hands
const WIDEST = 256;

/** The numbers in a text such as "0, 1 2.5", at most six. */
export function parsePositions(text) {
  const parts = text.replaceAll("−", "-").split(/[\s,;]+/).filter(Boolean);
  const positions = parts.map(Number);
  if (!parts.length || positions.some((p) => !Number.isFinite(p))) {
    throw new RangeError("Type positions as numbers with commas between them, such as 0, 1, 2.");
  }
  if (positions.length > MOST_POSITIONS) throw new RangeError(`At most ${MOST_POSITIONS} positions, please.`);
  return positions;
}

const short = (x) => x.toLocaleString("en", { maximumSignificantDigits: 6 }).replace("-", "−");
const fixed = (x) => (Math.round(x * 1e6) / 1e6 + 0).toFixed(6).replace("-", "−");
const STYLE = `
  frequency-inspector .inspector-table { max-height: 30rem; overflow: auto; margin: 1rem 0 0; }
  frequency-inspector table { width: 100%; margin: 0; white-space: nowrap; }
  frequency-inspector thead th { position: sticky; top: 0; background: var(--raised); }
  frequency-inspector tbody th { border-bottom: 1px solid var(--line); font-weight: 600; }
  frequency-inspector small { font-weight: 400; color: var(--muted); }
  frequency-inspector svg { display: block; width: 4rem; height: 4rem; }
  frequency-inspector .swatch { display: inline-block; width: .8em; height: .8em; margin-right: .35em; border-radius: 50%; }
  frequency-inspector .widget-controls { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); gap: .4rem 1.6rem; }
  frequency-inspector .widget-controls label { display: grid; grid-template-columns: 5.7rem minmax(0, 1fr) auto; }
  frequency-inspector .widget-controls input:not([type="range"]) { grid-column: 2 / -1; width: 100%; min-width: 0; padding: .3rem .5rem;
    font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--muted); border-radius: .3rem; }
  frequency-inspector [aria-invalid="true"] { outline: 2px solid var(--warm); }
  frequency-inspector .inspector-message { min-height: 1.6em; margin: .6rem 0 0; font-family: var(--sans); }`;

class FrequencyInspector extends HTMLElement {
  build() {
    const start = (name, otherwise) => this.getAttribute(name) ?? otherwise;
    this.innerHTML = `
      <style>${STYLE}</style>
      <div class="widget-controls">
        <label>Positions <input class="positions" type="text" autocomplete="off" aria-describedby="inspector-message"></label>
        <label>Width d <input class="width" type="number" min="2" max="${WIDEST}" step="2" aria-describedby="inspector-message"></label>
        <label>Base <input class="base" type="number" min="1" step="any" aria-describedby="inspector-message"></label>
        <label>Move all by <input class="shift" type="range" min="0" max="50" step="1" value="0"><output class="shifted"></output></label>
      </div>
      <p class="inspector-message" id="inspector-message" role="status"></p>
      <dl class="widget-numbers"></dl>
      <div class="inspector-table" tabindex="0" role="region" aria-label="The pairs, one a row"><table></table></div>`;
    this.fields = Object.fromEntries(["positions", "width", "base", "shift"].map((name) => [name, this.querySelector(`.${name}`)]));
    this.fields.positions.value = start("positions", "0,1,2").replaceAll(",", ", ");
    this.fields.width.value = start("d", "4");
    this.fields.base.value = start("base", "10000");
    for (const field of Object.values(this.fields)) field.addEventListener("input", () => this.draw());
    this.draw();
    this.dataset.ready = "";
  }

  /** What the fields say: the moved positions, d and base. Throws where they make no sense. */
  read() {
    const { positions, width, base, shift } = this.fields;
    const read = (field, value) => {
      try {
        field.setAttribute("aria-invalid", "false");
        return value();
      } catch (error) {
        field.setAttribute("aria-invalid", "true");
        throw error;
      }
    };
    const d = read(width, () => {
      const d = Number(width.value);
      sincos1d([], d, 1);
      if (d > WIDEST) throw new RangeError(`The inspector shows widths up to ${WIDEST}.`);
      return d;
    });
    const b = read(base, () => (sincos1d([], 2, Number(base.value)), Number(base.value)));
    const moved = read(positions, () => parsePositions(positions.value)).map((p) => p + Number(shift.value));
    return { positions: moved, d, base: b };
  }

  draw() {
    const message = this.querySelector(".inspector-message");
    let seen;
    try {
      seen = this.read();
    } catch (error) {
      message.textContent = error.message;
      return;
    }
    const { positions, d, base } = seen;
    const vectors = sincos1d(positions, d, base);
    const shift = Number(this.fields.shift.value);
    this.querySelector(".shifted").textContent = `${shift} ${shift === 1 ? "step" : "steps"}`;
    this.fields.shift.setAttribute("aria-valuetext", this.querySelector(".shifted").textContent);
    message.textContent = `${d / 2} ${d === 2 ? "pair" : "pairs"} at ${positions.length === 1 ? "position" : "positions"} ${positions.map(short).join(", ")}.`;
    this.querySelector("dl").innerHTML = numbers(positions, vectors);
    this.querySelector("table").innerHTML = table(positions, vectors, d, base);
  }
}

/** What the first two vectors have to do with each other, or the length of the only one. */
function numbers(positions, vectors) {
  const entry = (name, value) => `<div><dt>${name}</dt><dd>${value}</dd></div>`;
  if (vectors.length === 1) return entry("Length", fixed(Math.hypot(...vectors[0])));
  const { product, distance, angle } = compare(vectors[0], vectors[1]);
  const both = `of ${short(positions[0])} and ${short(positions[1])}`;
  return entry(`Inner product ${both}`, fixed(product)) + entry("Distance", fixed(distance)) + entry("Angle in radians", fixed(angle));
}

function table(positions, vectors, d, base) {
  const heads = positions.map(
    (p, i) => `<th scope="col"><span class="swatch" style="background:${color(i)}"></span>p = ${short(p)}</th>`,
  );
  let rows = "";
  for (let k = 0; k < d / 2; k++) {
    const omega = frequency(k, d, base);
    const values = vectors.map((vector) => `<td>sin ${fixed(vector[2 * k])}<br>cos ${fixed(vector[2 * k + 1])}</td>`);
    rows += `<tr><th scope="row">${k}<br><small>entries ${2 * k}, ${2 * k + 1}</small></th><td>${clock(vectors, k)}</td>
      <td>${short(omega)} ${omega === 1 ? "radian" : "radians"} a step<br>${short((2 * Math.PI) / omega)} steps a turn</td>${values.join("")}</tr>`;
  }
  return `<thead><tr><th scope="col">Pair</th><th scope="col">Hands</th><th scope="col">Speed</th>${heads.join("")}</tr></thead>
    <tbody>${rows}</tbody>`;
}

/** A dial: each position's hand starts at twelve and turns clockwise, its tip at (sine, cosine). */
function clock(vectors, k) {
  const hands = vectors.map((vector, i) => {
    const [x, y] = [vector[2 * k], -vector[2 * k + 1]].map((z) => z.toFixed(3));
    // Later hands are shorter, so that hands in one place are all seen
    return `<line x2="${(x * (1 - 0.1 * i)).toFixed(3)}" y2="${(y * (1 - 0.1 * i)).toFixed(3)}" stroke="${color(i)}" stroke-width=".09" stroke-linecap="round"/>
      <circle cx="${x}" cy="${y}" r=".1" fill="${color(i)}"/>`;
  });
  return `<svg viewBox="-1.2 -1.2 2.4 2.4" aria-hidden="true"><circle r="1" fill="none" stroke="var(--muted)" stroke-width=".03"/>${hands.join("")}</svg>`;
}

function color(i) {
  return `var(--figure-${i + 1})`;
}

define("frequency-inspector", FrequencyInspector);
