// Python in the reader's browser. The page ends this worker when it runs for too long.

const SHOWN = 20000; // characters of output

const site = new URL("../run/settings.json", import.meta.url);
let booting = null;

/** Count what is loaded, for the page to show. */
function countDownloads() {
  const original = self.fetch;
  let bytes = 0;
  self.fetch = async (...request) => {
    const response = await original(...request);
    if (!response.ok || !response.body) return response;
    const counted = response.body.pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          bytes += chunk.length;
          postMessage({ progress: `${(bytes / 1e6).toFixed(1)} MB` });
          controller.enqueue(chunk);
        },
      }),
    );
    return new Response(counted, { status: response.status, headers: response.headers });
  };
  return () => (self.fetch = original);
}

async function load(address) {
  const response = await fetch(address, address === site ? { cache: "no-cache" } : {});
  if (!response.ok) throw new Error(`${response.status} for ${address}`);
  return response;
}

async function boot() {
  const stopCounting = countDownloads();
  const settings = await (await load(site)).json();
  const runtime = new URL(settings.pyodide, site).href;
  const course = load(new URL(settings.course, site)).then((response) => response.arrayBuffer());
  course.catch(() => {}); // said where it is awaited
  const { loadPyodide } = await import(`${runtime}pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: runtime, packages: ["numpy"] }); // loaded while Python starts
  if (!("numpy" in pyodide.loadedPackages)) throw new Error("numpy did not load");
  pyodide.unpackArchive(await course, "zip", { extractDir: "/course" });
  pyodide.runPython("import sys; sys.path.insert(0, '/course')");
  const solve = pyodide.pyimport("autograder.judging.browser").solve;
  stopCounting();
  return { pyodide, solve };
}

/** Pass on what Python prints, in pieces, up to a limit. */
function showOutput(pyodide) {
  const decoder = new TextDecoder();
  let waiting = "", shown = 0, last = performance.now();
  function flush() {
    if (waiting) postMessage({ output: waiting });
    waiting = "";
    last = performance.now();
  }
  const handler = {
    write(bytes) {
      if (shown <= SHOWN) {
        const text = decoder.decode(bytes, { stream: true });
        shown += text.length;
        waiting += shown <= SHOWN ? text : `${text.slice(0, SHOWN)}\n… the rest is not shown\n`;
        if (performance.now() - last > 50 || shown > SHOWN) flush();
      }
      return bytes.length;
    },
  };
  pyodide.setStdout(handler);
  pyodide.setStderr(handler);
  return flush;
}

self.onmessage = async ({ data: { name, code, setup, before, checking } }) => {
  try {
    booting ??= boot();
    const { pyodide, solve } = await booting;
    const messageCallback = (progress) => postMessage({ progress });
    // What is not there is Python's to say
    const callbacks = { messageCallback, errorCallback: () => {} };
    for (const text of [...setup, ...before, code]) await pyodide.loadPackagesFromImports(text, callbacks);
    const flush = showOutput(pyodide);
    postMessage({ started: true });
    const answer = JSON.parse(solve(name, code, pyodide.toPy(setup), pyodide.toPy(before), checking));
    flush();
    postMessage({ answer });
  } catch (error) {
    postMessage({ failed: String(error.message ?? error) });
  }
};
