// <rope-score>: a query and a key on a grid; their rotary score depends on the offset between them alone.

import { PatchGrid, choice, define, fixed, showValue, slider } from "./figure.js";

// d_h = 8: four pairs. Contents are complex numbers, one for each pair: real and imaginary part
const SAME = [[1, 0], [1, 0], [1, 0], [1, 0]];
export const CONTENTS = {
  same: { name: "the same", query: SAME, key: SAME },
  other: {
    name: "different",
    query: [[0.9, -0.4], [0.3, 1.1], [-0.7, 0.6], [1.2, 0.2]],
    key: [[0.2, 1], [-0.8, 0.5], [0.6, 0.9], [-0.3, -1.1]],
  },
};

/**
 * The angle of each pair at a place: of axial RoPE with base 100, or mixed RoPE as it starts, with base 10, half of
 * the pairs along a direction and half across it.
 */
export function angles(form, [r, c], degrees) {
  const base = form === "axial" ? 100 : 10;
  const a = form === "axial" ? 0 : (degrees * Math.PI) / 180;
  const along = Math.cos(a) * c + Math.sin(a) * r;
  const across = Math.cos(a) * r - Math.sin(a) * c;
  return [along, across].flatMap((place) => [place, place * base ** -0.5]);
}

/** What each pair adds to the score of a query and a key that are turned by their angles. */
export function parts({ query, key }, queryAngles, keyAngles) {
  return query.map(([a, b], j) => {
    const [x, y] = key[j];
    const turn = queryAngles[j] - keyAngles[j];
    return (a * x + b * y) * Math.cos(turn) + (a * y - b * x) * Math.sin(turn);
  });
}

const ROWS = 8;
const COLUMNS = 12;
const count = (n, one) => `${Math.abs(n)} ${one}${Math.abs(n) === 1 ? "" : "s"}`;

const STYLE = `
  rope-score .lined { background: linear-gradient(to right, var(--line) 1px, transparent 1px) 0 0 / calc(100% / 12) 100%, linear-gradient(var(--line) 1px, transparent 1px) 0 0 / 100% calc(100% / 8), var(--paper); border: solid var(--line); border-width: 0 1px 1px 0; }
  rope-score .picture line { stroke: var(--muted); stroke-width: 2; vector-effect: non-scaling-stroke; }
  rope-score .marker { display: grid; place-items: center; width: 1.9rem; height: 1.9rem; border: 0; border-radius: 50%; outline: 0; color: var(--paper); font: 600 1.05rem/1 var(--sans); }
  rope-score .marker:focus-visible { outline: 3px solid var(--ink); }
  rope-score .marker:is(.query, .key) { z-index: 1; }
  rope-score .query { --hue: var(--figure-1); }
  rope-score .key { --hue: var(--figure-2); }
  rope-score .marker:is(.query, .key) { background: var(--hue); }
  rope-score .marker.both { width: 1.3rem; height: 1.3rem; background: var(--paper); border: 3px solid var(--muted); }
  rope-score .dials { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: .6rem; margin-top: 1rem; text-align: center; }
  rope-score .dials svg { width: min(100%, 7.5rem); fill: none; }
  rope-score .dials svg > circle { stroke: var(--line); stroke-width: .03; }
  rope-score .dials line { stroke: var(--hue); stroke-width: .08; stroke-linecap: round; }
  rope-score .dials g circle { fill: var(--hue); }
  rope-score .dials figcaption { margin-top: .2rem; font-size: .85rem; line-height: 1.3; font-variant-numeric: tabular-nums; }`;

class RopeScore extends HTMLElement {
  build() {
    this.innerHTML = `
      <style>${STYLE}</style>
      <div class="widget-split">
        <div class="side-a picture lined"><svg preserveAspectRatio="none" viewBox="0 0 ${COLUMNS} ${ROWS}" aria-hidden="true"><line/></svg><div class="map"></div></div>
        <div class="side-b">
          <div class="widget-controls">
            ${choice("form", "RoPE", ["axial", "mixed"], this.getAttribute("form") ?? "axial")}
            ${choice("content", "Contents", Object.entries(CONTENTS).map(([key, { name }]) => [key, name]), "other")}
            ${slider("degrees", "Direction", 0, 90, 30)}
          </div>
        </div>
        <div class="dials"></div>
        <dl class="widget-numbers">
          <div><dt>Key minus query</dt><dd class="offset"></dd></div>
          <div><dt>Score</dt><dd class="score"></dd></div>
        </dl>
        <p class="widget-say" role="status"></p>
      </div>`;
    this.fields = Object.fromEntries(["form", "content", "degrees"].map((name) => [name, this.querySelector(`.${name}`)]));
    for (const field of Object.values(this.fields)) field.addEventListener("input", () => this.draw());
    this.query = [2, 3];
    this.key = [5, 1];
    const markers = { query: "Query", key: "Key", both: "Query and key together" };
    this.grid = new PatchGrid(this.querySelector(".map"), markers, (...asked) => this.ask(...asked));
    this.grid.markers.query.textContent = "q";
    this.grid.markers.key.textContent = "k";
    this.grid.resize(ROWS, COLUMNS);
    this.draw();
    this.dataset.ready = "";
  }

