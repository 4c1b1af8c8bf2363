// A form with data-check is tried while it is typed, and nothing is saved: the answer's part of the same id
// takes the place of the one on the page. data-into names the part, data-asks the button that means "only try".
// A form with data-into alone is sent that way when its button is pressed.
import { $, $$ } from "./dom.js";
import { refreshTimes } from "./times.js";

const WAIT_MS = 400;
const asked = new WeakMap();

async function ask(form, submitter) {
  const mine = (asked.get(form) ?? 0) + 1;
  asked.set(form, mine);
  const into = form.dataset.into ?? "faults";
  const url = form.dataset.check || form.action;
  submitter?.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { method: "POST", body: new FormData(form, submitter ?? button(form)) });
    if (!answer.ok || answer.redirected || mine !== asked.get(form)) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(into);
    if (fresh) show(document.getElementById(into), fresh);
  } finally {
    submitter?.removeAttribute("aria-busy");
  }
}

// What was unfolded stays so, and nothing is replaced under a selection or the focus.
function show(part, fresh) {
  const selection = getSelection();
  if (fresh.isEqualNode(part) || (!selection.isCollapsed && selection.containsNode(part, true))) return;
  const open = $$("details", part).map((el) => el.open);
  $$("details", fresh).forEach((el, n) => { el.open = open[n] ?? el.open; });
  const at = $$("summary, button, pre", part).indexOf(document.activeElement);
  part.replaceChildren(...fresh.childNodes);
  refreshTimes(part);
  if (at >= 0) $$("summary, button, pre", part)[at]?.focus({ preventScroll: true });
}

function button(form) {
  return form.dataset.asks ? $(`button[name=${form.dataset.asks}]`, form) : null;
}

for (const form of $$("form[data-check]")) {
  let timer = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => ask(form), WAIT_MS);
  });
  if (form.dataset.asks) ask(form);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.into) return;
  if (form.dataset.asks && event.submitter?.name !== form.dataset.asks) return;
  event.preventDefault();
  ask(form, event.submitter);
});
