// Command palette: what the page knows at once, what the server finds a moment later.
import { $, $$, getJson, icon, make } from "./dom.js";

const palette = $("#palette");
const input = palette && $("input", palette);
const list = palette && $("ul", palette);
const fixed = palette ? $$("[data-fixed]", palette) : [];
let asked = 0;

const options = () => $$('[role="option"]:not([hidden])', palette);

function pick(el) {
  $$('[role="option"]', palette).forEach((o) => o.setAttribute("aria-selected", String(o === el)));
  if (el) { input.setAttribute("aria-activedescendant", el.id); el.scrollIntoView({ block: "nearest" }); }
  else input.removeAttribute("aria-activedescendant");
}

function show(found) {
  $$("[data-found]", list).forEach((el) => el.remove());
  let group = "";
  found.forEach((item, n) => {
    if (item.group !== group) {
      group = item.group;
      list.append(make("li", { role: "presentation", text: group, "data-found": "" }));
    }
    const words = make("bdi", { text: item.title });
    const option = make("li", { role: "option", id: `found-${n}`, "data-href": item.href, "data-found": "", "aria-selected": "false" },
      icon(item.icon), make("span", {}, words), make("small", { className: "dim", text: item.detail ?? "" }));
    list.append(option);
  });
  if (!options().length) list.append(make("li", { role: "presentation", text: "Nothing found. Try a part of a name, an id or an e-mail.", "data-found": "" }));
  pick(options()[0]);
}

async function search() {
  const query = input.value.trim();
  const mine = ++asked;
  for (const el of fixed) el.hidden = el.role === "presentation" ? Boolean(query) : !el.textContent.toLowerCase().includes(query.toLowerCase());
  $$("[data-found]", list).forEach((el) => el.remove());
  pick(options()[0]);
  if (query.length < 2) return;
  await new Promise((done) => setTimeout(done, 120));
  if (mine !== asked) return;
  try {
    const { results } = await getJson(`/palette?q=${encodeURIComponent(query)}`);
    if (mine === asked) show(results);
  } catch {
    if (mine === asked) show([]);
  }
}

function go(el) {
  if (!el) return;
  if (el.dataset.href) location.assign(el.dataset.href);
  else { palette.close(); document.getElementById(el.dataset.click)?.click(); }
}

if (palette) {
  input.addEventListener("input", search);
  input.addEventListener("keydown", (event) => {
    const shown = options();
    const at = shown.findIndex((o) => o.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length) { event.preventDefault(); pick(shown[(at + step + shown.length) % shown.length]); }
    if (event.key === "Enter") { event.preventDefault(); go(shown[at]); }
  });
  list.addEventListener("click", (event) => go(event.target.closest('[role="option"]')));
  palette.addEventListener("close", () => { input.value = ""; search(); });
}
