// What every page does: leading on whoever comes by an old address, light and dark, copying code, scrolling by keyboard, and marking the section that is read.

const named = document.getElementById(location.hash.slice(1)); // which is no :target before the page is there
if (named?.matches(".moved")) location.replace(named.firstElementChild.href);

const root = document.documentElement;

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const themeButton = document.querySelector(".theme-button");
themeButton.hidden = false;
themeButton.setAttribute("aria-pressed", isDark());
themeButton.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  themeButton.setAttribute("aria-pressed", isDark());
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // The choice then lasts as long as the page
  }
});

function addCopyButton(code) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "copy-button", textContent: "Copy" });
  button.setAttribute("aria-label", "Copy the code");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  code.after(button);
}

// A box that scrolls must be reachable by keyboard
function markScroller(box) {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}
// What is far away or folded up has no size yet: each is told when it gets one.
const sized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    markScroller(target);
    if (target.matches("div[class*='highlight-'] > .highlight > pre:only-child")) addCopyButton(target);
  }
});
const boxes = [...document.querySelectorAll("pre, .formula-box, .table-box, .figure")];
for (const box of boxes) sized.observe(box);
document.fonts.ready.then(() =>
  boxes.filter((box) => box.checkVisibility({ contentVisibilityAuto: true })).forEach(markScroller),
);

// In the list of chapters, the section that is read
const links = [...document.querySelectorAll(".chapters .current li a[href*='#']")];
const headings = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
function markSection() {
  const passed = headings.findLastIndex((heading) => heading?.getBoundingClientRect().top < innerHeight / 3);
  for (const [number, link] of links.entries()) {
    if (number === passed) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}
let waiting = false;
addEventListener(
  "scroll",
  () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      markSection();
    });
  },
  { passive: true },
);
markSection();
