"use strict";
// What scripts that look at pages share.
const { chromium } = require("playwright-core");

const PATIENCE_MS = 100000; // far more than anything takes on a busy machine

// check ends the script unless something holds.
function check(holds, what) {
  if (!holds) throw new Error(`it does not hold that ${what}`);
}

// until waits for something that a page can say of itself.
async function until(page, what, holds, arg) {
  try {
    await page.waitForFunction(holds, arg, { timeout: PATIENCE_MS });
  } catch (e) {
    const says = (await page.locator("body").innerText()).slice(0, 500);
    throw new Error(`waited in vain until ${what}; the page begins with ${JSON.stringify(says)}: ${e.message}`);
  }
}

// look opens a browser, and ends with status 0 when use held. No browser stays behind.
async function look(use) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  process.on("SIGTERM", () => browser.close().finally(() => process.exit(1)));
  try {
    await use(browser);
  } catch (e) {
    console.error(e.message);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}

module.exports = { check, look, until };
