// One chart: a uPlot with our colours, gaps, cap and events, and a table of the values under the crosshair.
import uPlot from "uplot";
import { make } from "../dom.js";
import { scaleOf, words } from "./units.js";

const SYNC = uPlot.sync("metrics");
const NEAR = 6; // pixels to an event
const MOST_LINES = 40; // more events than that are dots
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
export const time = (at) => exact.format(1000 * at);

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    lines: [1, 2, 3, 4, 5, 6, 7, 8].map((n) => of(`--c${n}`)),
    grid: of("--chart-grid"), ink: of("--chart-ink"), bad: of("--c6"),
    tone: { checkpoint: of("--c2"), phase: of("--c8") },
  };
}

export class Chart {
  // told(chart, index, event): the crosshair is at this place of the chart, near this event.
  constructor(panel, told) {
    this.panel = panel;
    this.told = told;
    this.now = make("span", { className: "now" });
    this.plot = make("div", { className: `plot-canvas${panel.isTall ? " tall" : ""}`, role: "img", tabindex: "0" });
    this.when = make("th", { scope: "col" });
    this.body = make("tbody");
    const head = make("thead", {}, make("tr", {}, make("th", { scope: "col", text: "Line" }), this.when, make("th", { scope: "col", text: "Newest" }), make("th", { scope: "col", text: "Mean" })));
    this.el = make("figure", { className: "chart card", id: `chart-${panel.id}` },
      make("figcaption", { className: "chart-head" }, make("h2", { text: panel.title }), this.now),
      this.plot, make("table", { className: "readout" }, head, this.body));
    this.plot.addEventListener("mouseleave", () => this.told());
    this.plot.addEventListener("keydown", (event) => this._key(event));
    new ResizeObserver(() => this.uplot?.setSize(this._size())).observe(this.plot);
  }

  // Draw lines of a frame between two instants; what differs in kind is built anew.
  draw(lines, frame, [from, to]) {
    const places = frame.places(lines);
    const values = lines.map((line) => frame.values(line, places));
    const bands = lines[0].band ? ["min", "max"].map((fold) => frame.values({ ...lines[0], fold }, places)) : [];
    const cap = this.panel.cap ? this._cap(lines, frame) : 0;
    const most = Math.max(this.panel.full ?? 0, cap, ...[...values, ...bands].flat().filter(Number.isFinite));
    this.scale = scaleOf(this.panel.unit, most);
    const { size } = this.scale;
    const scaled = (row) => row.map((value) => (Number.isFinite(value) ? value / size : value));
    Object.assign(this, { lines, frame, places, cap: cap / size, most: most / size, range: [from, to], values: values.map(scaled) });
    this.data = [places, ...this.values, ...bands.map(scaled)];
    const kind = `${lines.map(({ label }) => label)} ${this.scale.word} ${bands.length}`;
    if (kind !== this.kind || !this.uplot) { this.kind = kind; this.rebuild(); } else this.uplot.setData(this.data);
    this._say();
  }

  rebuild() {
    if (this.uplot) { SYNC.unsub(this.uplot); this.uplot.destroy(); }
    this.colours = colours();
    this.uplot = new uPlot(this._options(), this.data, this.plot);
    this.body.replaceChildren(...this.lines.map((line, index) => this._row(line, index)));
    this._read();
  }

  _size() { return { width: Math.max(120, this.plot.clientWidth), height: Math.max(80, this.plot.clientHeight) }; }

