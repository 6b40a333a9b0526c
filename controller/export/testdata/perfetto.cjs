// Opens a trace in Perfetto's own page and prints the rows that its trace processor
// answers to each query, one JSON array a line.
//   perfetto.cjs FOLDER TRACE QUERY…   FOLDER has Perfetto's page
"use strict";
const { look } = require("chromium.cjs");
const fs = require("fs");
const http = require("http");
const path = require("path");

const [folder, trace, ...queries] = process.argv.slice(2);
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm",
  ".json": "application/json", ".png": "image/png", ".woff2": "font/woff2" };

look(async (browser) => {
  const server = http.createServer((ask, answer) => {
    const at = new URL(ask.url, "http://localhost").pathname;
    const file = at === "/trace" ? trace : path.join(folder, path.normalize(at === "/" ? "/index.html" : at));
    fs.readFile(file, (err, data) => {
      answer.writeHead(err ? 404 : 200, { "Content-Type": types[path.extname(file)] || "application/octet-stream" });
      answer.end(err ? "" : data);
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.waitForFunction(() => window.app !== undefined, null, { timeout: 60000 });
    await page.evaluate(async () => {
      const buffer = await (await fetch("/trace")).arrayBuffer();
      window.app.openTraceFromBuffer({ buffer, title: "trace", fileName: "trace.json" });
    });
    await page.waitForFunction(() => window.app.trace && window.app.trace.engine, null, { timeout: 60000 });
    for (const query of queries) {
      const rows = await page.evaluate(async (sql) => {
        const result = await window.app.trace.engine.query(sql);
        const columns = result.columns();
        const rows = [];
        for (const it = result.iter({}); it.valid(); it.next()) {
          rows.push(columns.map((c) => { const v = it.get(c); return typeof v === "bigint" ? Number(v) : v; }));
        }
        return rows;
      }, query);
      console.log(JSON.stringify(rows));
    }
  } finally {
    server.close();
  }
});
