// What is loaded of a log, by byte offset and by line.
//
// The merged log is bytes of many sources (attempt, stream, rank), and a source may be in the middle
// of its line while another writes. A line is what one source wrote up to a newline, and its number is
// the count of newlines before that one in the whole log: so every newline is the end of exactly one
// line, whatever lies between its parts. Lines that have no newline yet come after all others.
//
// A gap that an agent made is bytes of the log like others. A hole is where the portal keeps bytes no
// more: its text is not what was there, its line is the one after it, and it stands for all lines in it.
import { PLAIN, advance } from "./ansi.js";

const MOST = 32 << 20;
const MOST_JOINED = 64 << 10;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

function breaksOf(text) {
  const breaks = [];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) breaks.push(at);
  return breaks;
}

const sourceOf = (part) => (part.gap ? `gap ${part.offset}` : `${part.attempt} ${part.rank} ${part.stream}`);
const lineEnd = (chunk) => chunk.line + chunk.breaks.length;
const firstLine = (segment) => (segment.start === 0 ? 0 : segment.chunks[0].line);

function chunkOf(part) {
  const { offset, next_offset: end, line, text, stream, rank, attempt, gap = null } = part;
  const isHole = Boolean(gap) && encoder.encode(text).length !== end - offset;
  return { offset, end, line, text, stream, rank, attempt, gap, isHole, stamps: [[0, part.at]], source: sourceOf(part), breaks: isHole ? [] : breaksOf(text), prev: null };
}

// What stands in the line that is open where the chunk begins; cached, for joined segments anew.
function headOf(chunk) {
  const path = [];
  let at = chunk;
  while (at.head === undefined && at.prev && !at.prev.breaks.length) { path.push(at); at = at.prev; }
  if (at.head === undefined) at.head = at.prev ? at.prev.text.slice(at.prev.breaks.at(-1) + 1) : "";
  for (const next of path.reverse()) next.head = next.prev.head + next.prev.text;
  return chunk.head;
}

const tailOf = (chunk) => (chunk.breaks.length ? chunk.text.slice(chunk.breaks.at(-1) + 1) : headOf(chunk) + chunk.text);

function textIn(chunk, index) {
  const text = chunk.text.slice(index ? chunk.breaks[index - 1] + 1 : 0, chunk.breaks[index]);
  return index ? text : headOf(chunk) + text;
}

// The style at the start of each line that ends in the chunk, and of the one after.
function statesOf(chunk) {
  const path = [];
  for (let at = chunk; at && !at.states; at = at.prev) path.push(at);
  for (const at of path.reverse()) {
    let state = at.prev ? at.prev.states.at(-1) : PLAIN;
    at.states = [state];
    const isPlain = !at.text.includes("\x1b") && !headOf(at).includes("\x1b");
    for (let index = 0; index < at.breaks.length; index++) {
      if (!isPlain) state = advance(textIn(at, index), state);
      at.states.push(state);
    }
  }
  return chunk.states;
}

function firstAfter(list, test) {
  let [low, high] = [0, list.length];
  while (low < high) { const middle = (low + high) >> 1; if (test(list[middle])) high = middle; else low = middle + 1; }
  return low;
}

function forget(chunk) { chunk.head = chunk.states = undefined; }

function link(segment) {
  segment.last = new Map();
  for (const chunk of segment.chunks) {
    forget(chunk);
    follow(segment, chunk);
  }
}

function follow(segment, chunk) {
  if (chunk.isHole) { segment.last.clear(); return; }
  chunk.prev = segment.last.get(chunk.source) ?? null;
  segment.last.set(chunk.source, chunk);
}

export class Lines {
  constructor({ most = MOST } = {}) {
    this.most = most;
    this.clear();
  }

  clear() {
    this.segments = [];
    this.loaded = 0;
    this.end = { offset: 0, line: 0 };
    this.ranks = new Set();
    this.attempts = new Set();
  }