  ask(name, r, c) {
    const before = [this.query, this.key];
    if (name === "both") {
      const [row, column] = this.grid.markers.both.at;
      const shift = [Math.round(r - row), Math.round(c - column)];
      const moved = before.map((place) => place.map((x, i) => x + shift[i]));
      if (moved.some(([r, c]) => r < 0 || c < 0 || r >= ROWS || c >= COLUMNS)) return;
      [this.query, this.key] = moved;
    } else {
      this[name] = [r, c];
    }
    if (String(before) !== String([this.query, this.key])) this.draw(name);
  }

  draw(moved) {
    const { form, content, degrees } = this.fields;
    degrees.disabled = form.value === "axial";
    showValue(degrees, `${degrees.disabled ? 0 : degrees.value}°`);
    const [query, key] = [this.query, this.key].map((place) => angles(form.value, place, Number(degrees.value)));
    const contents = CONTENTS[content.value];
    const each = parts(contents, query, key);
    const score = each.reduce((sum, x) => sum + x, 0);
    const [down, right] = this.key.map((x, i) => x - this.query[i]);

    const { grid } = this;
    grid.place("query", ...this.query);
    grid.place("key", ...this.key);
    const text = `query at row ${this.query[0]}, column ${this.query[1]}; key at row ${this.key[0]}, column ${this.key[1]}`;
    grid.place("both", ...this.query.map((x, i) => (x + this.key[i]) / 2), text);
    const ends = { x1: this.query[1], y1: this.query[0], x2: this.key[1], y2: this.key[0] };
    for (const [name, value] of Object.entries(ends)) this.querySelector("line").setAttribute(name, value + 0.5);

    this.querySelector(".offset").textContent = `(${fixed(down, 0)}, ${fixed(right, 0)})`;
    const sum = each.map((x, j) => (j ? ` ${x < 0 ? "−" : "+"} ${fixed(Math.abs(x))}` : fixed(x))).join("");
    this.querySelector(".score").textContent = `${sum} = ${fixed(score)}`;
    this.querySelector(".dials").innerHTML = each
      .map((part, j) => {
        const hands = `${hand("query", contents.query[j], query[j])}${hand("key", contents.key[j], key[j])}`;
        return `<figure><svg viewBox="-1.3 -1.3 2.6 2.6" aria-hidden="true"><circle r="1"/>${hands}</svg>
          <figcaption>pair ${j}<br>turns differ by ${fixed(query[j] - key[j], 2)}<br>adds ${fixed(part, 3)}</figcaption></figure>`;
      })
      .join("");
    const where = [down && `${count(down, "row")} ${down > 0 ? "down" : "up"}`, right && `${count(right, "column")} to the ${right > 0 ? "right" : "left"}`];
    const lies = down || right ? `The key lies ${where.filter(Boolean).join(" and ")}` : "The key lies on the query";
    const said = {
      both: `Both moved: every hand turned, no angle between two hands changed, and the score is still ${fixed(score)}.`,
      query: `The query moved: another offset, another score, ${fixed(score)}.`,
      key: `The key moved: another offset, another score, ${fixed(score)}.`,
    };
    this.querySelector("[role=status]").textContent = `${lies}. ${said[moved] ?? `The score is ${fixed(score)}, the sum of what the four pairs add.`}`;
  }
}

/** A pair (a, b), turned by its angle, as an arrow. */
function hand(name, [a, b], angle) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const [x, y] = [a * cos - b * sin, -(a * sin + b * cos)].map((z) => z.toFixed(3));
  return `<g class="${name}"><line x2="${x}" y2="${y}"/><circle cx="${x}" cy="${y}" r=".1"/></g>`;
}

define("rope-score", RopeScore);
