// Times: relative in the page, exact in the reader's own zone on hover, all exact with the key T.
import { $$ } from "./dom.js";
import { toast } from "./toast.js";

const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"]];
let exact = false;

export function relative(at, now = Date.now()) {
  const seconds = Math.round((now - at) / 1000);
  const size = Math.abs(seconds);
  if (size < 45) return seconds >= 0 ? "just now" : "in a moment";
  if (size >= 14 * 86400) return (size < 300 * 86400 ? day : dayOfYear).format(at);
  const [unit, word] = UNITS.find(([n]) => size >= n) ?? [60, "min"];
  const n = Math.max(1, seconds >= 0 ? Math.floor(size / unit) : Math.ceil(size / unit));
  return seconds >= 0 ? `${n} ${word} ago` : `in ${n} ${word}`;
}

export function refreshTimes(root = document) {
  for (const el of $$("time[datetime]", root)) {
    const at = new Date(el.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    el.title = exactly.format(at);
    if (!("fixed" in el.dataset)) el.textContent = exact ? el.title : relative(at.getTime());
  }
}

export function swapTimes() {
  exact = !exact;
  refreshTimes();
  toast(exact ? "Exact times" : "Relative times", "Press T to switch back.");
}

refreshTimes();
setInterval(() => { if (!document.hidden && !exact) refreshTimes(); }, 20000);
