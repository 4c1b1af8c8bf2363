// Toasts: what just happened. Those the server wrote are shown the same way.
import { $, $$, icon, make } from "./dom.js";

const ICONS = { ok: "s-succeeded", bad: "s-failed", warn: "s-warn" };
const STAY_MS = { bad: 15000 };

export function toast(title, detail = "", tone = "") {
  const box = $(".toasts");
  if (!box) return;
  const body = make("div", {}, make("b", { text: title }));
  if (detail) body.append(make("small", { text: detail }));
  const close = make("button", { className: "btn quiet icon small", type: "button", "aria-label": "Dismiss", "data-close": "" }, icon("x"));
  const el = make("div", { className: "toast" }, body, close);
  if (tone) { el.dataset.tone = tone; el.prepend(icon(ICONS[tone] ?? "s-info")); }
  box.append(el);
  leave(el);
}

function leave(el) {
  let timer = 0;
  const start = () => { timer = setTimeout(() => el.remove(), STAY_MS[el.dataset.tone] ?? 6000); };
  el.addEventListener("pointerenter", () => clearTimeout(timer));
  el.addEventListener("focusin", () => clearTimeout(timer));
  el.addEventListener("pointerleave", start);
  start();
}

$$(".toasts > .toast").forEach(leave);
