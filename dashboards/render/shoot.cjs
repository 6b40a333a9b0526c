// Serves the page with a proxy to InfluxDB, opens every dashboard in headless
// Chromium, and keeps a picture of each. It prints one JSON object a dashboard:
// the panels, those without data, and what went wrong.
//
//   node shoot.cjs OUT '{"run": …, "from": ms, "to": ms, …}'
//
// INFLUX_URL, INFLUX_AUTH (a header's value) and CHROMIUM come in the environment.
const { chromium } = require("playwright-core");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");

const [out, text] = process.argv.slice(2);
const asked = JSON.parse(text);
const types = { ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".html": "text/html; charset=utf-8", ".svg": "image/svg+xml" };
const html = `<!doctype html><meta charset="utf-8"><title>dashboard</title><link rel="stylesheet" href="/page/page.css"><style>html, body { margin: 0 } #page { padding: 8px; min-height: 100vh; display: flex; flex-direction: column }</style><div id="page"></div><script>window.grafanaBootData = { settings: {}, user: {}, navTree: [] }</script><script type="module" src="/page/page.js"></script>`;

async function serve(request, response) {
  const url = new URL(request.url, "http://localhost");
  if (url.pathname === "/query") {
    const answer = await fetch(process.env.INFLUX_URL + request.url, { headers: { Authorization: process.env.INFLUX_AUTH } });
    response.writeHead(answer.status, { "Content-Type": "application/json" }).end(Buffer.from(await answer.arrayBuffer()));
    return;
  }
  if (url.pathname === "/") return response.writeHead(200, { "Content-Type": types[".html"] }).end(html);
  const icons = "/public/build/img/icons/";
  const folder = url.pathname.startsWith("/json/") ? path.join(__dirname, "..") : url.pathname.startsWith(icons) ? path.join(__dirname, "node_modules/@grafana/ui/dist/public/img/icons") : __dirname;
  const file = path.join(folder, path.normalize(url.pathname.replace(icons, "/")));
  if (!file.startsWith(folder) || !fs.existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "Content-Type": types[path.extname(file)] ?? "application/octet-stream" }).end(fs.readFileSync(file));
}

async function shoot(browser, port, name) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  // Fonts are not in the packages; what else is missing is told with its address below.
  const missing = (text) => text.startsWith("Failed to load resource");
  if (process.env.DEBUG) page.on("console", (m) => console.error(m.text()));
  page.on("console", (message) => message.type() === "error" && !missing(message.text()) && wrong.push(message.text()));
  page.on("response", (answer) => answer.status() >= 400 && !/favicon.ico$|\.woff2$/.test(answer.url()) && wrong.push(`${answer.status()} ${answer.url()}`));
  const { panels } = JSON.parse(fs.readFileSync(path.join(__dirname, "..", "json", `${name}.json`)));
  const lowest = Math.max(...panels.map((p) => p.gridPos.y + p.gridPos.h));
  await page.setViewportSize({ width: 1440, height: lowest * 38 + 40 }); // a panel out of sight is not drawn
  await page.goto(`http://127.0.0.1:${port}/?${new URLSearchParams({ ...asked, dashboard: name })}`);
  const settled = (n) => document.querySelectorAll('[data-testid^="data-testid Panel header"]').length >= n && !document.querySelector('[aria-label="Panel loading bar"]');
  await page.waitForFunction(settled, panels.length, { timeout: 120_000 }).catch((error) => wrong.push(String(error)));
  await page.waitForLoadState("networkidle");
  // A panel is drawn when it holds a plot, a table, a number, or says that it has no data.
  const drawnAll = () => [...document.querySelectorAll('[data-testid^="data-testid Panel header"]')].every((e) => e.querySelector('.uplot canvas, [role="grid"], [data-testid="no data"], [data-testid="drawn"]'));
  await page.waitForFunction(drawnAll, null, { timeout: 60_000 }).catch((error) => wrong.push(String(error)));
  await page.screenshot({ path: path.join(out, `${name}.png`) });
  const drawn = await page.locator('[data-testid^="data-testid Panel header"]').count();
  const empty = await page.locator('[data-testid^="data-testid Panel header"]:has([data-testid="no data"])').evaluateAll((list) => list.map((e) => e.getAttribute("data-testid").replace("data-testid Panel header ", "")));
  const failed = await page.locator('[data-testid^="data-testid Panel status error"]').count();
  await page.close();
  return { name, panels: panels.length, drawn, empty, failed, wrong: wrong.slice(0, 20) };
}

async function main() {
  fs.mkdirSync(out, { recursive: true });
  const server = http.createServer((q, r) => serve(q, r).catch((error) => r.writeHead(500).end(String(error))));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    for (const file of fs.readdirSync(path.join(__dirname, "..", "json")).sort())
      console.log(JSON.stringify(await shoot(browser, server.address().port, path.basename(file, ".json"))));
  } finally {
    await browser.close();
    server.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
