// Keys: each also has a visible control. Letters do nothing while somebody types.
import { $, $$, typing } from "./dom.js";
import { open } from "./layers.js";
import { swapTimes } from "./times.js";

const PLACES = Object.fromEntries($$("[data-key]").map((el) => [el.dataset.key, el.href]));
const LEADER_MS = 900;
let leader = 0;

function walkRows(step) {
  const rows = $$(".table .lead > a, .list .lead > a");
  const at = rows.indexOf(document.activeElement);
  rows[Math.max(0, Math.min(rows.length - 1, at + step))]?.focus();
}

const KEYS = {
  g: () => { leader = Date.now(); },
  "/": (event) => { event.preventDefault(); const field = $(".filters .search input"); if (field) field.focus(); else open("palette"); },
  "?": () => open("keys"),
  t: swapTimes,
  j: () => walkRows(1),
  k: () => walkRows(-1),
};

document.addEventListener("keydown", (event) => {
  const key = event.key.toLowerCase();
  if ((event.metaKey || event.ctrlKey) && key === "k") { event.preventDefault(); open("palette"); return; }
  if (event.key === "Escape") for (const menu of $$("details.menu[open]")) { menu.open = false; $("summary", menu).focus(); }
  if (typing(event.target) || event.metaKey || event.ctrlKey || event.altKey || $("dialog[open]")) return;
  if (Date.now() - leader < LEADER_MS && PLACES[key]) { leader = 0; location.assign(PLACES[key]); return; }
  KEYS[key]?.(event);
});
