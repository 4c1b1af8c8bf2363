// How long something has run, counted on from what the server said; no clock but the browser's own ticks.
import { $$ } from "./dom.js";

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const seen = new WeakMap();

export function words(seconds) {
  const at = UNITS.findIndex(([size]) => seconds >= size);
  if (at < 0) return "0 s";
  const [size, word] = UNITS[at];
  const [next, nextWord] = UNITS[at + 1] ?? [1, ""];
  const rest = Math.floor((seconds % size) / next);
  return `${Math.floor(seconds / size)} ${word}${rest && nextWord ? ` ${rest} ${nextWord}` : ""}`;
}

function seconds(el) {
  if (!seen.has(el)) seen.set(el, performance.now() - 1000 * Number(el.dataset.elapsed));
  return Math.floor((performance.now() - seen.get(el)) / 1000);
}

function tick() {
  for (const el of $$("[data-elapsed]")) el.textContent = words(seconds(el));
}

tick();
setInterval(() => { if (!document.hidden) tick(); }, 1000);
