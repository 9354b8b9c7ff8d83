// <half-pixel>: which old cells each new cell reads, in the three conventions for resizing a grid.

export const CONVENTIONS = ["half-pixel", "corner-aligned", "asymmetric"];

/**
 * The old coordinates that the new cells of one axis read, before clamping.
 *
 * @param {number} n - old cells
 * @param {number} nNew - new cells
 * @param {string} convention - one of CONVENTIONS
 * @returns {number[]} of length nNew
 */
export function coordinates(n, nNew, convention) {
  const read = {
    "half-pixel": (i) => ((i + 0.5) * n) / nNew - 0.5,
    "corner-aligned": (i) => (nNew === 1 ? 0 : (i * (n - 1)) / (nNew - 1)),
    asymmetric: (i) => (i * n) / nNew,
  }[convention];
  return Array.from({ length: nNew }, (_, i) => read(i));
}

/** The coordinate moved to the nearer end where it is outside [0, n - 1]. */
export const clamp = (s, n) => Math.min(Math.max(s, 0), n - 1);

const MOST = 24;
const WIDTH = 640;
const short = (x) => (Math.round(x * 1e3) / 1e3 + 0).toString().replace("-", "−");
const STYLE = `
  half-pixel svg { display: block; width: 100%; height: auto; font-family: var(--sans); }
  half-pixel select { padding: .3rem .5rem; font: inherit; color: inherit; background: var(--paper);
    border: 1px solid var(--muted); border-radius: .3rem; }
  half-pixel .reads { min-height: 3.2em; margin: .8rem 0 0; font-family: var(--sans); font-variant-numeric: tabular-nums; }`;

class HalfPixel extends HTMLElement {
  connectedCallback() {
    const start = (name, otherwise) => this.getAttribute(name) ?? otherwise;
    const slider = (name, text, value) =>
      `<label>${text} <input class="${name}" type="range" min="1" max="${MOST}" step="1" value="${value}"><output></output></label>`;
    this.innerHTML = `
      <style>${STYLE}</style>
      <svg viewBox="0 0 ${WIDTH} 170" role="img"></svg>
      <div class="widget-controls">
        ${slider("old", "Old cells", start("old", 4))}
        ${slider("new", "New cells", start("new", 7))}
        <label>Convention <select>${CONVENTIONS.map((name) => `<option>${name}</option>`).join("")}</select></label>
      </div>
      <dl class="widget-numbers">
        <div><dt>Step between reads</dt><dd class="step"></dd></div>
        <div><dt>Farthest from its own place</dt><dd class="off"></dd></div>
        <div><dt>Clamped</dt><dd class="clamped"></dd></div>
      </dl>
      <p class="reads" role="status"></p>`;
    this.old = this.querySelector(".old");
    this.new = this.querySelector(".new");
    this.convention = this.querySelector("select");
    this.convention.value = start("convention", CONVENTIONS[0]);
    for (const field of [this.old, this.new, this.convention]) field.addEventListener("input", () => this.draw());
    this.draw();
    this.dataset.ready = "";
  }

  draw() {
    const [n, nNew, convention] = [Number(this.old.value), Number(this.new.value), this.convention.value];
    for (const field of [this.old, this.new]) {
      field.nextElementSibling.textContent = field.value;
      field.setAttribute("aria-valuetext", `${field.value} cells`);
    }
    const reads = coordinates(n, nNew, convention);
    const own = coordinates(n, nNew, "half-pixel");
    const off = Math.max(...reads.map((s, i) => Math.abs(s - own[i])));
    const clamped = reads.filter((s) => Math.abs(clamp(s, n) - s) > 1e-9).length;
    const say = (selector, text) => (this.querySelector(selector).textContent = text);
    say(".step", nNew > 1 ? `${short(reads[1] - reads[0])} old cells` : "none");
    say(".off", `${short(off)} old cells`);
    say(".clamped", `${clamped} of ${nNew}`);
    say(".reads", `The new cells read ${reads.map((s) => short(s)).join(", ")}.`);
    const svg = this.querySelector("svg");
    svg.innerHTML = picture(n, nNew, reads);
    svg.setAttribute("aria-label", `${n} old cells above ${nNew} new ones, and a line from each new cell to where it reads, ${convention}.`);
  }
}

/** Both rows over one image, so that a line is upright where a new cell reads at its own place. */
function picture(n, nNew, reads) {
  const [left, right] = [40, WIDTH - 40];
  const place = (share) => left + share * (right - left);
  const row = (count, y) =>
    Array.from({ length: count }, (_, i) => {
      const x = place((i + 0.5) / count);
      return `<rect x="${place(i / count).toFixed(2)}" y="${y}" width="${((right - left) / count).toFixed(2)}" height="34" fill="none" stroke="var(--muted)"/>
        <text x="${x.toFixed(2)}" y="${y + 22}" text-anchor="middle" font-size="13" fill="var(--ink)">${i}</text>`;
    }).join("");
  const lines = reads.map((s, i) => {
    const [from, to] = [place((i + 0.5) / nNew), place((s + 0.5) / n)];
    const color = Math.abs(clamp(s, n) - s) > 1e-9 ? "var(--figure-2)" : "var(--figure-1)";
    return `<line x1="${from.toFixed(2)}" y1="120" x2="${to.toFixed(2)}" y2="56" stroke="${color}" stroke-width="1.5"/>
      <circle cx="${to.toFixed(2)}" cy="56" r="4" fill="${color}"/>`;
  });
  return `${row(n, 12)}${row(nNew, 122)}${lines.join("")}`;
}

customElements.define("half-pixel", HalfPixel);
