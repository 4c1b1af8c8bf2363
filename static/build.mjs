// Bundles static/js/main.js and what it imports lazily into build/static/js.
import { rmSync } from "node:fs";
import { build } from "esbuild";

rmSync("build/static", { recursive: true, force: true });
await build({
  entryPoints: ["static/js/main.js"],
  outdir: "build/static/js",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  sourcemap: true,
  logLevel: "warning",
});
