"use strict";
// Uses the live page as somebody at a roadside does, by mouse, touch and
// keyboard, while trial 7 of 8 arrives. Its argument: the page's address. It
// tells what it saw, and ends with status 0 when all of it held.
const { check, look, until } = require("chromium.cjs");

const [, , address] = process.argv;
const PLOTS = ["bps", "mps", "dbm", "cwnd"];

const text = (p, id) => p.locator(`#${id}`).textContent();

async function open(browser, options) {
  const p = await (await browser.newContext(options)).newPage();
  p.faults = [];
  p.on("pageerror", (e) => p.faults.push(String(e)));
  p.on("console", (m) => { if (m.type() === "error" && !m.text().includes("404")) p.faults.push(m.text()); });
  await p.goto(address);
  await until(p, "results are there", () => document.querySelectorAll("#recent button").length === 7 && document.querySelectorAll("#means tr").length === 2);
  await until(p, "a chart is drawn", () => document.querySelector("#plot-bps polyline"));
  return p;
}

// Now, next, and results by speed are told in words.
async function told(p) {
  check((await text(p, "step")) === "now: trial 7, attempt 1", `the trial under way is named: ${await text(p, "step")}`);
  check(["measuring", "window over"].includes(await text(p, "phase")), `its phase is told: ${await text(p, "phase")}`);
  check(/^before: trial 6, attempt 1 accepted, [\d.]+ Mbit\/s$/.test(await text(p, "last")), `what came of the one before: ${await text(p, "last")}`);
  check(/^trial 8, attempt 1, window of 10 s/.test(await text(p, "nextcell")), `the next is named: ${await text(p, "nextcell")}`);
  check(/^[\d.]+ m\/s, car (sends to|receives from) roadside/.test(await text(p, "next")), `so is its speed: ${await text(p, "next")}`);
  check(/ (s|min|h)$/.test(await text(p, "runleft")) && /^about, by the/.test(await text(p, "runleftby")), `the time left, and by what: ${await text(p, "runleft")} ${await text(p, "runleftby")}`);
  // Results are computed a few at a time, beside what happens now.
  await until(p, "six results are drawn", () => document.querySelectorAll("#levels .result").length === 6);
  const means = await p.locator("#means tr").allInnerTexts();
  check(means[0].startsWith("2.8") && means[1].startsWith("8.3"), `means are in the order of speed: ${means}`);
  check((await p.locator("#levels .result").count()) === 6 && (await p.locator("#levels .mean").count()) === 2, "six results and two means are drawn");
  check(/^2.8 m\/s: mean [\d.]+ Mbit\/s of \d; 8.3 m\/s: mean/.test(await p.locator("#levels").getAttribute("aria-label")), "the chart has its text");
  return means.map((m) => m.replace(/\s+/g, " ")).join("; ");
}

// The map has a grid in metres and north, and comes closer.
async function mapped(p) {
  const lines = () => p.locator("#map .rule").count();
  check((await lines()) > 3 && (await p.locator("#map .north").count()) === 1, "the map has a grid, and north");
  const metres = async () => Number((await text(p, "scale")).match(/^grid ([\d.]+) m, from roadside/)[1]);
  const before = await metres();
  await p.click("#mapin");
  await p.click("#mapin");
  check((await metres()) < before, `closer, the grid is finer than ${before} m`);
  await p.click("#mapall");
  check((await metres()) === before, "all nodes are there again");
}

// One cursor is on all charts, with the values of its moment. The attempt is over: nothing moves meanwhile.
async function pointed(p) {
  const box = await p.locator("#plot-bps").boundingBox();
  await p.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await until(p, "the cursor is on all charts", () => document.querySelectorAll('.cursor[visibility="visible"]').length === 4);
  const seen = await p.evaluate((keys) => {
    const s = parseFloat(document.getElementById("at").textContent), m = shown.timeline.find((v) => Math.abs(v.s - s) < 0.01);
    return {
      s, x: keys.map((k) => document.querySelector(`#plot-${k} .cursor`).getAttribute("x1")), at: document.getElementById("at").textContent,
      reads: keys.map((k) => Number(document.getElementById(`read-${k}`).textContent)), values: [m.bps / 1e6, m.mps, m.dbm, m.cwnd],
      slider: Number(document.getElementById("moment").value),
    };
  }, PLOTS);
  check(new Set(seen.x).size === 1 && seen.s > 3 && seen.s < 6.5, `it is at one moment: ${JSON.stringify(seen)}`);
  check(seen.values.every((v, i) => Math.abs(v - seen.reads[i]) <= [0.006, 0.06, 0.6, 0.6][i]), `the values are those of the moment: ${JSON.stringify(seen)}`);
  check(Math.abs(seen.slider - seen.s) < 0.06, "the slider is there too");
  return seen.at;
}

const shownRange = (p) => p.locator("#plot-dbm").getAttribute("aria-label").then((t) => t.match(/second (\d+) to (\d+) /).slice(1).map(Number));

