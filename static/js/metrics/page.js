// The metrics of a job: its newest minutes first, then what the reader asks for, then each sample as it comes.
import { $, $$, getJson, make } from "../dom.js";
import { words as lasted } from "../elapsed.js";
import { Follow } from "../log/follow.js";
import { Chart, time } from "./chart.js";
import { Frame } from "./frame.js";
import { Heat } from "./heat.js";
import { linesOf, PANELS } from "./panels.js";
import { scaleOf, words } from "./units.js";

const NAMES = "gpu_,cpu_,memory_,nic_,disk_";
const LEAST_SPAN = 60;
const DRAW_MS = 250;
const MOST_POINTS = 900;
const STALE_MS = 20000;
const AGAIN_MS = 10000;
const PHASES = { QUEUED: "In line", ADMITTED: "Admitted", SUBMITTED: "Handed to the cluster", RUNNING: "Running", STOPPING: "Stopping", SUCCEEDED: "Succeeded", FAILED: "Failed", CANCELLED: "Cancelled" };

// A socket of samples: goes on from the oldest of what each rank had last; what comes twice is passed over.
class Samples extends Follow {
  _hear(message) {
    if (message.type !== "sample") { super._hear(message); return; }
    this.wait = 1000;
    this.had ??= new Map();
    const at = Date.parse(message.at);
    if (at <= Date.parse(this.had.get(message.rank) ?? 0)) return;
    this.had.set(message.rank, message.at);
    this.offset = [...this.had.values()].reduce((a, b) => (Date.parse(a) < Date.parse(b) ? a : b));
    this.heard(message);
  }
}

