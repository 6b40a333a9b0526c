// Makes page/ of page.jsx, and tracks.cjs of tracks.mjs. Grafana's scenes want
// react-router-dom 6, its other libraries 5: each gets its own, as in Grafana.
import { build } from "esbuild";
import { createRequire } from "node:module";

const six = createRequire(import.meta.url).resolve("react-router-dom-6");
const routers = {
  name: "routers",
  setup(b) {
    b.onResolve({ filter: /^react-router-dom$/ }, (from) => (from.importer.includes("/@grafana/scenes/") ? { path: six } : undefined));
  },
};

await build({
  entryPoints: ["page.jsx"], bundle: true, format: "esm", splitting: true, outdir: "page", jsx: "automatic", logLevel: "error", plugins: [routers],
  loader: { ".svg": "dataurl", ".woff2": "dataurl", ".ttf": "dataurl" }, define: { "process.env.NODE_ENV": '"production"' },
});
await build({ entryPoints: ["tracks.mjs"], bundle: true, platform: "node", outfile: "tracks.cjs", logLevel: "error" });
