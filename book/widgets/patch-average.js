// <patch-average>: a picture, and what is left of it when each patch keeps only its average colour.

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

const PICTURE = { file: "pavilion.webp", side: 224, what: "a pavilion beside a lake" };

class PatchAverage extends HTMLElement {
  async connectedCallback() {
    const picture = new Image();
    picture.src = new URL(PICTURE.file, import.meta.url);
    await picture.decode();

    const start = Number(this.getAttribute("start") ?? 16);
    this.innerHTML = `
      <div class="widget-row">
        <figure><canvas class="whole" role="img"></canvas><figcaption>The picture, cut into patches</figcaption></figure>
        <figure><canvas class="averages" role="img"></canvas><figcaption>One colour for each patch</figcaption></figure>
      </div>
      <div class="widget-controls">
        <label>Patch side <input type="range" min="1" max="112" step="1" value="${start}"></label>
        <output class="side"></output>
      </div>
      <dl class="widget-numbers">
        <div><dt>Tokens</dt><dd class="tokens"></dd></div>
        <div><dt>Numbers in a patch</dt><dd class="numbers"></dd></div>
        <div><dt>Pixels left out</dt><dd class="dropped"></dd></div>
      </dl>
      <p class="widget-credit">Photograph: <a href="https://www.flickr.com/photos/danielbuechele/6061409035">danielbuechele</a>,
        <a href="https://creativecommons.org/licenses/by/2.0/">CC BY 2.0</a>, cropped.</p>`;

    const { side } = PICTURE;
    this.whole = this.querySelector(".whole");
    this.averages = this.querySelector(".averages");
    for (const canvas of [this.whole, this.averages]) canvas.width = canvas.height = side;
    const context = this.averages.getContext("2d", { willReadFrequently: true });
    context.drawImage(picture, 0, 0, side, side);
    this.data = context.getImageData(0, 0, side, side).data;
    this.picture = picture;

    this.slider = this.querySelector("input");
    this.slider.addEventListener("input", () => this.draw());
    this.draw();
    this.dataset.ready = "";
  }

  draw() {
    const { side, what } = PICTURE;
    const P = Number(this.slider.value);
    const n = Math.floor(side / P);
    const say = (selector, text) => (this.querySelector(selector).textContent = text);

    drawWhole(this.whole.getContext("2d"), this.picture, side, P, n);
    drawAverages(this.averages.getContext("2d"), averagePatches(this.data, side, side, P), side, P, n);

    this.slider.setAttribute("aria-valuetext", `${P} pixels, ${n * n} tokens`);
    say(".side", P === 1 ? "1 pixel" : `${P} pixels`);
    say(".tokens", `${n} × ${n} = ${(n * n).toLocaleString("en")}`);
    say(".numbers", `${P} × ${P} × 3 = ${(P * P * 3).toLocaleString("en")}`);
    say(".dropped", (side * side - (n * P) ** 2).toLocaleString("en"));
    this.whole.setAttribute("aria-label", `Photograph of ${what}, cut into ${n} by ${n} patches.`);
    this.averages.setAttribute("aria-label", `The same photograph, each patch of side ${P} in its average colour.`);
  }
}

function drawWhole(context, picture, side, P, n) {
  context.clearRect(0, 0, side, side);
  context.globalAlpha = 0.25; // what lies beyond the last whole patch is cropped
  context.drawImage(picture, 0, 0, side, side);
  context.globalAlpha = 1;
  context.drawImage(picture, 0, 0, n * P, n * P, 0, 0, n * P, n * P);
  if (P < 4) return; // lines would hide the picture
  context.fillStyle = "rgb(255 255 255 / 70%)";
  for (let i = 1; i < n; i++) {
    context.fillRect(i * P, 0, 1, n * P);
    context.fillRect(0, i * P, n * P, 1);
  }
}

function drawAverages(context, averages, side, P, n) {
  context.clearRect(0, 0, side, side);
  for (let patch = 0; patch < n * n; patch++) {
    context.fillStyle = `rgb(${averages.subarray(3 * patch, 3 * patch + 3).join(" ")})`;
    context.fillRect((patch % n) * P, Math.floor(patch / n) * P, P, P);
  }
}

customElements.define("patch-average", PatchAverage);
