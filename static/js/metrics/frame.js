// The samples of a span, in buckets: from REST at first, then each sample as it comes.
const PAUSE = 5; // seconds between two samples
const LATE = 15; // without one for longer there is a gap

const seconds = (text) => Date.parse(text) / 1000;

export class Frame {
  constructor({ step_seconds: step, series, events }) {
    this.step = step;
    this.series = new Map(); // name → Map of a bucket's start → { value, count }, value null for a gap
    this.last = new Map(); // name → start of its newest bucket with samples
    this.events = [];
    for (const [name, points] of Object.entries(series)) {
      const cells = new Map();
      for (const [at, value] of points) {
        const start = seconds(at);
        cells.set(start, { value, count: step / PAUSE });
        if (value !== null) this.last.set(name, start);
      }
      this.series.set(name, cells);
    }
    this.note(events);
  }

  note(events) {
    const known = new Set(this.events.map(({ id }) => id));
    for (const event of events) {
      const id = `${event.kind} ${event.name} ${event.at} ${event.rank ?? ""}`;
      if (!known.has(id)) this.events.push({ ...event, id, x: seconds(event.at) });
    }
  }

  get keys() { return [...this.series.keys()]; }

  get isEmpty() { return this.last.size === 0; }

  get newest() { return Math.max(...this.last.values()); }

  add({ at, series }) {
    const start = Math.floor(seconds(at) / this.step) * this.step;
    for (const [name, value] of Object.entries(series)) {
      if (!this.series.has(name)) this.series.set(name, new Map());
      const cells = this.series.get(name);
      const last = this.last.get(name);
      if (last !== undefined && start - last > LATE + this.step) cells.set(last + this.step, { value: null, count: 0 });
      const cell = cells.get(start);
      const count = this.step > PAUSE && cell?.value != null ? cell.count : 0;
      cells.set(start, { value: ((cell?.value ?? 0) * count + value) / (count + 1), count: count + 1 });
      if (last === undefined || start > last) this.last.set(name, start);
    }
  }

  forget(before) {
    for (const cells of this.series.values()) for (const at of cells.keys()) if (at < before) cells.delete(at);
  }

  // Starts of all buckets of the lines, in order.
  places(lines) {
    const found = new Set();
    for (const { keys } of lines) for (const key of keys) for (const at of this.series.get(key)?.keys() ?? []) found.add(at);
    return [...found].sort((a, b) => a - b);
  }

  // Values of a line at these places: null in a gap, undefined between two samples.
  values({ keys, fold }, places) {
    if (keys.length === 1) return places.map((at) => this.series.get(keys[0])?.get(at)?.value);
    const held = keys.map((key) => new Held(this.series.get(key) ?? new Map()));
    return places.map((at) => {
      const found = held.map((one) => one.at(at)).filter((value) => value !== undefined && value !== null);
      return found.length ? FOLDS[fold](found) : null;
    });
  }
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const FOLDS = {
  sum,
  mean: (values) => sum(values) / values.length,
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
};

// A series that keeps its value between two samples, so that sums do not dip where one is a little later.
class Held {
  constructor(cells) {
    this.cells = cells;
    this.since = -Infinity;
  }

  at(place) {
    const cell = this.cells.get(place);
    if (cell) [this.value, this.since] = [cell.value, place];
    return place - this.since <= LATE ? this.value : undefined;
  }
}
