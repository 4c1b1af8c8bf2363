// A window on lines: only what is near the reader is in the page, however long the log is.
//
// Rows near the reader stand in normal flow between two spacers, so they may wrap and be of any
// height. The spacers stand for all other lines by an average height, scaled down when the whole would
// be higher than browsers allow. After every change the anchor row is put back where it was.
const MOST_HEIGHT = 8_000_000;
const SPARE = 50;
const FIRST_HEIGHT = 19;

export class View {
  // need(n): a line that is not loaded is wanted. near(first, last): what is drawn. scrolled(): by the
  // reader. While `follows` is set, another size keeps the end in view.
  constructor(el, { lines, row, isShown, waiting, need, near, scrolled }) {
    Object.assign(this, { el, lines, row, isShown, waiting, need, near, scrolled });
    [this.top, this.bottom] = [document.createElement("div"), document.createElement("div")];
    this.rows = new Map(); // line number → element, in order
    this.height = FIRST_HEIGHT;
    this.follows = false;
    this.expected = -1;
    el.replaceChildren(this.top, this.bottom);
    el.addEventListener("scroll", () => this._scrolled(), { passive: true });
    new ResizeObserver(() => this._resized()).observe(el);
  }

  get perLine() {
    const total = Math.max(1, this.lines.total);
    return Math.min(this.height, MOST_HEIGHT / total);
  }

  get visible() { return Math.ceil(this.el.clientHeight / this.height) || 1; }

  get isAtEnd() { return this.rows.has(this.lines.total - 1) && this.el.scrollHeight - this.el.scrollTop - this.el.clientHeight < 24; }

  // The first row that can be seen, and how far below the upper edge it begins (mostly negative).
  anchor() {
    const edge = this.el.getBoundingClientRect().top;
    for (const [n, row] of this.rows) {
      const box = row.getBoundingClientRect();
      if (box.bottom > edge + 1) return { n, y: box.top - edge };
    }
    return { n: Math.max(0, this.lines.total - 1), y: 0 };
  }

  // The numbers of the rows that can be seen.
  seen() {
    const { top, bottom } = this.el.getBoundingClientRect();
    return [...this.rows].filter(([, row]) => { const box = row.getBoundingClientRect(); return box.bottom > top && box.top < bottom; }).map(([n]) => n);
  }

  show(n, y = 0) {
    const last = Math.max(0, this.lines.total - 1);
    this._draw(Math.max(0, Math.min(n, last)), y);
  }

  middle(n) { this.show(n, Math.max(0, this.el.clientHeight / 2 - this.height)); }

  toEnd() {
    const last = this.lines.total - 1;
    if (last < 0) { this._empty(); return; }
    this._draw(last, this.el.clientHeight);
    this._scroll(this.el.scrollHeight);
  }

  // Draw again what changed: rows from a line on, or all. What is the same stays, with its selection.
  refresh(from = 0) {
    const { n, y } = this.anchor();
    for (const [at, row] of [...this.rows]) {
      if (at < from) continue;
      if (at >= this.lines.total || !this.lines.run(at)) { this._remove(at); continue; }
      const fresh = this.row(at);
      if (!row.isEqualNode(fresh)) { row.replaceWith(fresh); this.rows.set(at, fresh); }
    }
    if (!this.lines.total) this._empty(); else if (this.follows) this.toEnd(); else this.show(n, y);
  }

  _empty() {
    for (const n of [...this.rows.keys()]) this._remove(n);
    for (const el of [this.top, this.bottom]) el.style.height = "0";
  }

  _remove(n) { this.rows.get(n).remove(); this.rows.delete(n); }

  // The numbers to be drawn around a line: enough for the height, without a hole.
  _wanted(n) {
    const run = this.lines.run(n);
    if (!run) return [n];
    const around = this.visible + SPARE;
    const numbers = [];
    for (let at = this.lines.step(n, -1); at >= run[0] && numbers.length < around; at = this.lines.step(at, -1)) if (this.isShown(at)) numbers.unshift(at);
    const before = numbers.length;
    for (let at = n; at < run[1] && numbers.length - before < around; at = this.lines.step(at, 1)) if (this.isShown(at)) numbers.push(at);
    return numbers.length ? numbers : [n];
  }

  _draw(n, y) {
    const wanted = this._wanted(n);
    const isLoaded = this.lines.run(n) !== undefined;
    const keep = new Set(wanted);
    for (const at of [...this.rows.keys()]) if (!keep.has(at) || this.rows.get(at).dataset.waiting) this._remove(at);
    const old = this.rows;
    this.rows = new Map();
    let place = this.top;
    for (const at of wanted) {
      const row = old.get(at) ?? this._make(at, isLoaded);
      if (place.nextSibling !== row) place.after(row);
      this.rows.set(at, row);
      place = row;
    }
    const [first, last] = [wanted[0], wanted.at(-1)];
    this._space(first, last, wanted.length);
    this._put(this.rows.has(n) ? n : wanted.findLast((at) => at <= n) ?? first, y);
    if (!isLoaded) this.need(n); else this.near(first, last, this._spare());
  }

  // How many pixels of drawn rows are above and below what can be seen.
  _spare() {
    const { top, bottom } = this.el.getBoundingClientRect();
    return { above: top - this.top.getBoundingClientRect().bottom, below: this.bottom.getBoundingClientRect().top - bottom };
  }

  _make(n, isLoaded) {
    if (isLoaded) return this.row(n);
    const row = this.waiting(n);
    row.dataset.waiting = "1";
    return row;
  }

  _space(first, last, drawn) {
    const box = this.bottom.offsetTop - this.top.offsetTop - this.top.offsetHeight;
    if (drawn > 20 && box > 0) this.height = box / drawn;
    this.top.style.height = `${first * this.perLine}px`;
    this.bottom.style.height = `${Math.max(0, this.lines.total - 1 - last) * this.perLine}px`;
  }

  _put(n, y) {
    const row = this.rows.get(n);
    const now = row.getBoundingClientRect().top - this.el.getBoundingClientRect().top;
    this._scroll(this.el.scrollTop + now - y);
  }

  _scroll(to) {
    this.el.scrollTop = to;
    this.expected = this.el.scrollTop;
  }

  _scrolled() {
    if (Math.abs(this.el.scrollTop - this.expected) < 1) return;
    this.expected = -1;
    this.scrolled();
    const { above, below } = this._spare();
    const high = this.el.clientHeight;
    if (-above >= high || -below >= high) { this._jump(); return; }
    if ((above < high / 2 && this.top.offsetHeight) || (below < high / 2 && this.bottom.offsetHeight)) {
      const { n, y } = this.anchor();
      this._draw(n, y);
    }
  }

  _jump() {
    const room = this.el.scrollHeight - this.el.clientHeight;
    const ratio = room > 0 ? this.el.scrollTop / room : 0;
    if (ratio > 0.9999) this.toEnd(); else this.show(Math.round(ratio * Math.max(0, this.lines.total - this.visible)));
  }

  _resized() {
    if (this.width === this.el.clientWidth && this.tall === this.el.clientHeight) return;
    [this.width, this.tall] = [this.el.clientWidth, this.el.clientHeight];
    if (!this.lines.total) return;
    if (this.follows) this.toEnd(); else { const { n, y } = this.anchor(); this.show(n, y); }
  }
}
