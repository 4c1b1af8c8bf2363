// Dialogs, menus, copy buttons, and the question before something that cannot be undone.
import { $, $$, make } from "./dom.js";
import { nextTheme } from "./theme.js";
import { swapTimes } from "./times.js";
import { toast } from "./toast.js";

export function open(id) {
  const dialog = document.getElementById(id);
  if (dialog && !dialog.open) { dialog.showModal(); $("input:not([type=hidden])", dialog)?.select(); }
}

async function copy(el) {
  const source = el.dataset.copy ? $(el.dataset.copy) : null;
  const text = source ? (source.value ?? source.textContent).trim() : el.dataset.copyText;
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied", "", "ok");
  } catch {
    if (source) getSelection().selectAllChildren(source);
    toast("The browser does not let me copy", "The text is selected: press Ctrl C.", "warn");
  }
}

const ACTS = { theme: nextTheme, times: swapTimes };

document.addEventListener("click", (event) => {
  for (const menu of $$("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  if (event.target.matches("dialog")) { event.target.close(); return; }
  const el = event.target.closest("[data-open], [data-close], [data-copy], [data-copy-text], [data-act]");
  if (!el) return;
  if (el.dataset.open) open(el.dataset.open);
  if ("close" in el.dataset) {
    const layer = el.closest("dialog, .toast");
    if (layer?.matches("dialog")) layer.close(); else layer?.remove();
  }
  if (el.dataset.copy || el.dataset.copyText) copy(el);
  ACTS[el.dataset.act]?.();
});

// A form with data-confirm asks first: data-confirm is the question, data-verb the button's word.
function ask(form, submitter) {
  const keep = make("button", { className: "btn quiet", type: "button", text: form.dataset.keep ?? "Cancel", "data-close": "" });
  const go = make("button", { className: "btn danger", type: "button", text: form.dataset.verb ?? "Go on" });
  const head = make("div", { className: "dialog-head" }, make("h2", { id: "confirm-title", text: form.dataset.confirm }));
  const body = make("div", { className: "dialog-body" }, make("p", { text: form.dataset.detail ?? "" }));
  const dialog = make("dialog", { className: "dialog", "aria-labelledby": "confirm-title" }, head, body, make("div", { className: "dialog-foot" }, keep, go));
  go.addEventListener("click", () => {
    form.dataset.confirmed = "";
    dialog.close();
    // The part of the page that held the form may have been fetched anew while the question stood.
    if (!form.isConnected) { form.hidden = true; document.body.append(form); }
    form.requestSubmit(submitter);
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  keep.focus();
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.confirm && !("confirmed" in form.dataset)) {
    event.preventDefault();
    ask(form, event.submitter);
    return;
  }
  // A second click must not send twice.
  if (form.method === "post") event.submitter?.setAttribute("aria-busy", "true");
});
addEventListener("pageshow", () => $$("[aria-busy=true].btn").forEach((el) => el.removeAttribute("aria-busy")));

// A page that came back with an error opens the dialog that holds the form, at its first wrong field.
const wrong = $("[aria-invalid=true]");
const holder = wrong?.closest("dialog");
if (holder) holder.showModal();
wrong?.focus();

$(".tabs [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

// Filters apply as soon as a choice is made.
document.addEventListener("change", (event) => {
  if (event.target.matches("form[data-auto] select")) event.target.form.requestSubmit();
});
