// The log of a job: reads its end, follows it, and loads what the reader goes to.
import { $ } from "../dom.js";
import { toast } from "../toast.js";
import { fold, strip } from "./ansi.js";
import { Controls } from "./controls.js";
import { Follow } from "./follow.js";
import { Lines } from "./lines.js";
import { count, isError, rowOf, waitingRow } from "./rows.js";
import { Search } from "./search.js";
import { Source } from "./source.js";
import { View } from "./view.js";

const PIECE = 256 << 10;
const MOST_PIECE = 1 << 20; // while a line has no end in sight
const NEAR = 40;
const MOST_TRIES = 60;
const MOST_MARKED = 5000;
const ERROR_WORDS = ["error", "traceback", "fatal"];
const MOST_ASKED = 40;

export class Viewer {
  constructor(root) {
    this.root = root;
    this.source = new Source(root.dataset.url);
    this.lines = new Lines({ most: Number(root.dataset.most) || undefined });
    this.opened = new Set();
    this.marks = { err: new Set(), gap: new Set() };
    this.chosen = { rank: "", attempt: "" };
    this.loading = new Set();
    this.failed = "";
    this.piece = PIECE;
    this.picked = -1;
    this.search = new Search({ lines: this.lines, source: this.source, changed: () => this._searched() });
    this.view = new View($(".log-view", root), {
      lines: this.lines,
      row: (n) => this._row(n),
      isShown: (n) => this._isShown(n),
      waiting: (n) => waitingRow(n, this.failed, () => { this.failed = ""; this.view.refresh(); }),
      need: (n) => this._seek(n),
      near: (...drawn) => this._near(...drawn),
      scrolled: () => { this.aim = undefined; this.setFollowing(this.view.isAtEnd && !this.isPaused); },
    });
    this.controls = new Controls(root, this);
    addEventListener("hashchange", () => this._goToHash());
    this.start();
  }

  async start() {
    const epoch = (this.epoch = (this.epoch ?? 0) + 1);
    this.follow?.close();
    this.lines.clear();
    this.opened.clear();
    this.marks = { err: new Set(), gap: new Set() };
    this.loading.clear();
    this.seeking = undefined;
    this.view.refresh();
    this.controls.say("connecting");
    try {
      const answer = await this.source.read({ offset: -PIECE, limit: PIECE });
      if (epoch !== this.epoch) return;
      this._take(whole(answer));
      this._show();
      if (answer.complete) this.controls.say("ended"); else this._listen(answer.next_offset);
    } catch (error) {
      if (epoch === this.epoch) this.controls.fail(error.message);
    }
    if (this.search.text) this.search.run(this.search.text);
  }

