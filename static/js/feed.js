// The feed socket: tells the page that something changed; parts that care fetch themselves anew.
import { $, $$ } from "./dom.js";
import { refreshTimes } from "./times.js";

const live = $(".live[data-feed]");
const SLOWEST_MS = 30000;
const ENDED = [4401, 4403];
let wait = 1000;

function say(word, off) {
  if (!live) return;
  live.hidden = false;
  live.textContent = word;
  if (off) live.dataset.live = "off"; else delete live.dataset.live;
}

const STOPS = "a[href], button, summary, [tabindex]";

// What has the focus and what is scrolled inside a part, to be put back after the part is replaced.
function placeIn(part) {
  const at = $$(STOPS, part).indexOf(document.activeElement);
  const name = document.activeElement.id || document.activeElement.textContent;
  const scrolled = $$("pre[id]", part).map((el) => [el.id, el.scrollTop, el.scrollTop + el.clientHeight >= el.scrollHeight - 4]);
  return () => {
    const stop = $$(STOPS, part)[at];
    if (stop && name === (stop.id || stop.textContent)) stop.focus({ preventScroll: true });
    for (const [id, top, atEnd] of scrolled) {
      const el = document.getElementById(id);
      if (el) el.scrollTop = atEnd ? el.scrollHeight : top;
    }
  };
}

// Parts that are fetched at once share one answer; a later hint never gets an older one.
const asked = new Map();

function ask(url) {
  if (!asked.has(url)) {
    asked.set(url, fetch(url).then(async (answer) => (answer.ok && !answer.redirected ? answer.text() : "")));
    setTimeout(() => asked.delete(url));
  }
  return asked.get(url);
}

async function refresh(part) {
  const html = await ask(part.dataset.refresh);
  const fresh = new DOMParser().parseFromString(html, "text/html").getElementById(part.id);
  if (!fresh || fresh.innerHTML === part.innerHTML) return;
  const isTyping = document.activeElement.matches("input, select, textarea");
  if (isTyping && part.contains(document.activeElement) || getSelection().containsNode(part, true) && !getSelection().isCollapsed) return;
  if (!("refresh" in fresh.dataset)) delete part.dataset.refresh;
  const putBack = placeIn(part);
  part.replaceChildren(...fresh.childNodes);
  putBack();
  refreshTimes(part);
}

function concerns(part, message) {
  if (message.kind === "opened") return true;
  if (part.dataset.job) return part.dataset.job === message.job;
  return !part.dataset.team || part.dataset.team === message.team;
}

function changed(message) {
  document.dispatchEvent(new CustomEvent("slipway:changed", { detail: message }));
  for (const part of $$("[data-refresh]")) if (concerns(part, message)) refresh(part);
}

function connect() {
  const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/ws/v1/feed`);
  socket.addEventListener("open", () => { wait = 1000; say("Live", false); changed({ kind: "opened" }); });
  socket.addEventListener("message", (event) => changed(JSON.parse(event.data)));
  socket.addEventListener("close", (event) => {
    if (ENDED.includes(event.code)) { say("Signed out", true); location.reload(); return; }
    say(`Reconnecting, ${Math.round(wait / 1000)} s`, true);
    setTimeout(connect, wait + Math.random() * 500);
    wait = Math.min(SLOWEST_MS, wait * 2);
  });
}

if (live) connect();

// What moves by itself, such as a running job, is fetched anew while it is in view.
for (const part of $$("[data-every]")) {
  setInterval(() => { if (!document.hidden && "refresh" in part.dataset) refresh(part); }, 1000 * part.dataset.every);
}
