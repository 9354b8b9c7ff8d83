// What every page does: light and dark, copying code, and scrolling by keyboard.

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

for (const block of document.querySelectorAll("div[class^='highlight-'] .highlight")) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "copy-button", textContent: "Copy" });
  button.setAttribute("aria-label", "Copy the code");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("pre").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  block.append(button);
}

// A box that scrolls must be reachable by keyboard
function markScrollers() {
  for (const box of document.querySelectorAll("pre, .formula-box, .table-box, .figure")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
markScrollers();
document.fonts.ready.then(markScrollers);
addEventListener("resize", markScrollers);