  _options() {
    const { grid, ink, lines } = this.colours;
    const axis = { stroke: ink, font: "11px Inter, system-ui, sans-serif", grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    const series = this.lines.map((line, index) => ({
      label: line.label, stroke: lines[index % 8], width: 1.5, dash: index >= 4 ? [5, 4] : undefined, points: { show: this._isAlone(index), size: 3 },
      fill: this.lines.length === 1 && !line.band ? faint(lines[0]) : undefined,
    }));
    const hidden = { stroke: "transparent", width: 0, points: { show: false } };
    const count = this.lines.length;
    return {
      ...this._size(), padding: [8, 30, 0, 0], series: [{}, ...series, ...(this.lines[0].band ? [hidden, hidden] : [])],
      bands: this.lines[0].band ? [{ series: [count + 2, count + 1], fill: faint(lines[0]) }] : undefined,
      legend: { show: false }, cursor: { sync: { key: SYNC.key }, drag: { x: false, y: false }, y: false, points: { size: 6 } },
      scales: { x: { range: () => this.range }, y: { range: (u, low, high) => [0, this.panel.full || this.cap ? this.most * 1.04 : (high || 1) * 1.1] } },
      axes: [{ ...axis, space: 56, size: 24, values: (u, ticks) => ticks.map((at) => this._tick(at, u)) },
        { ...axis, size: 74, space: 36, values: (u, ticks) => ticks.map((value) => words(value, this.scale)) }],
      hooks: { drawClear: [(u) => this._gaps(u)], draw: [(u) => this._marks(u)], setCursor: [() => this._read()] },
    };
  }

  // A line with a single sample between gaps would not be seen.
  _isAlone(index) { return (u, i) => u.data[index + 1].filter(Number.isFinite).length < 3; }

  _tick(at, u) {
    const span = u.scales.x.max - u.scales.x.min;
    return (span < 600 ? exact : span < 2 * 86400 ? clock : day).format(1000 * at);
  }

  _cap(lines, frame) {
    const keys = lines.flatMap((line) => line.keys.map((key) => key.replace(this.panel.names[0], this.panel.cap)));
    const newest = keys.map((key) => [...(frame.series.get(key)?.values() ?? [])].findLast(({ value }) => value !== null)?.value ?? 0);
    return Math.max(0, ...newest);
  }

  // Where no line has samples any more, hatched below everything.
  _gaps(u) {
    const [xs] = this.data;
    const isGap = (i) => this.values.every((row) => row[i] === null);
    const first = xs.findIndex((_, i) => this.values.some((row) => Number.isFinite(row[i])));
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    for (let i = first; i < xs.length; i++) {
      if (!isGap(i)) continue;
      let end = i;
      while (end + 1 < xs.length && isGap(end + 1)) end++;
      const from = u.valToPos(xs[Math.max(0, i - 1)], "x", true);
      const to = u.valToPos(xs[Math.min(xs.length - 1, end + 1)], "x", true);
      ctx.rect(Math.max(bbox.left, from), bbox.top, Math.min(bbox.left + bbox.width, to) - Math.max(bbox.left, from), bbox.height);
      i = end;
    }
    ctx.clip();
    ctx.strokeStyle = this.colours.grid;
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    for (let x = bbox.left - bbox.height; x < bbox.left + bbox.width; x += 8 * devicePixelRatio) { ctx.moveTo(x, bbox.top + bbox.height); ctx.lineTo(x + bbox.height, bbox.top); }
    ctx.stroke();
    ctx.restore();
  }

  _marks(u) {
    const { ctx, bbox } = u;
    const [from, to] = this.range;
    const events = this.frame.events.filter(({ x }) => x >= from && x <= to);
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    for (const event of events) {
      const x = Math.round(u.valToPos(event.x, "x", true)) + 0.5;
      ctx.strokeStyle = ctx.fillStyle = this.colours.tone[event.kind];
      ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
      if (events.length <= MOST_LINES || event.kind === "phase") { ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke(); }
      ctx.beginPath();
      ctx.arc(x, bbox.top, 3.5 * devicePixelRatio, 0, 7);
      ctx.fill();
    }
    if (this.cap) {
      const y = u.valToPos(this.cap, "y", true);
      ctx.strokeStyle = this.colours.bad;
      ctx.setLineDash([6 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
    }
    ctx.restore();
  }

  _key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !this.uplot) return;
    event.preventDefault();
    const at = Math.min(this.places.length - 1, Math.max(0, (this.uplot.cursor.idx ?? this.places.length) + step));
    this.uplot.setCursor({ left: this.uplot.valToPos(this.places[at], "x"), top: 10 });
  }

  _row(line, index) {
    const name = make("span", {}, make("i", { className: `key ${index >= 4 ? "dash" : "line"} k${(index % 8) + 1}` }), line.note ? `${line.label}, ${line.note}` : line.label);
    return make("tr", {}, make("td", {}, name), make("td"), make("td"), make("td"));
  }

  // The value at a place, or the one of the bucket just before it, where this line has none of its own.
  _valueAt(row, index) {
    for (let i = index; i >= 0 && this.places[index] - this.places[i] <= Math.max(15, this.frame.step); i--) if (row[i] !== undefined) return row[i];
    return null;
  }

  _read() {
    const u = this.uplot;
    if (!u) return;
    const { idx, left } = u.cursor;
    const isOver = left >= 0 && idx !== null && idx !== undefined;
    this.when.textContent = isOver ? time(this.places[idx]) : "Crosshair";
    this.values.forEach((row, index) => {
      const cells = this.body.rows[index].cells;
      const known = row.filter(Number.isFinite);
      cells[1].textContent = isOver ? words(this._valueAt(row, idx), this.scale) : "";
      cells[2].textContent = words(known.at(-1), this.scale);
      cells[3].textContent = known.length ? words(known.reduce((a, b) => a + b, 0) / known.length, this.scale) : "–";
    });
    if (!u.over.matches(":hover") && document.activeElement !== this.plot) return;
    const near = isOver && this.frame.events.findLast(({ x }) => Math.abs(u.valToPos(x, "x") - left) <= NEAR);
    this.told(isOver ? this.places[idx] : undefined, near || undefined);
  }

  _say() {
    this._read();
    const newest = this.values.map((row) => row.findLast(Number.isFinite)).filter(Number.isFinite);
    const all = this.values.flat().filter(Number.isFinite);
    const mean = newest.length ? newest.reduce((a, b) => a + b, 0) / newest.length : null;
    const isSum = this.panel.fold === "sum" && this.panel.names.length === 1;
    const cap = this.cap ? ` of ${words(this.cap, this.scale)}` : "";
    this.now.textContent = this.panel.names.length > 1 ? newest.map((value) => words(value, this.scale)).join(" / ") : words(isSum && mean !== null ? mean * newest.length : mean, this.scale) + cap;
    const what = this.lines.length > 1 ? `${this.lines.length} lines` : this.lines[0].label;
    this.plot.setAttribute("aria-label", `${this.panel.title}, ${what}, ${time(this.range[0])} to ${time(this.range[1])}: now ${this.now.textContent}, lowest ${words(Math.min(...all), this.scale)}, highest ${words(Math.max(...all), this.scale)}. The table below has the values; left and right arrow move the crosshair.`);
  }
}

const faint = (colour) => `color-mix(in oklab, ${colour} 13%, transparent)`;
