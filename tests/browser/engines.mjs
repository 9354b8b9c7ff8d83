// What Firefox and WebKit (the engine of Safari) make of the site: facts about pages, and verdicts on an exercise.
//
//     node engines.mjs firefox|webkit <folder with node_modules> <program> < task.json > found.json

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";

const [engine, folder, program] = process.argv.slice(2);
const task = JSON.parse(readFileSync(0, "utf-8"));
const load = createRequire(`${folder}/node_modules/`);
const complaints = [];

async function firefox() {
  const { launch } = load("puppeteer-core");
  const browser = await launch({ browser: "firefox", executablePath: program, headless: true });
  const page = await browser.newPage();
  page.on("console", (message) => {
    const left = message.text().includes("status=2152398850"); // it was still loading when the page was left
    if (["error", "warn"].includes(message.type()) && !left) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  return {
    resize: (width) => page.setViewport({ width, height: 900 }),
    open: (url) => page.goto(url, { waitUntil: "load" }),
    ask: (script, ...values) => page.evaluate(new Function("...values", `return (${script})(...values)`), ...values),
    close: () => browser.close(),
  };
}

async function webkit() {
  const { Builder, Capabilities } = load("selenium-webdriver");
  const port = 4000 + (process.pid % 4000);
  const server = spawn("WebKitWebDriver", [`--port=${port}`], { stdio: "ignore" });
  await pause(1000);
  const options = { binary: program, args: ["--automation"] };
  const wanted = new Capabilities({ browserName: "MiniBrowser", "webkitgtk:browserOptions": options });
  const driver = await new Builder().usingServer(`http://127.0.0.1:${port}`).withCapabilities(wanted).build();
  return {
    resize: (width) => driver.manage().window().setRect({ width, height: 900 }),
    open: (url) => driver.get(url),
    ask: (script, ...values) => driver.executeScript(`return (${script})(...arguments)`, ...values),
    close: () => driver.quit().finally(() => server.kill()),
  };
}

/** Runs on the page. */
const facts = `() => {
    const box = (element) => element.getBoundingClientRect();
    const seen = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility());
    const reaching = [...document.querySelectorAll(".chapter > section > section *")].filter((one) => {
        if (one.closest(".headerlink, pre, .editor, .formula-box, .table-box, .figure, svg, .inspector-table, math")) return false;
        const inner = box(one), outer = box(one.closest(".chapter > section > section"));
        return inner.width && (inner.left < outer.left - 1 || inner.right > outer.right + 1);
    });
    return {
        excess: Math.max(0, document.documentElement.scrollWidth - innerWidth),
        formulas: seen("math").length,
        flat: seen("math").filter((one) => box(one).height < 3 || box(one).width < 1).length,
        font: !seen("math").length || document.fonts.check('16px "STIX Two Math"'),
        unmade: seen(".widget").filter((one) => !one.querySelector("[data-ready]")).length
            + seen("[data-solve]").filter((one) => !one.querySelector("textarea")).length,
        reaching: reaching.map((one) => one.outerHTML.slice(0, 100)),
        cut: seen(".formula-box, article pre").filter((one) => one.scrollWidth > one.clientWidth + 1).length,
    };
}`;

const browser = await { firefox, webkit }[engine]();
const found = { pages: {}, verdicts: [] };
try {
  for (const width of task.widths) {
    await browser.resize(width);
    for (const path of task.pages) {
      await browser.open(task.address + path);
      await pause(300);
      await browser.ask("() => { window.dispatchEvent(new Event('beforeprint')) }"); // what is far away is put together too
      await pause(500);
      found.pages[`${path} ${width}`] = await browser.ask(facts);
    }
  }
  await browser.open(task.address + task.solving.path);
  for (const { code, stop } of task.solving.tries) {
    await browser.ask(
      `(name, code) => {
        const box = document.querySelector("[data-exercise=" + name + "]");
        box.scrollIntoView();
        return new Promise((done) => setTimeout(() => {
            const field = box.querySelector("textarea");
            field.value = code;
            field.dispatchEvent(new Event("input"));
            box.querySelector(".solve-button.primary").click();
            done();
        }, 500));
      }`,
      task.solving.name,
      code,
    );
    if (stop) await pause(1000);
    for (let waited = 0; waited < 100; waited++) {
      const [busy, verdict] = await browser.ask(
        `(name, stop) => {
          const box = document.querySelector("[data-exercise=" + name + "]");
          const busy = !box.querySelector(".solve-busy").hidden;
          if (busy && stop) [...box.querySelectorAll("button")].find((one) => one.textContent === "Stop").click();
          return [busy, box.querySelector(".solve-verdict").innerText];
        }`,
        task.solving.name,
        stop,
      );
      if (!busy) {
        found.verdicts.push(verdict);
        break;
      }
      await pause(500);
    }
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify({ ...found, complaints }));
