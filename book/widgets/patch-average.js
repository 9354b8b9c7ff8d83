// <patch-average>: a picture cut into patches, and the same patches as average colours or in another order.

import { PatchGrid, choice, define, showValue, slider } from "./figure.js";

/**
 * The average colour of each whole patch, in raster order.
 *
 * @param {ArrayLike<number>} data - RGBA values, row by row (an ImageData's `data`)
 * @param {number} width
 * @param {number} height
 * @param {number} P - side of a patch; pixels beyond the last whole patch are left out
 * @returns {Float64Array} of length floor(height / P) * floor(width / P) * 3
 */
export function averagePatches(data, width, height, P) {
  const rows = Math.floor(height / P);
  const columns = Math.floor(width / P);
  const averages = new Float64Array(rows * columns * 3);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const sum = [0, 0, 0];
      for (let u = 0; u < P; u++) {
        for (let v = 0; v < P; v++) {
          const pixel = ((r * P + u) * width + c * P + v) * 4;
          for (let channel = 0; channel < 3; channel++) sum[channel] += data[pixel + channel];
        }
      }
      for (let channel = 0; channel < 3; channel++) {
        averages[(r * columns + c) * 3 + channel] = sum[channel] / (P * P);
      }
    }
  }
  return averages;
}

const PAVILION = new URL("pavilion.webp", import.meta.url);
const LONGEST = 224;

/** Numbers 0 to n - 1 in an order that looks random and is always the same. */
export function shuffled(n) {
  const order = Array.from({ length: n }, (_, i) => i);
  let state = 1;
  for (let i = n - 1; i > 0; i--) {
    state = (state * 48271) % 2147483647; // Lehmer's generator, as in C++'s minstd_rand
    const k = state % (i + 1);
    [order[i], order[k]] = [order[k], order[i]];
  }
  return order;
}

class PatchAverage extends HTMLElement {
  async build() {
    const start = (name, otherwise) => this.getAttribute(name) ?? otherwise;
    this.innerHTML = `
      <div class="widget-row">
        <figure><div class="stage"><div class="picture"><canvas class="whole" role="img"></canvas><div class="map"></div></div></div><figcaption>The picture, cut into patches</figcaption></figure>
        <figure><div class="stage"><div class="picture"><canvas class="averages" role="img"></canvas><div class="marker twin"></div></div></div><figcaption class="what"></figcaption></figure>
      </div>
      <div class="widget-controls">
        ${slider("side", "Patch side", 1, 112, start("start", 16))}
        ${choice("show", "On the right", [["average", "average colours"], ["shuffled", "another order"]], start("show"))}
      </div>
      <dl class="widget-numbers">
        <div><dt>Tokens</dt><dd class="tokens"></dd></div>
        <div><dt>Numbers in a patch</dt><dd class="numbers"></dd></div>
        <div><dt>Pixels left out</dt><dd class="dropped"></dd></div>
      </dl>
      <p class="widget-say" role="status"></p>
      <p class="widget-own"><label class="file-button">Use a picture of your own <input type="file" accept="image/*"></label>
        <button type="button" class="link-button" hidden>Back to the photograph</button>
        <span>or drop one here. It stays on this machine.</span></p>
      <p class="widget-credit">Photograph: <a href="https://www.flickr.com/photos/danielbuechele/6061409035">danielbuechele</a>,
        <a href="https://creativecommons.org/licenses/by/2.0/">CC BY 2.0</a>, cropped.</p>`;
    this.whole = this.querySelector(".whole");
    this.averages = this.querySelector(".averages");
    this.slider = this.querySelector(".side");
    this.side = this.slider.value; // as the reader set it
    this.show = this.querySelector(".show");
    this.back = this.querySelector("button");
    this.at = [Number(start("row", 4)), Number(start("column", 6))];
    this.grid = new PatchGrid(this.querySelector(".map"), { patch: "Patch" }, (_, ...at) => {
      this.at = at;
      this.draw();
    });
    this.slider.addEventListener("input", () => (this.side = this.slider.value));
    for (const field of [this.slider, this.show]) field.addEventListener("input", () => this.draw());
    this.receive();
    const pavilion = new Image();
    pavilion.src = PAVILION;
    await pavilion.decode();
    const original = () => this.use(pavilion, "a pavilion beside a lake", false);
    this.back.addEventListener("click", () => {
      original();
      this.querySelector("[type=file]").focus();
    });
    original();
    this.dataset.ready = "";
  }

