// One line as an element. What a line says becomes text and nothing else.
import { icon, make } from "../dom.js";
import { advance, fold, parse, updatesOf } from "./ansi.js";

const MOST_SHOWN = 20000;
const MOST_OPENED = 1000;
const STYLES = { bold: "a-b", dim: "a-d", italic: "a-i", underline: "a-u", inverse: "a-inv" };
const BRIGHT = { 9: 1, 10: 2, 11: 3, 12: 4, 13: 5, 14: 6 };
const ERROR = /\b(?:ERROR|CRITICAL|FATAL|PANIC)\b|(?:Error|Exception)\b(?=:|$)|^Traceback \(|^(?:\S+: )?(?:fatal|panic|error):/m;
const number = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

export const isError = (text) => ERROR.test(text);
export const count = (n) => number.format(n);

// The lines of a text in which a search finds something, as [from, to] in the shown text.
export function rangesOf(text, pattern) {
  return pattern ? [...text.matchAll(pattern)].map((hit) => [hit.index, hit.index + hit[0].length]) : [];
}

function paint(el, { fg, bg, ...rest }) {
  for (const name in rest) el.classList.add(STYLES[name]);
  if (typeof fg === "number") el.classList.add(`a${BRIGHT[fg] ?? fg}`);
  else if (fg) { el.classList.add("a-rgb"); el.style.setProperty("--fg", `rgb(${fg})`); }
  if (typeof bg === "number") el.classList.add(`a-bg${BRIGHT[bg] ?? bg}`);
  else if (bg) { el.classList.add("a-on"); el.style.setProperty("--bg", `rgb(${bg})`); }
}

// The text of a span, cut where a hit begins or ends.
function* pieces(text, start, ranges, isHit) {
  let at = 0;
  for (const [from, to] of ranges) {
    const [low, high] = [Math.max(from - start, at), Math.min(to - start, text.length)];
    if (high <= low) continue;
    if (low > at) yield text.slice(at, low);
    yield make("mark", { className: isHit ? "now" : "", text: text.slice(low, high) });
    at = high;
  }
  if (at < text.length) yield text.slice(at);
}

function fill(code, spans, { pattern, isHit }) {
  const ranges = rangesOf(spans.map((span) => span.text).join(""), pattern);
  let start = 0;
  for (const { text, style, link } of spans) {
    const inside = [...pieces(text, start, ranges, isHit)];
    start += text.length;
    if (!link && !Object.keys(style).length) { code.append(...inside); continue; }
    const el = link ? make("a", { href: link, rel: "noopener noreferrer nofollow", target: "_blank" }) : make("span");
    paint(el, style);
    if (style.inverse) el.append(make("span", {}, ...inside)); else el.append(...inside);
    code.append(el);
  }
}

function foldButton(line, folded, opened, toggle) {
  const said = `${folded.isMany ? "over " : ""}${count(folded.updates)} ${folded.updates === 1 ? "update" : "updates"} folded`;
  const el = make("button", { className: "fold", type: "button", "aria-expanded": String(opened) }, icon(opened ? "down" : "right"), said);
  el.addEventListener("click", () => toggle(line.n));
  return el;
}

function codeOf(line, options) {
  const { opened, toggle, withRank } = options;
  const code = make("code");
  const folded = fold(line.text);
  const isOpened = opened.has(line.n);
  if (folded.updates) code.append(foldButton(line, folded, isOpened, toggle), " ");
  if (withRank) code.append(make("span", { className: "a8", text: `[rank ${line.rank}] ` }));
  let [text, state] = [line.text.slice(folded.from, folded.end), line.state];
  if (isOpened && folded.updates) text = updatesOf(line.text).slice(-MOST_OPENED).join("\n");
  else state = advance(line.text.slice(0, folded.from), state);
  const isLong = text.length > MOST_SHOWN && !isOpened;
  const shown = isLong ? text.slice(0, MOST_SHOWN) : text;
  for (const [at, part] of shown.split("\n").entries()) {
    if (at) code.append("\n");
    const { spans, state: next } = parse(part, state);
    state = next;
    fill(code, spans, options);
  }
  if (isLong) {
    const more = make("button", { className: "fold", type: "button", text: `${count(text.length - MOST_SHOWN)} more characters` });
    more.addEventListener("click", () => toggle(line.n));
    code.append(" ", more);
  }
  return code;
}

export function rowOf(line, options) {
  if (line.gap) {
    return make("div", { className: "ln-gap", "data-tone": "warn" }, icon("s-warn"), make("span", { text: line.text }));
  }
  const isShort = line.text.length < MOST_SHOWN;
  const classes = ["ln", line.stream === "stderr" && "stderr", isShort && isError(line.text) && "err", options.picked === line.n && "picked"];
  const name = `#L${line.n + 1}`;
  const at = new Date(line.at * 1000);
  return make(
    "div",
    { className: classes.filter(Boolean).join(" ") },
    make("a", { href: name, text: count(line.n + 1), tabindex: "-1", title: "Copy a link to this line" }),
    make("time", { text: clock.format(at), title: exactly.format(at) }),
    codeOf(line, options),
  );
}

export function waitingRow(n, failed, again) {
  const said = failed ? `Line ${count(n + 1)} could not be loaded: ${failed}` : `Loading line ${count(n + 1)}`;
  const el = make("div", { className: "ln-gap", "data-tone": failed ? "warn" : "mute" }, make("span", { text: said }));
  if (failed) {
    const button = make("button", { className: "btn small", type: "button", text: "Try again" });
    button.addEventListener("click", again);
    el.append(button);
  }
  return el;
}