class Page {
  constructor(root) {
    this.root = root;
    this.charts = new Map();
    this.heat = new Heat($("[data-metrics=heat]", root), (node) => { this.node = node; this.draw(); });
    this.range = root.dataset.ended ? "all" : "300";
    for (const button of $$("[data-range]", root)) button.addEventListener("click", () => this.load(button.dataset.range));
    new MutationObserver(() => this.recolour()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.soon(); });
    setInterval(() => { if (this.state === "live") this.say("live"); }, 5000);
    this.load(this.range);
  }

  async load(range) {
    this.range = range;
    const epoch = (this.epoch = (this.epoch ?? 0) + 1);
    for (const button of $$("[data-range]", this.root)) button.setAttribute("aria-pressed", String(button.dataset.range === range));
    const query = { names: NAMES };
    if (range !== "all") {
      const end = this.root.dataset.ended ? Date.parse(this.root.dataset.ended) : Date.now();
      query.from = new Date(end - 1000 * Number(range)).toISOString();
    }
    try {
      const answer = await getJson(`${this.root.dataset.url}?${new URLSearchParams(query)}`);
      if (epoch !== this.epoch) return;
      this.frame = new Frame(answer);
      this.failed = "";
      this.heardAt ??= performance.now() - (this.frame.isEmpty ? 0 : Date.parse(answer.to) - 1000 * this.frame.newest);
      this.listen(answer.to);
    } catch (error) {
      if (epoch !== this.epoch) return;
      this.failed = error.message;
      setTimeout(() => { if (epoch === this.epoch) this.load(range); }, AGAIN_MS);
    }
    this.draw();
  }

  listen(to) {
    if (this.follow || this.root.dataset.ended) { if (!this.follow) this.say("ended"); return; }
    const { origin } = location;
    const url = (since) => `${origin.replace(/^http/, "ws")}${this.root.dataset.socket}?${new URLSearchParams({ since })}`;
    const offset = new Date(Date.parse(to) - 30000).toISOString();
    this.follow = new Samples({ url, offset, heard: (message) => this.hear(message), said: (...state) => this.say(...state) });
  }

  hear(message) {
    if (message.type !== "sample" || !this.frame) return;
    this.heardAt = performance.now();
    this.frame.add({ ...message, series: Object.fromEntries(Object.entries(message.series).filter(([name]) => !name.startsWith("agent_"))) });
    this.soon();
  }

  soon() {
    if (document.hidden) return;
    this.timer ??= setTimeout(() => { this.timer = undefined; this.draw(); }, DRAW_MS);
  }

  say(state, seconds) {
    this.state = state;
    const el = $("[data-metrics=live]", this.root);
    const silent = performance.now() - this.heardAt;
    const isSilent = state === "live" && silent > STALE_MS;
    const said = { live: isSilent ? `No sample for ${lasted(silent / 1000)}` : "Live", ended: "The job has ended", refused: "Signed out", waiting: `Reconnecting, ${seconds} s` };
    el.textContent = said[state];
    el.dataset.live = isSilent ? "rest" : { live: "on", ended: "rest" }[state] ?? "off";
    this.root.classList.toggle("stale", isSilent || state === "waiting");
    if (state === "refused") location.reload();
    if (state === "ended") this.soon();
    if (state === "live") this.watchEvents();
  }

  // What happened is asked for now and then; it is not on the socket.
  watchEvents() {
    this.asking ??= setInterval(async () => {
      if (document.hidden || !this.frame || this.follow.isOver) return;
      const query = { names: "-", from: new Date(Date.now() - 300000).toISOString() };
      const answer = await getJson(`${this.root.dataset.url}?${new URLSearchParams(query)}`).catch(() => ({ events: [] }));
      this.frame.note(answer.events);
      this.soon();
    }, 15000);
  }

  // From where to where the charts go: the range up to the newest sample, not longer than there is.
  span() {
    const { frame } = this;
    const end = frame.newest;
    const first = Math.min(...[...frame.series.values()].flatMap((cells) => [...cells].find(([, { value }]) => value !== null)?.[0] ?? end));
    const from = this.range === "all" ? first : Math.max(first, end - Number(this.range));
    return [Math.min(from, end - LEAST_SPAN), end];
  }

  draw() {
    const { frame } = this;
    const isEmpty = !frame || frame.isEmpty;
    $("[data-metrics=why]", this.root).hidden = !isEmpty || Boolean(this.failed);
    const failed = $("[data-metrics=failed]", this.root);
    failed.hidden = !this.failed;
    $("span", failed).textContent = this.failed;
    $("[data-metrics=charts]", this.root).hidden = isEmpty;
    $("[data-metrics=bar]", this.root).hidden = isEmpty;
    if (isEmpty) return;
    const range = this.span();
    if (this.range !== "all") frame.forget(range[0] - 60);
    else if (frame.places([{ keys: frame.keys.slice(0, 1) }]).length > MOST_POINTS) { this.load("all"); return; }
    const shown = PANELS.map((panel) => [panel, linesOf(panel, frame.keys, this.node)]).filter(([, lines]) => lines.length);
    const ids = shown.map(([{ id }]) => id).join();
    if (ids !== this.shown) { this.shown = ids; this.place(shown); }
    for (const [panel, lines] of shown) this.charts.get(panel.id).draw(lines, frame, range);
    this.heat.draw(frame, this.at, this.node);
  }

  place(shown) {
    for (const [panel] of shown) {
      if (!this.charts.has(panel.id)) this.charts.set(panel.id, new Chart(panel, (at, event) => this.told(at, event)));
    }
    $("[data-metrics=charts]", this.root).replaceChildren(...shown.map(([{ id }]) => this.charts.get(id).el));
  }

  told(at, event) {
    this.at = at;
    this.heat.draw(this.frame, at, this.node);
    $("[data-metrics=event]", this.root).replaceChildren(event ? make("b", { text: `${time(event.x)} ` }) : "", event ? wordsOf(event) : "");
  }

  recolour() {
    requestAnimationFrame(() => { for (const chart of this.charts.values()) if (chart.uplot) chart.rebuild(); });
  }
}

function wordsOf({ kind, name, bytes, seconds }) {
  if (kind === "phase") return PHASES[name] ?? name;
  const scale = scaleOf("size", bytes);
  const took = seconds === null ? "" : ` in ${seconds < 10 ? `${seconds.toFixed(1)} s` : lasted(seconds)}`;
  return `Checkpoint ${name} complete, ${words(bytes / scale.size, scale)}${took}`;
}

for (const root of $$(".metrics[data-url]")) root.page = new Page(root);