  _show() {
    this.setFollowing(true);
    if (/^#L\d+$/.test(location.hash)) this._goToHash(); else this.view.toEnd();
    this.controls.draw();
  }

  _listen(offset) {
    const { origin } = location;
    const url = (next) => `${origin.replace(/^http/, "ws")}${this.root.dataset.socket}?${new URLSearchParams({ stream: this.source.stream, offset: next })}`;
    this.follow = new Follow({ url, offset, heard: (message) => this._hear(message), said: (...state) => this.controls.say(...state) });
  }

  _take(answer) {
    this.lines.note(answer.size, answer.lines);
    for (const part of answer.parts) { this.lines.add(part); this._mark(part); }
  }

  // Remember where errors and gaps are, for the ruler; they stay known when their lines are forgotten.
  _mark({ line, text, gap }) {
    if (gap) this.marks.gap.add(line);
    if (gap || this.marks.err.size >= MOST_MARKED || !isError(text)) return;
    text.split("\n").forEach((each, index) => { if (isError(strip(each))) this.marks.err.add(line + index); });
  }

  _hear(message) {
    if (message.type === "end") return;
    const part = message.type === "gap" ? { ...message, gap: message.reason } : message;
    const from = Math.min(part.line, this.lines.end.line);
    this.lines.add(part);
    this._mark(part);
    this.search.note(from, this.lines.end.line);
    this.dirty = Math.min(this.dirty ?? from, from);
    this.drawing ??= requestAnimationFrame(() => this._flush());
    if (this.lines.loaded > 2 * this.lines.most) this.lines.trim(this.view.anchor().n);
  }

  _flush() {
    const from = this.dirty;
    this.drawing = this.dirty = undefined;
    if (this._isSelecting()) this.setFollowing(false);
    this.lines.trim(this.view.follows ? this.lines.end.line : this.view.anchor().n);
    this.view.refresh(from);
    this.controls.draw();
  }

  // What somebody selects must not run away.
  _isSelecting() {
    const selection = getSelection();
    return !selection.isCollapsed && this.view.el.contains(selection.anchorNode);
  }

  // Rows -------------------------------------------------------------------------------------------
  _row(n) {
    return rowOf(this.lines.at(n), {
      pattern: this.search.pattern,
      isHit: this.hit === n,
      opened: this.opened,
      picked: this.picked,
      withRank: this.lines.ranks.size > 1,
      toggle: (at) => { if (!this.opened.delete(at)) this.opened.add(at); this.setFollowing(false); this.view.refresh(at); },
    });
  }

  _isShown(n) {
    const { rank, attempt } = this.chosen;
    if (!rank && !attempt) return true;
    const line = this.lines.at(n);
    return !line || ((!rank || String(line.rank) === rank) && (!attempt || String(line.attempt) === attempt));
  }

  choose(name, value) {
    this.chosen[name] = value;
    const { n } = this.view.anchor();
    if (this.view.follows) this.view.toEnd(); else this.view.show(n);
  }

  // Loading ----------------------------------------------------------------------------------------
  async _load(key, { offset, limit, isExact = false }) {
    if (this.loading.has(key)) return false;
    const { epoch } = this;
    this.loading.add(key);
    try {
      const answer = await this.source.read({ offset, limit });
      if (epoch !== this.epoch) return false;
      this.failed = "";
      this.piece = answer.parts.some(({ text }) => text.includes("\n")) ? PIECE : MOST_PIECE;
      const was = this.lines.loaded;
      this._take(isExact ? answer : whole(answer));
      return this.lines.loaded !== was;
    } catch (error) {
      if (epoch === this.epoch) this.failed = error.message;
      return false;
    } finally {
      if (epoch === this.epoch) this.loading.delete(key);
    }
  }

  async _near(first, last, { above, below }) {
    const run = this.lines.run(first);
    if (!run || this.failed) return;
    const enough = 2 * this.view.el.clientHeight;
    const before = first - run[0] < NEAR && above < enough && this.lines.before(first);
    const after = run[1] - last < NEAR && below < enough && this.lines.after(last);
    const wanted = before ? { key: "before", offset: Math.max(before.from, before.to - this.piece), to: before.to, isExact: before.to - before.from <= this.piece } : after && { key: "after", isExact: true, offset: after.from, to: Math.min(after.to, after.from + this.piece) };
    if (!wanted || !(await this._load(wanted.key, { offset: wanted.offset, limit: wanted.to - wanted.offset, isExact: wanted.isExact }))) return;
    this.lines.trim(this.view.anchor().n);
    this.view.refresh();
  }

  // Load the line of a number: guess its place by bytes a line, look, and guess better.
  async _seek(n) {
    if (this.seeking === n || this.failed) return;
    this.seeking = n;
    for (let tries = 0; tries < MOST_TRIES && this.seeking === n && !this.failed; tries++) {
      const hole = this.lines.hole(n);
      if (!hole) break;
      const [from, to] = [hole.from.offset, hole.to.offset];
      const lines = Math.max(1, hole.to.line - hole.from.line);
      const ratio = tries % 4 === 3 ? 0.5 : (n - hole.from.line + 0.5) / lines;
      const offset = Math.max(from, Math.min(Math.floor(from + (to - from) * ratio - this.piece / 2), to - this.piece));
      if (!(await this._load(`seek ${n}`, { offset, limit: Math.min(this.piece, to - offset), isExact: offset === from }))) break;
    }
    if (this.seeking !== n) return;
    this.seeking = undefined;
    this.lines.trim(n);
    this.view.refresh();
    if (this.aim === n) this.view.middle(n);
  }

  // Going ------------------------------------------------------------------------------------------
  setFollowing(on) {
    if (on === this.view.follows) return;
    this.view.follows = on;
    this.left = this.lines.end.line;
    this.controls.draw();
  }

  pause() {
    this.isPaused = this.view.follows;
    this.setFollowing(!this.view.follows);
    if (this.view.follows) this.view.toEnd();
  }

  toEnd() {
    this.isPaused = false;
    this.aim = undefined;
    this.setFollowing(true);
    this.view.toEnd();
  }

  get fresh() { return Math.max(0, this.lines.end.line - (this.left ?? 0)); }

  goTo(n) {
    this.aim = n;
    this.setFollowing(false);
    this.view.middle(n);
    this.view.refresh();
    this.root.scrollIntoView({ block: "nearest" });
  }

  _goToHash() {
    const found = /^#L(\d+)$/.exec(location.hash);
    if (!found) return;
    const n = Number(found[1]) - 1;
    if (n >= this.lines.total) { toast(`The log has ${count(this.lines.total)} lines`, `There is no line ${count(n + 1)} yet.`, "warn"); return; }
    this.picked = n;
    this.goTo(n);
  }

  async copyLink(n) {
    history.replaceState(null, "", `#L${n + 1}`);
    this.picked = n;
    this.view.refresh();
    await copy(location.href, `Link to line ${count(n + 1)} copied`);
  }

  copySeen() {
    const lines = this.view.seen().map((n) => this.lines.textAt(n) ?? "");
    const text = lines.map((line) => { const { from, end } = fold(line); return strip(line.slice(from, end)); }).join("\n");
    return copy(`${text}\n`, `${count(lines.length)} lines copied`);
  }

  nextHit(step) {
    const seen = this.view.seen();
    const from = this.hit ?? (step > 0 ? (seen[0] ?? 0) - 1 : (seen.at(-1) ?? 0) + 1);
    const hit = this.search.from(from, step);
    if (hit === undefined) return;
    this.hit = hit;
    this.goTo(hit);
    this.controls.draw();
  }

  find(text) {
    this.hit = undefined;
    this.search.run(text);
  }

  _searched() {
    this.view.refresh();
    this.controls.draw();
  }

  // The first line of the log that looks like an error; asks the portal about what is not loaded.
  async firstError() {
    const found = await Promise.all(ERROR_WORDS.map((word) => this._firstOf(word))).catch(() => []);
    for (const segment of this.lines.segments) {
      const to = Math.min(this.lines.total, segment.chunks.at(-1).line + segment.chunks.at(-1).breaks.length);
      for (let n = segment.chunks[0].line; n < to; n++) if (isError(strip(this.lines.textAt(n) ?? ""))) { found.push(n); break; }
    }
    const lines = found.filter((n) => n !== undefined);
    if (!lines.length) { toast("No line looks like an error"); return; }
    this.picked = Math.min(...lines);
    this.goTo(this.picked);
  }

  async _firstOf(word) {
    if (!this.lines.hole(0)) return undefined;
    for (let offset = 0, asked = 0; asked < MOST_ASKED; asked++) {
      const answer = await this.source.search({ text: word, offset });
      const hit = answer.hits.find(({ text }) => isError(strip(text)));
      if (hit) return hit.line;
      if (answer.complete || answer.next_offset <= offset) return undefined;
      offset = answer.next_offset;
    }
    return undefined;
  }
}

// An answer from anywhere may begin within a character: those bytes are left to who reads from before.
function whole(answer) {
  const [first, ...rest] = answer.parts;
  const stray = first && answer.offset > 0 && !first.gap ? /^\ufffd{0,3}/.exec(first.text)[0].length : 0;
  if (!stray) return answer;
  return { ...answer, parts: [{ ...first, offset: first.offset + stray, text: first.text.slice(stray) }, ...rest] };
}

async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    toast(said, "", "ok");
  } catch {
    toast("The browser does not let me copy", "Select the text and press Ctrl C.", "warn");
  }
}

for (const root of document.querySelectorAll(".log[data-url]")) root.viewer = new Viewer(root);
