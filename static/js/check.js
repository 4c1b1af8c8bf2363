// A form with data-check is checked while it is typed; nothing is saved.
import { $, $$ } from "./dom.js";

const WAIT_MS = 400;

for (const form of $$("form[data-check]")) {
  let timer = 0;
  let asked = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    const mine = ++asked;
    timer = setTimeout(async () => {
      const answer = await fetch(form.dataset.check, { method: "POST", body: new FormData(form) });
      if (!answer.ok || mine !== asked) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("faults");
      if (fresh) $("#faults", form).replaceWith(fresh);
    }, WAIT_MS);
  });
}
