// Bundles static/js/main.js and what it imports lazily, and stylesheets of packages, into build/static.
import { rmSync } from "node:fs";
import { build } from "esbuild";

rmSync("build/static", { recursive: true, force: true });
await build({
  entryPoints: { "js/main": "static/js/main.js", "css/uplot": "uplot/dist/uPlot.min.css" },
  outdir: "build/static",
  chunkNames: "js/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  sourcemap: true,
  logLevel: "warning",
});
