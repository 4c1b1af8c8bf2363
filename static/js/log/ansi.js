// Terminal text as spans of style: SGR colours and links to http(s) are kept, every other escape is dropped.

export const PLAIN = Object.freeze({});

const TOKEN = new RegExp([
  "\\x1b\\[([\\x30-\\x3f]*)[\\x20-\\x2f]*([\\x40-\\x7e])", // CSI: parameters, final letter
  "\\x1b\\]([^\\x07\\x1b\\x9c]*)(?:\\x07|\\x1b\\\\|\\x9c)", // OSC: text
  "\\x1b[PX^_][^\\x1b\\x9c]*(?:\\x1b\\\\|\\x9c)", // DCS, SOS, PM, APC
  "\\x1b[\\x20-\\x2f]*[\\x30-\\x7e]?", // two letters, or a lone escape
  "[\\x07\\x08\\x80-\\x9f]", // bell, backspace, C1
].join("|"), "g");
const LEVELS = [0, 95, 135, 175, 215, 255];
const ON = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 21: "underline" };
const OFF = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"] };

// A colour is the number of one of the sixteen, or "r g b".
function colourOf(number) {
  if (number < 16) return number;
  if (number > 231) { const grey = 8 + 10 * (number - 232); return `${grey} ${grey} ${grey}`; }
  const cube = number - 16;
  return [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((n) => LEVELS[n]).join(" ");
}

// The colour after a 38 or 48 at `at`, and how many parameters it took; colons or semicolons.
function extended(codes, at, withColons) {
  const isByte = (n) => n >= 0 && n <= 255;
  if (codes[at + 1] === 5) return [isByte(codes[at + 2]) ? colourOf(codes[at + 2]) : undefined, 2];
  if (codes[at + 1] !== 2) return [undefined, withColons ? codes.length : 0];
  const skip = withColons && codes.length - at > 5 ? 1 : 0; // 38:2:<space>:r:g:b
  const rgb = codes.slice(at + 2 + skip, at + 5 + skip);
  return [rgb.length === 3 && rgb.every(isByte) ? rgb.join(" ") : undefined, 4 + skip];
}

function one(style, codes, at, withColons) {
  const code = codes[at];
  if (code === 0) for (const name in style) delete style[name];
  else if (code === 4 && withColons && codes[at + 1] === 0) delete style.underline;
  else if (ON[code]) style[ON[code]] = true;
  else if (OFF[code]) for (const name of OFF[code]) delete style[name];
  else if (code === 39) delete style.fg;
  else if (code === 49) delete style.bg;
  else if (code >= 30 && code <= 37) style.fg = code - 30;
  else if (code >= 90 && code <= 97) style.fg = code - 82;
  else if (code >= 40 && code <= 47) style.bg = code - 40;
  else if (code >= 100 && code <= 107) style.bg = code - 92;
  else if (code === 38 || code === 48) {
    const [colour, took] = extended(codes, at, withColons);
    if (colour !== undefined) style[code === 38 ? "fg" : "bg"] = colour;
    return took;
  }
  return 0;
}

function sgr(state, parameters) {
  const style = { ...state };
  for (const group of joined(parameters)) {
    const withColons = group.includes(":");
    const codes = group.split(/[;:]/).map((text) => (text === "" ? 0 : Number(text)));
    if (withColons) one(style, codes, 0, true);
    else for (let at = 0; at < codes.length; at++) at += one(style, codes, at, false);
  }
  return Object.keys(style).length ? style : PLAIN;
}

// Parameters with colons stand alone; those with semicolons are read on into one another.
function joined(parameters) {
  if (!parameters.includes(":")) return [parameters];
  return parameters.split(";");
}

function linkOf(osc) {
  const found = /^8;[^;]*;(.*)$/s.exec(osc);
  if (!found) return undefined;
  try {
    const url = new URL(found[1]);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : "";
  } catch {
    return "";
  }
}

// What has no glyph is shown as its control picture, so that binary is seen and harms nothing.
const clean = (text) => text.replace(/[\0-\x08\x0a-\x1f\x7f]/g, (c) => (c === "\x7f" ? "␡" : String.fromCharCode(0x2400 + c.charCodeAt(0))));

// One line → { spans: [{ text, style, link }], state }: the state is for the next line of its source.
export function parse(line, state = PLAIN) {
  const spans = [];
  let link = "";
  let from = 0;
  const push = (to) => { if (to > from) spans.push({ text: clean(line.slice(from, to)), style: state, link }); };
  for (const token of line.matchAll(TOKEN)) {
    push(token.index);
    from = token.index + token[0].length;
    if (token[2] === "m" && !/[<-?]/.test(token[1])) state = sgr(state, token[1]);
    else if (token[3] !== undefined) link = linkOf(token[3]) ?? link;
  }
  push(line.length);
  return { spans, state };
}

export const advance = (line, state) => (line.includes("\x1b") ? parse(line, state).state : state);

export const strip = (line) => parse(line).spans.map((span) => span.text).join("");

// Progress bars write one line over and over: what it shows last, where that begins, how often before.
const HOME = /\r+|\x1b\[[01]?G/g;
const MOST_UPDATES = 100000;

export function fold(line) {
  let end = line.length;
  while (end && line[end - 1] === "\r") end--;
  let from = 0;
  let updates = 0;
  HOME.lastIndex = 0;
  for (let found = HOME.exec(line); found && found.index < end; found = HOME.exec(line)) {
    const after = found.index + found[0].length;
    if (!blank(line, after, end)) { from = after; updates++; }
    if (updates >= MOST_UPDATES) { from = Math.max(from, line.lastIndexOf("\r", end - 1) + 1); break; }
  }
  return { from, end, updates, isMany: updates >= MOST_UPDATES };
}

function blank(line, from, end) {
  const next = line.slice(from, Math.min(end, from + 64));
  return /^(?:\s|\x1b\[[\x30-\x3f]*[\x40-\x7e])*$/.test(next) && from + 64 >= end;
}

// The states that a folded line went through, oldest first.
export const updatesOf = (line) => line.split(HOME).filter((text) => text.trim());
