"use strict";
// Uses the timelines of a report, and prints what they tell of the first row's
// trial at a moment. Its argument: the report. It ends with status 0 when all held.
const { check, look } = require("chromium.cjs");

look(async (browser) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const faults = [];
  page.on("pageerror", (e) => faults.push(String(e)));
  page.on("console", (m) => { if (m.type() === "error") faults.push(m.text()); });
  await page.goto("file://" + process.argv[2]);
  await page.locator("#timelines h2").evaluate((e) => e.scrollIntoView());
  const strips = await page.locator(".timelines .strip").count();
  const cursors = () => page.evaluate(() => [...document.querySelectorAll(".strip .cursor")].filter((c) => c.getAttribute("visibility") === "visible").length);
  const output = () => page.locator("#strips output").textContent();
  const range = () => page.locator(".timelines .strip").first().evaluate((s) => [s.viewBox.baseVal.x, s.viewBox.baseVal.width]);

  const box = await page.locator(".timelines .strip").nth(7).boundingBox(), y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width / 2, y);
  await page.waitForFunction(() => document.querySelector("#strips output").textContent === "5.0 s");
  check(await cursors() === strips && strips === 20, `all of ${strips} strips have the cursor`);

  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, y, { steps: 4 });
  await page.mouse.up();
  const [from, width] = await range();
  check(Math.abs(from - 84) < 4 && Math.abs(width - 42) < 4, `seconds 5 to 7.5 are drawn: ${from}, ${width}`);
  await page.locator("#strips button").nth(2).click();
  check((await range()).join() === "0,168", "the whole window is back");

  await page.locator("#strips input").focus();
  await page.keyboard.press("Home");
  for (let i = 0; i < 32; i++) await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector("#strips output").textContent === "3.2 s");
  check(await cursors() === strips, "the slider's cursor is on all strips");
  const seen = await page.evaluate(() => {
    const row = document.querySelector("table.timelines tbody tr"), heads = document.querySelector("table.timelines thead tr").cells;
    return {
      trial: parseInt(row.querySelector("b").textContent, 10), at_s: 3.2,
      told: [...row.querySelectorAll(".told")].map((e) => Number(e.textContent)),
      pixelOf: [...heads].slice(1).map((th) => (th.dataset.high - th.dataset.low) / 36),
    };
  });
  await page.emulateMedia({ media: "print" });
  check(await page.locator("#strips").isHidden() && await page.locator(".told").first().isHidden(), "paper has no cursor");
  check(faults.length === 0, `the page has no faults: ${faults.join("; ")} ${await output()}`);
  console.log(JSON.stringify(seen));
});
