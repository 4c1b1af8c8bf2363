// The list of jobs: rows change in place, newer ones are counted and not pushed in, ticked ones stop together.
import { $, $$, make } from "./dom.js";
import { refreshTimes } from "./times.js";

const body = $("tbody[data-rows]");
const PAUSE_MS = 400;
const MOST = 100;
const due = new Set();
let timer = 0;
let busy = false;

// What a row says, without what counts on by itself.
function words(row) {
  const copy = row.cloneNode(true);
  for (const el of $$("time, [data-elapsed]", copy)) el.remove();
  return copy.innerHTML;
}

// A row waits while somebody selects text in it; its tick and its focus come back after the swap.
function swap(row, fresh) {
  const selection = getSelection();
  if (!selection.isCollapsed && selection.containsNode(row, true)) return false;
  if (words(row) === words(fresh)) return true;
  const [was, is] = [$("input", row), $("input", fresh)];
  if (was && is) is.checked = was.checked;
  const at = $$("a, input", row).indexOf(document.activeElement);
  const held = $("tr:hover", body) ?? document.activeElement.closest?.("tr");
  const top = held?.getBoundingClientRect().top;
  row.replaceChildren(...fresh.children);
  row.toggleAttribute("data-live", fresh.hasAttribute("data-live"));
  row.classList.remove("changed");
  requestAnimationFrame(() => row.classList.add("changed"));
  const stops = $$("a, input", row);
  if (at >= 0) stops[Math.min(at, stops.length - 1)].focus({ preventScroll: true });
  if (held && held !== row) scrollBy(0, held.getBoundingClientRect().top - top);
  refreshTimes(row);
  return true;
}

function say(newer) {
  const line = $("#newer");
  line.replaceChildren();
  if (newer === "0") return;
  const url = new URL(location.href);
  for (const name of ["before", "after"]) url.searchParams.delete(name);
  line.append(newer === "1" ? "1 newer job arrived. " : `${newer} newer jobs arrived. `, make("a", { href: url.href, text: "Show them" }));
}

async function look() {
  timer = 0;
  busy = true;
  const asked = [...due].slice(0, MOST);
  for (const id of asked) due.delete(id);
  const query = new URLSearchParams(body.dataset.query);
  for (const id of asked) query.append("job", id);
  query.set("shows_team", body.dataset.teams);
  if (body.dataset.newest) query.set("newest", body.dataset.newest);
  try {
    const answer = await fetch(`${body.dataset.rows}?${query}`);
    if (answer.ok && !answer.redirected) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const fresh of $$("tr", page)) {
        const row = document.getElementById(fresh.id);
        if (row && !swap(row, fresh)) due.add(fresh.id.slice(4));
      }
      if (body.dataset.newest) say($("#newer", page).textContent);
      count();
    }
  } finally {
    busy = false;
  }
  if (due.size) soon();
}

function soon() {
  if (!timer) timer = setTimeout(() => { if (busy) { timer = 0; soon(); } else look(); }, PAUSE_MS);
}

function live() {
  for (const row of $$("tr[data-live]", body)) due.add(row.id.slice(4));
}

function changed({ kind, job }) {
  if (kind === "job") { if (document.getElementById(`job-${job}`)) due.add(job); }
  else if (kind === "event" || kind === "opened") live();
  else return;
  soon();
}

/* ticks */
const form = $("#stop-jobs");
const ticks = () => $$("input[name=job]", body);
let last = null;

function count() {
  const chosen = ticks().filter((tick) => tick.checked).length;
  const words = chosen === 1 ? "1 job" : `${chosen} jobs`;
  form.hidden = !chosen;
  $("[data-ticked]", form).textContent = `${words} ticked`;
  $("[data-word]", form).textContent = `Stop ${words}`;
  form.dataset.confirm = `Stop ${words}?`;
  form.dataset.verb = `Stop ${words}`;
}

function tick(event) {
  const box = event.target.closest("input[name=job]");
  if (!box) return;
  const all = ticks();
  const from = last ? all.indexOf(all.find((one) => one.value === last)) : -1;
  if (event.shiftKey && from >= 0) {
    const [low, high] = [from, all.indexOf(box)].sort((a, b) => a - b);
    for (const one of all.slice(low, high + 1)) one.checked = box.checked;
  }
  last = box.value;
  count();
}

if (body) {
  document.addEventListener("slipway:changed", (event) => changed(event.detail));
  body.addEventListener("click", tick);
  form.addEventListener("reset", () => setTimeout(count));
  count();
}
