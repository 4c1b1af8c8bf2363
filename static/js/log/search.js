// Hits by line: what is loaded at once, what is not by the portal, piece after piece.
import { strip } from "./ansi.js";

const MOST_HITS = 20000;

export const patternOf = (text) => (text ? new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "giu") : null);

export class Search {
  constructor({ lines, source, changed }) {
    Object.assign(this, { lines, source, changed });
    this.clear();
  }

  clear() {
    this.abort?.abort();
    Object.assign(this, { text: "", pattern: null, found: new Set(), sorted: [], isBusy: false, failed: "" });
  }

  run(text) {
    this.clear();
    this.text = text;
    this.pattern = patternOf(text);
    if (!text) { this.changed(); return; }
    for (const segment of this.lines.segments) this._look(segment.chunks[0].line, segment.chunks.at(-1).line + segment.chunks.at(-1).breaks.length);
    for (let n = this.lines.end.line; n < this.lines.total; n++) this._look(n, n + 1);
    this._ask();
  }

  // Lines that came meanwhile.
  note(from, to) {
    if (!this.pattern) return;
    this._look(from, to);
    this.changed();
  }

  _look(from, to) {
    for (let n = from; n < to && this.found.size < MOST_HITS; n++) {
      const text = this.lines.textAt(n);
      if (text === undefined) continue;
      if ((text.includes("\x1b") ? strip(text) : text).search(this.pattern) >= 0) this._add(n);
    }
  }

  _add(n) {
    if (!this.found.has(n)) { this.found.add(n); this.sorted = []; }
  }

  async _ask() {
    const { signal } = (this.abort = new AbortController());
    this.isBusy = true;
    this.changed();
    try {
      for (let offset = 0; ;) {
        const answer = await this.source.search({ text: this.text, offset }, signal);
        for (const hit of answer.hits) this._add(hit.line);
        if (answer.complete || answer.next_offset <= offset || this.found.size >= MOST_HITS) break;
        offset = answer.next_offset;
        this.changed();
      }
    } catch (error) {
      if (signal.aborted) return;
      this.failed = error.message;
    }
    this.isBusy = false;
    this.changed();
  }

  get hits() {
    if (this.sorted.length !== this.found.size) this.sorted = [...this.found].sort((a, b) => a - b);
    return this.sorted;
  }

  get isFull() { return this.found.size >= MOST_HITS; }

  // The hit after or before a line, around the ends.
  from(n, step) {
    const { hits } = this;
    if (!hits.length) return undefined;
    return step > 0 ? hits.find((hit) => hit > n) ?? hits[0] : hits.findLast((hit) => hit < n) ?? hits.at(-1);
  }
}
