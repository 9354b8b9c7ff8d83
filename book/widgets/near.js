// When a part of the page is put together: as the reader comes near.
//
// A page has many fields to type in, and browsers look at all of them when it has loaded (to fill in addresses and
// passwords), for which they lay out every section that has one. So what lies far away gets its fields later.

const LATE = 8000; // milliseconds after which what is still far away gets its fields too, for search and screen readers

const waiting = new Map(); // element: what is done for it
const observer = new IntersectionObserver(
  (entries) => entries.forEach(({ isIntersecting, target }) => isIntersecting && arrive(target)),
  { rootMargin: "100% 0px" },
);

function arrive(section) {
  observer.unobserve(section);
  const work = waiting.get(section) ?? [];
  waiting.delete(section);
  for (const build of work) build();
}

/** Build this part of the page when its section is near the window, and at the latest when there is time. */
export function whenNear(element, build) {
  const section = element.closest("article > section > section") ?? element;
  if (!waiting.has(section)) {
    waiting.set(section, []);
    observer.observe(section);
  }
  waiting.get(section).push(build);
}

function one() {
  const [section] = waiting.keys();
  if (!section) return;
  arrive(section);
  later(one);
}
const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 200));

addEventListener("load", () => setTimeout(() => later(one), LATE));
addEventListener("beforeprint", () => [...waiting.keys()].forEach(arrive));
