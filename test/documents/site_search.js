// Searches the site as a reader does who opened it from a folder, and waits for a
// page to be found. It prints a line for each error, and for each address that was
// asked for on a network.
const { chromium } = require("playwright-core");

(async () => {
  const [page, words, wanted] = process.argv.slice(2);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  process.on("SIGTERM", () => browser.close().finally(() => process.exit(1)));
  try {
    const tab = await browser.newPage();
    tab.on("request", (r) => { if (!/^(file|data|blob|about):/.test(r.url())) console.log("asked", r.url()); });
    tab.on("pageerror", (e) => console.log("error", e.message));
    await tab.goto(page);
    await tab.locator(".md-search__button").first().click();
    await tab.keyboard.type(words);
    await tab.locator(`[role=option][href*="${wanted}"]`).first().waitFor();
  } finally {
    await browser.close();
  }
})().catch((e) => { console.error(e); process.exit(1); });
