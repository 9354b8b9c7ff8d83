// A plain editor for Python: a text field, the same text in colour beneath it, and line numbers.

const INDENT = "    ";
const MOST_TYPED = 300; // lines: as if typed, a thousand take a second and thirty thousand for ever
const KEYWORDS = new Set(
  ("and as assert async await break class continue def del elif else except finally for from global if import in is " +
    "lambda nonlocal not or pass raise return try while with yield None True False").split(" "),
);
const TOKEN = new RegExp(
  [
    /(?<c1>#.*)/,
    /(?<s>\b[rbfu]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$))|\b[rbfu]{0,2}(?:"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)/,
    /(?<mi>\b\d[\w.]*)/,
    /(?<word>\w+)/, // a whole one: a longer pattern would look at a long line again at each of its letters
  ].map((part) => part.source).join("|"),
  "gi",
);

/** The pieces of a Python text, each with the class of its colour or "". */
export function tokens(text) {
  const pieces = [];
  let end = 0;
  let plain = 0; // where the last piece begins that has no colour
  let names = false; // whether the word before was def or class
  for (const match of text.matchAll(TOKEN)) {
    const { word } = match.groups;
    let kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    if (word) kind = names && /^ +$/.test(text.slice(end, match.index)) ? "nf" : KEYWORDS.has(word) ? "k" : "";
    names = word === "def" || word === "class";
    end = match.index + match[0].length;
    if (!kind) continue;
    if (match.index > plain) pieces.push([text.slice(plain, match.index), ""]);
    pieces.push([match[0], kind]);
    plain = end;
  }
  if (plain < text.length) pieces.push([text.slice(plain), ""]);
  return pieces;
}

/** What Enter adds after the text that stands before it: the indentation of the line, more after a colon. */
export function newLine(before) {
  const line = before.slice(before.lastIndexOf("\n") + 1);
  return "\n" + line.match(/^[ \t]*/)[0] + (/:\s*(#.*)?$/.test(line) ? INDENT : "");
}

const isLong = (text) => text.split("\n", MOST_TYPED + 1).length > MOST_TYPED;

/** Put text where the selection is, so that the browser's own undo takes it back; not where that would take too long. */
function insert(field, text) {
  if (!isLong(text) && document.execCommand(text ? "insertText" : "delete", false, text)) return;
  field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input"));
}

function indentLines(field, outdent) {
  const { value, selectionStart, selectionEnd } = field;
  if (!outdent && selectionStart === selectionEnd) {
    const column = selectionStart - value.lastIndexOf("\n", selectionStart - 1) - 1;
    return insert(field, INDENT.slice(column % INDENT.length));
  }
  const start = value.lastIndexOf("\n", selectionStart - 1) + 1;
  const after = value.indexOf("\n", selectionEnd);
  field.setSelectionRange(start, after < 0 ? value.length : after);
  const lines = value.slice(start, field.selectionEnd);
  const changed = outdent ? lines.replace(/^ {1,4}/gm, "") : lines.replace(/^(?=.)/gm, INDENT);
  if (changed !== lines) insert(field, changed);
  if (selectionStart === selectionEnd) field.setSelectionRange(start + changed.length, start + changed.length);
  else field.setSelectionRange(start, start + changed.length);
}

/**
 * Make an editor.
 *
 * `label` is its name for screen readers, `help` the id of the text that says which keys do what, `typed` what is called
 * when the reader has changed the text. Returns the `element`, the text `field`, and functions to `set` the text
 * (undoable in the field) and to `mark` a line.
 */
export function makeEditor({ label, help, typed }) {
  const element = document.createElement("div");
  element.className = "editor highlight";
  element.innerHTML =
    '<div class="editor-lines" aria-hidden="true"></div>' +
    '<div class="editor-text"><pre aria-hidden="true"></pre><textarea rows="1" cols="1" wrap="off" ' +
    'spellcheck="false" autocapitalize="off" autocomplete="off" autocorrect="off"></textarea></div>';
  const [lines, coloured, field] = element.querySelectorAll(".editor-lines, pre, textarea");
  field.setAttribute("aria-label", label);
  field.setAttribute("aria-describedby", help);

  function draw() {
    const pieces = tokens(field.value).map(([text, kind]) => {
      if (!kind) return text;
      const span = document.createElement("span");
      span.className = kind;
      span.textContent = text;
      return span;
    });
    coloured.replaceChildren(...pieces, " "); // the space gives a last, empty line its height
    const count = field.value.split("\n").length;
    lines.replaceChildren(
      ...Array.from({ length: count }, (_, number) => {
        const line = document.createElement("span");
        line.textContent = number + 1;
        return line;
      }),
    );
  }

  field.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!isLong(text)) return;
    event.preventDefault();
    insert(field, text.replace(/\r\n?/g, "\n"));
  });

  let leaving = false; // after Escape the next Tab leaves the editor
  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Tab" && !leaving) {
      event.preventDefault();
      indentLines(field, event.shiftKey);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      insert(field, newLine(field.value.slice(0, field.selectionStart)));
    } else if (event.key === "Backspace" && field.selectionStart === field.selectionEnd) {
      const start = field.value.lastIndexOf("\n", field.selectionStart - 1) + 1;
      const column = field.selectionStart - start;
      if (column && !field.value.slice(start, field.selectionStart).trim()) {
        event.preventDefault();
        field.setSelectionRange(start + INDENT.length * Math.floor((column - 1) / INDENT.length), field.selectionStart);
        insert(field, "");
      }
    }
    if (event.key !== "Shift") leaving = event.key === "Escape";
  });
  field.addEventListener("blur", () => (leaving = false));
  let setting = false;
  field.addEventListener("input", () => {
    draw();
    if (!setting) typed();
  });

  function set(text) {
    setting = true;
    if (field.value && field.value !== text && field.isConnected && !isLong(text) && !isLong(field.value)) {
      // As if it were typed: else the browser's undo would work on a text that is no longer there
      const active = document.activeElement;
      field.focus({ preventScroll: true });
      field.select();
      insert(field, text);
      active.focus({ preventScroll: true });
    } else {
      field.value = text;
      draw();
    }
    setting = false;
  }

  function mark(line) {
    lines.querySelector(".wrong")?.classList.remove("wrong");
    lines.children[line - 1]?.classList.add("wrong");
  }
  return { element, field, set, mark };
}
