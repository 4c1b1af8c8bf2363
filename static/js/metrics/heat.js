// Many GPUs: one row a node, one cell a GPU, the number in the cell; a node's name picks it.
import { make } from "../dom.js";
import { GPU_BUSY, parse } from "./panels.js";

const LEAST_GPUS = 9;

export class Heat {
  constructor(el, pick) {
    this.el = el;
    this.pick = pick;
  }

  // Values at an instant, or the newest ones.
  draw(frame, at, picked) {
    const items = frame.keys.map(parse).filter(({ name }) => name === GPU_BUSY);
    this.el.hidden = items.length < LEAST_GPUS;
    if (this.el.hidden) return;
    const kind = items.map(({ key }) => key).sort().join();
    if (kind !== this.kind) { this.kind = kind; this._build(items); }
    for (const [key, cell] of this.cells) {
      const value = this._value(frame, key, at);
      const percent = Math.round(100 * value);
      cell.className = Number.isFinite(value) ? `cell h${Math.min(9, Math.floor(percent / 10))}` : "cell none";
      cell.textContent = Number.isFinite(value) ? percent : "–";
    }
    for (const [rank, button] of this.buttons) button.setAttribute("aria-pressed", String(rank === picked));
    this.all.hidden = picked === undefined;
  }

  _value(frame, key, at) {
    const cells = frame.series.get(key);
    const place = at ?? frame.last.get(key);
    if (at === undefined && frame.newest - place > 30) return undefined;
    for (let back = 0; back <= 15; back += frame.step) if (cells.has(place - back)) return cells.get(place - back).value ?? undefined;
    return undefined;
  }

  _build(items) {
    this.cells = new Map();
    this.buttons = new Map();
    const rows = [...new Set(items.map(({ rank }) => rank))].sort((a, b) => a - b).map((rank) => {
      const button = make("button", { className: "btn quiet small", type: "button", text: `Node ${rank}`, "aria-pressed": "false" });
      button.addEventListener("click", () => this.pick(rank));
      this.buttons.set(rank, button);
      const row = make("div", { className: "heat-node", role: "row" }, make("span", { role: "rowheader" }, button));
      for (const { key, gpu } of items.filter((item) => item.rank === rank).sort((a, b) => a.gpu - b.gpu)) {
        const cell = make("span", { className: "cell", role: "cell", title: `Node ${rank}, GPU ${gpu}` });
        this.cells.set(key, cell);
        row.append(cell);
      }
      return row;
    });
    this.all = make("button", { className: "btn small", type: "button", text: "Show all nodes" });
    this.all.addEventListener("click", () => this.pick(undefined));
    this.el.replaceChildren(
      make("header", { className: "card-head" }, make("h2", { text: "GPU busy, in percent" }), this.all),
      make("div", { className: "heat", role: "table", "aria-label": "Percent busy of each GPU; choose a node to see its GPUs alone" }, ...rows));
  }
}