  /** Take a picture from the file button, or one that is dropped; it is read here and goes nowhere. */
  receive() {
    const file = this.querySelector("[type=file]");
    file.addEventListener("change", () => {
      if (file.files.length) this.open(file.files[0]);
      file.value = ""; // it may come again
    });
    this.addEventListener("dragover", (event) => event.preventDefault());
    this.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files.length) this.open(event.dataTransfer.files[0]);
    });
  }

  async open(file) {
    try {
      this.use(await createImageBitmap(file), "your picture", true);
    } catch {
      this.querySelector("[role=status]").textContent = `This browser cannot read ${file.name} as a picture.`;
    }
  }

  /** Show a picture, reduced to 224 pixels along its longer side. */
  use(picture, what, own) {
    const scale = LONGEST / Math.max(picture.width, picture.height);
    const [width, height] = [picture.width, picture.height].map((side) => Math.max(1, Math.round(side * scale)));
    for (const canvas of [this.whole, this.averages]) Object.assign(canvas, { width, height });
    const context = this.averages.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.drawImage(picture, 0, 0, width, height);
    this.data = context.getImageData(0, 0, width, height).data;
    this.picture = document.createElement("canvas");
    Object.assign(this.picture, { width, height }).getContext("2d").drawImage(this.averages, 0, 0);
    this.averages.parentElement.style.setProperty("--ratio", width / height);
    this.what = what;
    this.back.hidden = !own;
    this.slider.max = Math.min(width, height, 112);
    this.slider.value = this.side;
    this.querySelector(".widget-credit").style.visibility = own ? "hidden" : "";
    this.draw();
  }

  draw() {
    const { width, height } = this.whole;
    const P = Number(this.slider.value);
    const [rows, columns] = [Math.floor(height / P), Math.floor(width / P)];
    const say = (selector, text) => (this.querySelector(selector).textContent = text);
    const [r, c] = (this.at = [Math.min(this.at[0], rows - 1), Math.min(this.at[1], columns - 1)]);
    const averages = averagePatches(this.data, width, height, P);

    drawWhole(this.whole.getContext("2d"), this.picture, P, rows, columns);
    const context = this.averages.getContext("2d");
    context.clearRect(0, 0, width, height);
    const average = this.show.value === "average";
    const order = average ? null : shuffled(rows * columns);
    for (let patch = 0; patch < rows * columns; patch++) {
      const [x, y] = [(patch % columns) * P, Math.floor(patch / columns) * P];
      if (average) {
        context.fillStyle = `rgb(${averages.subarray(3 * patch, 3 * patch + 3).join(" ")})`;
        context.fillRect(x, y, P, P);
      } else {
        const from = order[patch];
        context.drawImage(this.picture, (from % columns) * P, Math.floor(from / columns) * P, P, P, x, y, P, P);
      }
    }
    // The grid covers the whole patches, not what is left out
    this.grid.resize(rows, columns, width / height, [(rows * P) / height, (columns * P) / width]);
    this.grid.place("patch", r, c, `number ${r * columns + c}, row ${r}, column ${c}`);

    showValue(this.slider, P === 1 ? "1 pixel" : `${P} pixels`);
    this.slider.setAttribute("aria-valuetext", `${P} pixels, ${rows * columns} tokens`);
    say(".tokens", `${rows} × ${columns} = ${(rows * columns).toLocaleString("en")}`);
    say(".numbers", `${P} × ${P} × 3 = ${(P * P * 3).toLocaleString("en")}`);
    say(".dropped", (width * height - rows * columns * P * P).toLocaleString("en"));
    say(".what", average ? "One colour for each patch" : "The same patches in another order");
    this.whole.setAttribute("aria-label", `${this.what}, cut into ${rows} by ${columns} patches.`);
    this.averages.setAttribute("aria-label", average ? `The same, each patch of side ${P} in its average colour.` : "The same patches in another order.");
    const number = r * columns + c;
    const now = average ? number : order.indexOf(number);
    const share = (x, side) => `${(100 * x * P) / side}%`;
    Object.assign(this.querySelector(".twin").style, {
      left: share((now % columns) + 0.5, width),
      top: share(Math.floor(now / columns) + 0.5, height),
      width: share(1, width),
      height: share(1, height),
    });
    const colour = Array.from(averages.subarray(3 * number, 3 * number + 3), Math.round);
    say("[role=status]", average
      ? `Patch ${number} is in row ${r}, column ${c}: ${r} · ${columns} + ${c}. Its average colour is (${colour.join(", ")}).`
      : `Patch ${number} now stands at number ${now}. A ViT without positions reads both pictures as the same set.`);
  }
}

function drawWhole(context, picture, P, rows, columns) {
  const { width, height } = picture;
  context.clearRect(0, 0, width, height);
  context.globalAlpha = 0.25; // what lies beyond the last whole patch is cropped
  context.drawImage(picture, 0, 0);
  context.globalAlpha = 1;
  context.drawImage(picture, 0, 0, columns * P, rows * P, 0, 0, columns * P, rows * P);
  if (P < 4) return; // lines would hide the picture
  context.fillStyle = "rgb(255 255 255 / 70%)";
  for (let i = 1; i < columns; i++) context.fillRect(i * P, 0, 1, rows * P);
  for (let i = 1; i < rows; i++) context.fillRect(0, i * P, columns * P, 1);
}

define("patch-average", PatchAverage);
