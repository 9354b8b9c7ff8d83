// What is kept on the reader's machine: exercises and quizzes, by name.

const PREFIX = `${document.documentElement.dataset.course}/`;

/** The browser's own name for what is kept under a name. */
export const keyOf = (name) => PREFIX + name;

/** What was kept under a name, or null. */
export function read(name) {
  try {
    return JSON.parse(localStorage.getItem(keyOf(name)));
  } catch {
    return null;
  }
}

/** Keep a value under a name; null forgets it. False when the browser keeps nothing. */
export function write(name, value) {
  try {
    if (value === null) localStorage.removeItem(keyOf(name));
    else localStorage.setItem(keyOf(name), JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** The names of all that is kept. */
export function names() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)).map((key) => key.slice(PREFIX.length));
  } catch {
    return [];
  }
}
