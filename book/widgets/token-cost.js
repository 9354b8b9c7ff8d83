// <token-cost>: how many tokens an image makes, and what they cost, by image size and patch side.

import { choice, define, fixed, short, showValue, slider } from "./figure.js";

// Blocks, width, heads; the MLP is four times as wide
const SIZES = { Ti: [12, 192, 3], S: [12, 384, 6], B: [12, 768, 12], L: [24, 1024, 16], H: [32, 1280, 16] };
const [HIGH, WIDE] = [520, 640];

/** Rows and columns of patches: whole ones only, or enough to hold every pixel. */
export const patchGrid = (H, W, P, mode) => [H, W].map((side) => (mode === "pad" ? Math.ceil(side / P) : Math.floor(side / P)));

/** Multiplications of L blocks of width d on T tokens: each token alone, and each with each. */
export const work = (T, d, L) => ({ alone: 12 * L * T * d ** 2, pairs: 2 * L * T ** 2 * d });

/** Bytes of the attention scores of L layers with h heads, two bytes a score. */
export const scoreBytes = (T, h, L) => 2 * L * h * T ** 2;

const digits = (x) => short(x, x < 10 ? 2 : x < 100 ? 1 : 0);

/** A large number: three digits and one of the names of a million, a thousand million, ... */
function large(x, [million, ...more]) {
  let [value, name] = [x / 1e6, million];
  while (value >= 1000 && more.length) [value, name] = [value / 1000, more.shift()];
  return `${digits(value)} ${name}`;
}

const STYLE = `
  token-cost svg { display: block; width: 100%; overflow: visible; }
  token-cost :is(.one, .two)::before { content: ""; display: inline-block; width: .7em; height: .7em; margin-right: .4em; border-radius: 2px; background: var(--figure-1); }
  token-cost .two::before { background: var(--figure-2); }
  token-cost .image { fill: var(--accent-soft); }
  token-cost .left { fill: url(#token-cost-hatch); }
  token-cost pattern line { stroke: var(--figure-2); stroke-width: 6; opacity: .7; }
  token-cost .cuts { stroke: var(--figure-1); fill: none; }
  token-cost .edge { stroke: var(--ink); stroke-width: 2.5; fill: none; }
  token-cost .corner { fill: var(--accent); stroke: var(--paper); stroke-width: 4; cursor: nwse-resize; touch-action: none; }
  token-cost .shares { display: flex; height: .7rem; margin-top: .8rem; border-radius: .2rem; overflow: hidden; background: var(--figure-1); }
  token-cost .shares i { flex: 1; }
  token-cost .shares b { background: var(--figure-2); }`;

class TokenCost extends HTMLElement {
  build() {
    const start = (name, otherwise) => this.getAttribute(name) ?? otherwise;
    this.innerHTML = `
      <style>${STYLE}</style>
      <div class="widget-split">
        <div class="side-a"><svg viewBox="0 0 ${WIDE} ${HIGH}" role="img"></svg></div>
        <div class="side-b">
          <div class="widget-controls">
            ${slider("height", "Height", 32, HIGH, start("height", 384))}
            ${slider("width", "Width", 32, WIDE, start("width", 512))}
            ${slider("side", "Patch side P", 4, 32, start("side", 14))}
            ${choice("mode", "Left over", [["crop", "cropped"], ["pad", "padded"]], start("mode", "crop"))}
            ${choice("prefix", "Prefix tokens", [0, 1, 5, 9], start("prefix", 1))}
            ${choice("size", "Model", Object.keys(SIZES), start("size", "B"))}
          </div>
        </div>
      <dl class="widget-numbers">
        <div><dt>Tokens</dt><dd class="tokens"></dd></div>
        <div><dt class="one">Tokens alone, 12 <i>L T d</i>²</dt><dd class="alone"></dd></div>
        <div><dt class="two">In pairs, 2 <i>L T</i>² <i>d</i></dt><dd class="pairs"></dd></div>
        <div><dt>Memory of scores</dt><dd class="memory"></dd></div>
      </dl>
      <div class="shares" aria-hidden="true"><i></i><b></b></div>
      <p class="widget-say" role="status"></p>
      </div>`;
    const names = ["height", "width", "side", "mode", "prefix", "size"];
    this.fields = Object.fromEntries(names.map((name) => [name, this.querySelector(`.${name}`)]));
    for (const field of Object.values(this.fields)) field.addEventListener("input", () => this.draw());
    this.svg = this.querySelector("svg");
    this.svg.addEventListener("pointerdown", (event) => {
      if (!event.target.closest(".corner")) return;
      event.preventDefault();
      this.svg.setPointerCapture(event.pointerId);
      this.dragged = true;
    });
    this.svg.addEventListener("pointermove", (event) => this.dragged && this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) this.svg.addEventListener(end, () => (this.dragged = false));
    this.draw();
    this.dataset.ready = "";
  }