  // Where the whole log ends, as the portal says; it only grows.
  note(offset, line) {
    if (offset > this.end.offset || line > this.end.line) this.end = { offset: Math.max(offset, this.end.offset), line: Math.max(line, this.end.line) };
  }

  // Take a part of the log, from anywhere; what is there already is left out.
  add(part) {
    const at = firstAfter(this.segments, (segment) => segment.end >= part.offset);
    const near = this.segments[at];
    const next = near && near.start <= part.offset ? this.segments[at + 1] : near;
    if (near && near.start <= part.offset) part = trimFront(part, near.end);
    if (part && next) part = trimBack(part, next.start);
    if (!part || part.next_offset <= part.offset) return;
    if (!part.gap) { this.ranks.add(part.rank); this.attempts.add(part.attempt); }
    const chunk = chunkOf(part);
    this.loaded += chunk.text.length;
    this.note(chunk.end, lineEnd(chunk));
    this._append(chunk);
  }

  _append(chunk) {
    const before = firstAfter(this.segments, (segment) => segment.start > chunk.offset) - 1;
    let segment = this.segments[before];
    if (!segment || chunk.offset > segment.end) {
      segment = { start: chunk.offset, end: chunk.offset, chunks: [], last: new Map() };
      this.segments.splice(before + 1, 0, segment);
    }
    const last = segment.chunks.at(-1);
    segment.end = chunk.end;
    if (last && last.source === chunk.source && !chunk.gap && last.text.length + chunk.text.length <= MOST_JOINED) {
      for (const index of chunk.breaks) last.breaks.push(last.text.length + index);
      last.stamps.push([last.text.length, chunk.stamps[0][1]]);
      last.text += chunk.text;
      last.end = chunk.end;
      last.states = undefined;
    } else {
      segment.chunks.push(chunk);
      follow(segment, chunk);
    }
    const next = this.segments[this.segments.indexOf(segment) + 1];
    if (next && next.start <= segment.end) this._join(segment, next);
  }

  _join(segment, next) {
    segment.chunks = segment.chunks.concat(next.chunks);
    segment.end = next.end;
    this.segments.splice(this.segments.indexOf(next), 1);
    link(segment);
  }

  get isAtEnd() { return this.segments.length > 0 && this.segments.at(-1).end >= this.end.offset; }

  // Lines that have no newline yet, of the sources that wrote them last.
  open() {
    if (!this.isAtEnd) return [];
    const chunks = [...this.segments.at(-1).last.values()].filter((chunk) => tailOf(chunk));
    return chunks.sort((a, b) => a.end - b.end);
  }

  get total() { return this.end.line + this.open().length; }

  // The line of that number, or nothing while it is not loaded.
  at(n) {
    if (n >= this.end.line) {
      const chunk = this.open()[n - this.end.line];
      return chunk && { n, text: tailOf(chunk), state: statesOf(chunk).at(-1), at: chunk.stamps.at(-1)[1], isOpen: true, ...origin(chunk) };
    }
    const [chunk, index] = this._place(n);
    if (!chunk) return undefined;
    if (chunk.isHole) return { n, text: chunk.text.trim(), state: PLAIN, isOpen: false, ...origin(chunk) };
    return { n, text: textIn(chunk, index), state: statesOf(chunk)[index], at: stampOf(chunk, index), isOpen: false, ...origin(chunk) };
  }

  textAt(n) {
    if (n >= this.end.line) return this.at(n)?.text;
    const [chunk, index] = this._place(n);
    return chunk && (chunk.isHole ? chunk.text.trim() : textIn(chunk, index));
  }

  // The number of the line after or before, over a hole in one step.
  step(n, by) {
    const [from] = by > 0 ? this._place(n) : [];
    if (from?.isHole) return from.line;
    const [to] = by < 0 ? this._place(n - 1) : [];
    if (!to?.isHole) return n + by;
    const { chunks } = this.segments.find((segment) => segment.chunks.includes(to));
    const before = chunks[chunks.indexOf(to) - 1];
    return before ? lineEnd(before) : 0;
  }

