// The socket of a log: goes on from the last offset after every break, so nothing is lost or doubled.
const REFUSED = [4401, 4403];
const SLOWEST_MS = 30000;
const NAP_MS = 20000; // a clock that jumps by more has slept, and its socket is dead

export class Follow {
  // url(offset) → address; heard(message); said(state, seconds): live, waiting, ended or refused.
  constructor({ url, offset, heard, said }) {
    Object.assign(this, { url, offset, heard, said });
    this.wait = 1000;
    this.beat = Date.now();
    this.timer = setInterval(() => this._tick(), 1000);
    this.wake = () => { if (!document.hidden && this.due) this._connect(); };
    addEventListener("online", this.wake);
    document.addEventListener("visibilitychange", this.wake);
    this._connect();
  }

  close() {
    this.isOver = true;
    clearInterval(this.timer);
    removeEventListener("online", this.wake);
    document.removeEventListener("visibilitychange", this.wake);
    this.socket?.close();
  }

  _connect() {
    this.due = 0;
    this.socket?.close();
    const socket = new WebSocket(this.url(this.offset));
    this.socket = socket;
    socket.addEventListener("open", () => { if (socket === this.socket) this.said("live"); });
    socket.addEventListener("message", (event) => { if (socket === this.socket) this._hear(JSON.parse(event.data)); });
    socket.addEventListener("close", (event) => { if (socket === this.socket) this._closed(event.code); });
  }

  _hear(message) {
    this.wait = 1000;
    if (message.next_offset > this.offset) this.offset = message.next_offset;
    if (message.type === "end") { this.close(); this.said("ended"); }
    this.heard(message);
  }

  _closed(code) {
    if (this.isOver) return;
    if (REFUSED.includes(code)) { this.close(); this.said("refused"); return; }
    this.due = Date.now() + this.wait * (0.75 + Math.random() / 2);
    this.wait = Math.min(SLOWEST_MS, this.wait * 2);
    this._tick();
  }

  _tick() {
    const slept = Date.now() - this.beat > NAP_MS;
    this.beat = Date.now();
    if (slept && !this.due) { this._connect(); return; }
    if (!this.due) return;
    if (slept || this.due <= Date.now()) this._connect();
    else this.said("waiting", Math.ceil((this.due - Date.now()) / 1000));
  }
}
