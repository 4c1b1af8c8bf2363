// Theme: system → light → dark. A cookie tells the server, so that no page flashes.
import { $$ } from "./dom.js";

const THEMES = ["system", "light", "dark"];
const root = document.documentElement;
const current = () => root.dataset.theme ?? "system";
const name = () => $$("[data-theme-name]").forEach((el) => { el.textContent = current(); });

export function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length];
  if (theme === "system") delete root.dataset.theme; else root.dataset.theme = theme;
  const age = theme === "system" ? 0 : 31536000;
  document.cookie = `theme=${theme}; path=/; max-age=${age}; samesite=lax`;
  name();
}

name();
