// Opens a report from its file, and prints what became of its own scripts and of what
// was planted in it.
"use strict";
const { look } = require("chromium.cjs");

look(async (browser) => {
  const page = await browser.newPage();
  const asked = new Set();
  page.on("request", (r) => { if (!r.url().startsWith("file:")) { asked.add(r.url()); } });
  page.on("requestfailed", (r) => { if (r.failure().errorText === "csp") { asked.delete(r.url()); } });
  await page.goto("file://" + process.argv[2]);
  console.log(JSON.stringify(await page.evaluate(() => ({
    playback: !document.getElementById("replay").hidden,
    buttons: document.querySelectorAll("button").length,
    planted: document.documentElement.hasAttribute("data-planted"),
  }))));
  if (asked.size > 0) { throw new Error("asked for " + [...asked].join(", ")); }
});
