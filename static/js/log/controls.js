// The bar and the foot of a log: what can be pressed, and what is said about it.
import { $, $$, make, typing } from "../dom.js";
import { count } from "./rows.js";

const SEARCH_MS = 200;
const KEPT = "slipway-log";
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];
const MOST_MARKS = 300;

function sizeOf(bytes) {
  let unit = 0;
  while (bytes >= 1024 && unit < UNITS.length - 1) { bytes /= 1024; unit++; }
  return `${unit ? bytes.toFixed(1) : bytes} ${UNITS[unit]}`;
}

function kept() {
  try { return JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { return {}; }
}

export class Controls {
  constructor(root, viewer) {
    Object.assign(this, { root, viewer, state: "connecting", settings: kept() });
    this.part = (name) => $(`[data-log="${name}"]`, root);
    this.input = $(".search input", root);
    this._wire();
    this._look();
  }

  _wire() {
    const { viewer } = this;
    const acts = {
      next: () => viewer.nextHit(1),
      previous: () => viewer.nextHit(-1),
      error: () => viewer.firstError(),
      follow: () => viewer.pause(),
      end: () => viewer.toEnd(),
      wrap: () => this._set("nowrap"),
      times: () => this._set("timeless"),
      copy: () => viewer.copySeen(),
      again: () => viewer.start(),
    };
    this.keys = { f: acts.end, n: acts.next, p: acts.previous, e: acts.error, w: acts.wrap };
    this.root.addEventListener("click", (event) => {
      const line = event.target.closest(".ln > a");
      if (line && !event.ctrlKey && !event.metaKey) { event.preventDefault(); viewer.copyLink(Number(line.hash.slice(2)) - 1); }
      acts[event.target.closest("[data-log]")?.dataset.log]?.();
      const stream = event.target.closest("[data-stream]")?.dataset.stream;
      if (stream) this._stream(stream);
    });
    for (const name of ["rank", "attempt"]) this.part(name).addEventListener("change", (event) => viewer.choose(name, event.target.value));
    this.input.addEventListener("input", () => { clearTimeout(this.timer); this.timer = setTimeout(() => viewer.find(this.input.value), SEARCH_MS); });
    this.input.addEventListener("keydown", (event) => this._typed(event));
    document.addEventListener("keydown", (event) => this._key(event), true);
    $(".log-view", this.root).addEventListener("keydown", (event) => {
      const act = { Home: () => viewer.goTo(0), End: acts.end }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
  }

  _typed(event) {
    if (event.key === "Enter") { event.preventDefault(); this.viewer.nextHit(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { this.input.value = ""; this.viewer.find(""); $(".log-view", this.root).focus(); }
  }

  _key(event) {
    if (typing(event.target) || event.metaKey || event.ctrlKey || event.altKey || $("dialog[open]")) return;
    if (event.key === "/") { event.preventDefault(); event.stopPropagation(); this.input.select(); return; }
    const act = this.keys[event.key.toLowerCase()];
    if (act && this.root.isConnected) act();
  }

  _stream(stream) {
    for (const el of $$("[data-stream]", this.root)) el.setAttribute("aria-pressed", String(el.dataset.stream === stream));
    this.viewer.source.stream = stream;
    this.viewer.picked = -1;
    if (location.hash) history.replaceState(null, "", location.pathname);
    this.viewer.start();
  }

  _set(name) {
    this.settings[name] = !this.settings[name];
    try { localStorage.setItem(KEPT, JSON.stringify(this.settings)); } catch { /* private mode */ }
    this._look();
  }

  _look() {
    const { nowrap = false, timeless = false } = this.settings;
    const view = $(".log-view", this.root);
    const place = this.viewer.view.anchor();
    view.classList.toggle("nowrap", nowrap);
    view.classList.toggle("timeless", timeless);
    this.part("wrap").setAttribute("aria-pressed", String(!nowrap));
    this.part("times").setAttribute("aria-pressed", String(!timeless));
    if (!this.viewer.lines.total) return;
    if (this.viewer.view.follows) this.viewer.view.toEnd(); else this.viewer.view.show(place.n, place.y);
  }

  say(state, seconds = 0) {
    const words = { connecting: "Loading", live: "Live", waiting: `Reconnecting, ${seconds} s`, ended: "Complete", refused: "Not yours to see any more. Load the page again." };
    const live = this.part("live");
    this.state = state;
    live.textContent = words[state];
    if (state === "live") delete live.dataset.live; else live.dataset.live = ["ended", "connecting"].includes(state) ? "rest" : "off";
    this.draw();
  }

  fail(words) {
    this.say("refused");
    this.part("live").textContent = "Not loaded";
    const again = make("button", { className: "btn small", type: "button", text: "Try again", "data-log": "again" });
    this.part("empty").replaceChildren(make("span", { text: `The log could not be read. ${words}` }), again);
    this.part("empty").hidden = false;
  }

  draw() {
    const { lines, view, search } = this.viewer;
    const isLive = this.state !== "ended";
    this.part("size").textContent = `${count(lines.total)} ${lines.total === 1 ? "line" : "lines"}, ${sizeOf(lines.end.offset)}`;
    const end = this.part("end");
    end.hidden = view.follows || !lines.total || (!isLive && view.isAtEnd);
    $("span", end).textContent = isLive && this.viewer.fresh ? `${count(this.viewer.fresh)} new` : "";
    $("b", end).textContent = isLive ? "Follow" : "To the end";
    const follow = this.part("follow");
    follow.hidden = !isLive;
    follow.setAttribute("aria-pressed", String(view.follows));
    this.part("download").href = this.viewer.source.download();
    this._drawSearch(search);
    this._choices("rank", lines.ranks);
    this._choices("attempt", lines.attempts);
    this._drawEmpty(lines);
  }

  _drawEmpty(lines) {
    const empty = this.part("empty");
    const isEmpty = !lines.total && ["live", "ended", "waiting"].includes(this.state);
    empty.hidden = !isEmpty;
    if (isEmpty) empty.textContent = this.state === "ended" ? "It wrote nothing." : "No lines yet. They appear here as the job writes them.";
  }

  _drawSearch(search) {
    const { hits } = search;
    const at = hits.indexOf(this.viewer.hit) + 1;
    const all = `${count(hits.length)}${search.isFull || search.isBusy ? "+" : ""}`;
    const said = search.text ? (at ? `${count(at)} of ${all}` : `${all} ${hits.length === 1 ? "line" : "lines"}`) : "";
    this.part("count").textContent = search.failed ? `${said}, the rest could not be searched` : said;
    for (const name of ["next", "previous"]) this.part(name).disabled = !hits.length;
    this._ruler(hits);
  }

  _ruler(hits) {
    const { lines, marks } = this.viewer;
    const total = Math.max(1, lines.total);
    const placesOf = (numbers) => new Set([...numbers].map((n) => Math.floor((n / total) * MOST_MARKS)));
    const places = [["r-gap", marks.gap], ["r-err", marks.err], ["r-hit", hits]].flatMap(([name, numbers]) => [...placesOf(numbers)].map((place) => [name, place]));
    const drawn = places.join();
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const svg = $(".log-ruler", this.root);
    svg.replaceChildren(...places.map(([name, place]) => {
      const rect = document.createElementNS(svg.namespaceURI, "rect");
      const put = { class: name, x: 1, width: 7, height: 2, y: `${(100 * place) / MOST_MARKS}%` };
      for (const [key, value] of Object.entries(put)) rect.setAttribute(key, value);
      return rect;
    }));
  }

  _choices(name, values) {
    const select = this.part(name);
    select.hidden = values.size < 2;
    if (select.hidden || select.options.length === values.size + 1) return;
    const chosen = select.value;
    const word = name === "rank" ? "Rank" : "Attempt";
    const options = [...values].sort((a, b) => a - b).map((value) => make("option", { value: String(value), text: `${word} ${value}` }));
    select.replaceChildren(make("option", { value: "", text: `All ${name}s` }), ...options);
    select.value = chosen;
  }
}