  /** The corner of the picture follows the pointer. */
  drag({ clientX, clientY }) {
    const { left, top, width } = this.svg.getBoundingClientRect();
    this.fields.width.value = ((clientX - left) / width) * WIDE;
    this.fields.height.value = ((clientY - top) / width) * WIDE;
    this.draw();
  }

  draw() {
    const [H, W, P, prefix] = ["height", "width", "side", "prefix"].map((name) => Number(this.fields[name].value));
    for (const name of ["height", "width", "side"]) showValue(this.fields[name], `${this.fields[name].value} pixels`);
    const mode = this.fields.mode.value;
    const [L, d, h] = SIZES[this.fields.size.value];
    const [rows, columns] = patchGrid(H, W, P, mode);
    const T = rows * columns + prefix;
    const { alone, pairs } = work(T, d, L);
    const share = pairs / (alone + pairs);

    const say = (selector, text) => (this.querySelector(selector).textContent = text);
    say(".tokens", `${rows} × ${columns} + ${prefix} = ${T.toLocaleString("en")}`);
    say(".alone", large(alone, ["million", "billion", "trillion"]));
    say(".pairs", large(pairs, ["million", "billion", "trillion"]));
    say(".memory", large(scoreBytes(T, h, L), ["MB", "GB", "TB"]));
    this.querySelector(".shares b").style.width = `${100 * share}%`;
    this.svg.innerHTML = picture(H, W, P, rows, columns);
    this.svg.setAttribute("aria-label", `An image of ${H} by ${W} pixels under ${rows} by ${columns} patches of side ${P}.`);

    const covered = [rows * P, columns * P];
    const lost = 1 - (Math.min(covered[0], H) * Math.min(covered[1], W)) / (H * W);
    const empty = 1 - (H * W) / (Math.max(covered[0], H) * Math.max(covered[1], W));
    const leftOver =
      lost > 0 ? `${H - covered[0]} rows and ${W - covered[1]} columns of pixels, ${fixed(100 * lost, 1)}%, are never read.`
      : empty > 0 ? `${covered[0] - H} rows and ${covered[1] - W} columns, ${fixed(100 * empty, 1)}% of what is read, are empty.`
      : "Every pixel is read.";
    const times = T ** 2 / 197 ** 2;
    say("[role=status]",
      `${T.toLocaleString("en")} tokens: ${digits(times)} times the scores of 224 × 224 at P = 16. ` +
      `Attention between tokens is ${fixed(100 * share, 0)}% of the work. ${leftOver}`);
  }
}

/** The image in ink, its patches as lines, what is cropped or padded hatched, and a corner to drag. */
function picture(H, W, P, rows, columns) {
  const [h, w] = [rows * P, columns * P];
  const lines = Array.from({ length: columns + 1 }, (_, c) => `M${c * P} 0v${h}`).join("") + Array.from({ length: rows + 1 }, (_, r) => `M0 ${r * P}h${w}`).join("");
  return `<defs><pattern id="token-cost-hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line y2="8"/></pattern></defs>
    <rect class="image" width="${W}" height="${H}"/>
    <path class="left" fill-rule="evenodd" d="M0 0H${Math.max(W, w)}V${Math.max(H, h)}H0ZM0 0H${Math.min(W, w)}V${Math.min(H, h)}H0Z"/>
    <path class="cuts" stroke-width="${Math.min(1.5, P / 8)}" d="${lines}"/>
    <rect class="edge" width="${W}" height="${H}"/>
    <circle class="corner" cx="${W}" cy="${H}" r="14"/>`;
}

define("token-cost", TokenCost);