  _place(n) {
    const segment = this.segments.find((each) => firstLine(each) <= n && n < lineEnd(each.chunks.at(-1)));
    if (!segment) return [];
    const chunk = segment.chunks[firstAfter(segment.chunks, (each) => lineEnd(each) > n)];
    return [chunk, n - chunk.line];
  }

  // The first and the last line + 1 of what is loaded around a line, without a hole.
  run(n) {
    const last = this.segments.at(-1);
    for (const segment of this.segments) {
      const [first, end] = [firstLine(segment), lineEnd(segment.chunks.at(-1))];
      const isEnd = segment === last && this.isAtEnd;
      if (n >= first && (n < end || (isEnd && n < this.total))) return [first, isEnd ? this.total : end];
    }
    return undefined;
  }

  // What is not loaded and holds the line's end: bytes, and lines at its borders.
  hole(n) {
    let from = { offset: 0, line: 0 };
    for (const segment of this.segments) {
      const first = firstLine(segment);
      if (n < first) return { from, to: { offset: segment.start, line: first } };
      from = { offset: segment.end, line: lineEnd(segment.chunks.at(-1)) };
      if (n < from.line) return undefined;
    }
    return from.offset >= this.end.offset ? undefined : { from, to: this.end };
  }

  // The bytes that are not loaded before, or after, what is loaded around a line.
  before(n) {
    const at = this._around(n);
    if (at < 0 || this.segments[at].start === 0) return undefined;
    return { from: this.segments[at - 1]?.end ?? 0, to: this.segments[at].start };
  }

  after(n) {
    const at = this._around(n);
    const to = this.segments[at + 1]?.start ?? this.end.offset;
    return at < 0 || this.segments[at].end >= to ? undefined : { from: this.segments[at].end, to };
  }

  _around(n) {
    const at = this.segments.findIndex((segment) => firstLine(segment) <= n && n < lineEnd(segment.chunks.at(-1)));
    return at >= 0 || n < this.end.line || !this.isAtEnd ? at : this.segments.length - 1;
  }

  // Forget what is farthest from a line until the rest fits; tells whether it forgot anything.
  trim(n) {
    const was = this.loaded;
    while (this.loaded > this.most) {
      const [first, last] = [this.segments[0], this.segments.at(-1)];
      if (first === last && first.chunks.length === 1) break;
      const isFirst = n - first.chunks[0].line > lineEnd(last.chunks.at(-1)) - n;
      const segment = isFirst ? first : last;
      const chunk = isFirst ? segment.chunks.shift() : segment.chunks.pop();
      this.loaded -= chunk.text.length;
      if (!segment.chunks.length) { this.segments.splice(this.segments.indexOf(segment), 1); continue; }
      if (isFirst) segment.start = segment.chunks[0].offset; else segment.end = segment.chunks.at(-1).end;
      segment.isCut = true;
    }
    for (const segment of this.segments) if (segment.isCut) { link(segment); segment.isCut = false; }
    return was !== this.loaded;
  }
}

const origin = ({ stream, rank, attempt, gap }) => ({ stream, rank, attempt, gap });

function stampOf(chunk, index) {
  const start = index ? chunk.breaks[index - 1] + 1 : 0;
  return chunk.stamps[Math.max(0, firstAfter(chunk.stamps, ([at]) => at > start) - 1)][1];
}

function trimFront(part, end) {
  if (part.offset >= end) return part;
  if (part.next_offset <= end) return undefined;
  if (part.gap) return { ...part, offset: end };
  const bytes = encoder.encode(part.text);
  const gone = decoder.decode(bytes.subarray(0, end - part.offset));
  return { ...part, offset: end, line: part.line + breaksOf(gone).length, text: decoder.decode(bytes.subarray(end - part.offset)) };
}

function trimBack(part, start) {
  if (part.next_offset <= start) return part;
  if (part.offset >= start) return undefined;
  const text = decoder.decode(encoder.encode(part.text).subarray(0, start - part.offset));
  return { ...part, next_offset: start, text: part.gap ? part.text : text };
}