// A drag over one chart zooms all; there is a way back.
async function dragged(p) {
  const box = await p.locator("#plot-mps").boundingBox(), y = box.y + box.height / 2;
  await p.mouse.move(box.x + box.width * 0.3, y);
  await p.mouse.down();
  await p.mouse.move(box.x + box.width * 0.5, y, { steps: 4 });
  check((await p.evaluate(() => Number(document.querySelector("#plot-bps rect.chosen").getAttribute("width")))) > 20, "what is chosen is marked");
  await p.mouse.up();
  const [from, to] = await shownRange(p);
  check(from >= 1 && from <= 3 && to >= 4 && to <= 5, `seconds 2 to 4 are drawn: ${from} to ${to}`);
  await p.click("#whole");
  check((await shownRange(p)).join() === "0,10", "the whole window is back");
}

// By the keyboard alone: a judged attempt is chosen from the list, another by the slider, and now by Escape.
async function keyed(p) {
  await p.locator("#recent button").nth(6).focus();
  await p.keyboard.press("Enter");
  await until(p, "the first attempt is shown", () => document.getElementById("trial").textContent.startsWith("Trial 1, attempt 1") && document.getElementById("looking").textContent.startsWith("Looking at trial 1"));
  check((await p.locator("#recent tr.chosen").count()) === 1, "it is marked in the list");
  await p.locator("#attempt").focus();
  await p.keyboard.press("ArrowRight");
  await until(p, "the slider's attempt is shown", () => document.getElementById("trial").textContent.startsWith("Trial 2, attempt 1") && document.getElementById("trial").textContent.endsWith("(rejected)"));
  const outline = await p.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  check(outline !== "none", "what has the focus is seen");
  const moves = await text(p, "status"), drawn = await p.evaluate(() => JSON.stringify(shown.timeline.length));
  await until(p, "the run goes on above", (had) => state.current.trial === 7 && state.current.timeline.length > had, await p.evaluate(() => state.current.timeline.length));
  check((await text(p, "trial")).startsWith("Trial 2") && drawn === await p.evaluate(() => JSON.stringify(shown.timeline.length)), `what is looked at stays: ${moves}`);
  await p.keyboard.press("Escape");
  await until(p, "now is back", () => document.getElementById("trial").textContent.startsWith("Trial 7, attempt 1"));
  check(await p.locator("#back").isHidden(), "there is nothing to go back from");
}

// Reasons are read as text, whatever is in them.
async function texts(p) {
  const why = await p.locator("#recent .why").allInnerTexts();
  check(why.some((w) => w.startsWith("gate timeout: <img src=x")), `the reason of a rejection is read: ${why}`);
  await until(p, "the event is told", () => document.getElementById("events").textContent.includes("<img src=x"));
  check((await p.locator("main img, #owned").count()) === 0 && !(await p.title()).includes("owned"), "nobody's words are markup");
}

// A finger puts the cursor by a tap, zooms by a drag sideways, and scrolls by one upwards.
async function touched(p) {
  await p.locator("#recent button").nth(3).tap();
  await until(p, "an attempt is shown", () => document.getElementById("looking").textContent.startsWith("Looking"));
  const box = async () => { await p.locator("#plot-dbm").scrollIntoViewIfNeeded(); return p.locator("#plot-dbm").boundingBox(); };
  let b = await box();
  await p.touchscreen.tap(b.x + b.width / 2, b.y + 40);
  await until(p, "a tap puts the cursor", () => /^\d+\.\d s, [\d.]+ Mbit/.test(document.getElementById("at").textContent));
  const cdp = await p.context().newCDPSession(p);
  const touch = (type, x, y) => cdp.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x, y }] });
  b = await box();
  await touch("touchStart", b.x + 120, b.y + 50);
  for (let i = 1; i <= 8; i++) await touch("touchMove", b.x + 120 + 15 * i, b.y + 50);
  await touch("touchEnd");
  await until(p, "a drag sideways zooms", () => !document.getElementById("plot-dbm").getAttribute("aria-label").includes("second 0 to 10"));
  await p.locator("#whole").tap();
  const [needs, has] = await p.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check(needs <= has, `the page is no wider than its screen: ${needs} > ${has}`);
  await p.locator("#back").tap();
  await until(p, "now is back", () => document.getElementById("trial").textContent.startsWith("Trial 7"));
}

look(async (browser) => {
  const wide = await open(browser, { viewport: { width: 1280, height: 900 } });
  console.log(`results by speed: ${await told(wide)}`);
  await mapped(wide);
  await wide.locator("#recent button").nth(6).click();
  await until(wide, "the first attempt is shown", () => document.getElementById("looking").textContent.startsWith("Looking at trial 1"));
  console.log(`at the cursor: ${await pointed(wide)}`);
  await dragged(wide);
  await wide.click("#back");
  await keyed(wide);
  await texts(wide);
  const phone = await open(browser, { viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true, colorScheme: "dark", reducedMotion: "reduce" });
  await touched(phone);
  const moving = await phone.evaluate(() => document.getAnimations().length);
  check(moving === 0, `nothing moves by itself: ${moving}`);
  const faults = [...wide.faults, ...phone.faults];
  check(faults.length === 0, `the pages have no faults: ${faults.join("; ")}`);
});
