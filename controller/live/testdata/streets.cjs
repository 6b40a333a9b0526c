"use strict";
// Looks at the map of the live page beside a run with a street map, or with none, or with a broken one. Its
// arguments: the page's address, and which of these it is. With a third, a folder, it leaves pictures there. It ends
// with status 0 when all of it held.
const { check, look, until } = require("chromium.cjs");

const [, , address, map, pictures] = process.argv;

// Of ../../streets/testdata/town.py: where metres are, and two places of its railway, which is straight between them.
const NORTH = 1 / 111194.9, LAT = 52.5, LON = 13.4, EAST = NORTH / Math.cos((LAT * Math.PI) / 180);
const at = ([east, north], s) => [LAT + north * NORTH, LON + east * EAST, s];
const RAIL = [[-700, -800], [-420, 300]];

async function open(browser, options) {
  const p = await (await browser.newContext(options)).newPage();
  p.faults = [];
  p.asked = [];
  p.on("pageerror", (e) => p.faults.push(String(e)));
  p.on("console", (m) => { if (m.type() === "error") p.faults.push(m.text()); });
  p.on("response", (r) => { if (/\/(streets|picture)\?/.test(r.url())) p.asked.push(r); });
  await p.goto(address);
  await until(p, "the tracks are drawn", () => document.querySelectorAll("#map .dot").length > 5);
  return p;
}

// drive shows a car that was driven along the railway towards the other node, as if the run had had it.
async function drive(p, width) {
  const track = Array.from({ length: 201 }, (_, i) => at([0, 1].map((k) => RAIL[0][k] + ((RAIL[1][k] - RAIL[0][k]) * i) / 200), i / 20));
  await p.evaluate(([track, still]) => {
    looked = { trial: 1, attempt: 1 };
    shown = { ...shown, ...looked, nodes: shown.nodes.map((n) => ({ ...n, track: n.name === shown.car ? track : [still] })) };
    drawShown();
  }, [track, at(RAIL[1], 0)]);
  for (const closer of [1, 4, 16]) {
    const asked = p.asked.length;
    while ((await p.evaluate(() => closer)) < closer) await p.click("#mapin");
    if (closer > 1) await until(p, `streets are there ${closer} times closer`, () => !sheet.asking && sheet.box && size(sheet.box) < 0.02);
    await until(p, "the railway is drawn", () => document.querySelector("#map .streets .rail"));
    const seen = await p.evaluate(away);
    check(seen.dots > 1 && seen.most <= 1.5, `${closer} times closer, at ${width}: the track lies on its railway: ${JSON.stringify(seen)}`);
    console.log(`${width} wide, ${closer} times closer: ${seen.dots} places, ${seen.most.toFixed(2)} pixels from the railway at most; ${p.asked.length - asked} drawings asked for`);
  }
  await p.click("#mapall");
}

// away is how many pixels the dots of the drawing are from the railway at most. It runs in the page.
function away() {
  const [a, , , d, e, f] = document.querySelector("#map .streets").getAttribute("transform").match(/-?[\d.e-]+/g).map(Number);
  const segments = [];
  for (const part of document.querySelector("#map .streets .rail").getAttribute("d").split("M").slice(1)) {
    const [start, steps] = part.split("l").map((t) => t.match(/-?\d+/g).map(Number));
    let [x, y] = start;
    for (let i = 0; i < steps.length; i += 2) {
      const next = [x + steps[i], y + steps[i + 1]];
      segments.push([[x * a + e, y * d + f], [next[0] * a + e, next[1] * d + f]]);
      [x, y] = next;
    }
  }
  const distance = ([px, py], [[x0, y0], [x1, y1]]) => {
    const l = (x1 - x0) ** 2 + (y1 - y0) ** 2, t = Math.max(0, Math.min(1, ((px - x0) * (x1 - x0) + (py - y0) * (y1 - y0)) / l));
    return Math.hypot(px - x0 - t * (x1 - x0), py - y0 - t * (y1 - y0));
  };
  const [, , w, h] = document.getElementById("map").getAttribute("viewBox").split(" ").map(Number);
  const dots = [...document.querySelectorAll("#map .dot")].map((c) => [Number(c.getAttribute("cx")), Number(c.getAttribute("cy"))]).filter(([x, y]) => x > 0 && y > 0 && x < w && y < h);
  return { dots: dots.length, most: Math.max(...dots.map((c) => Math.min(...segments.map((s) => distance(c, s))))) };
}

// The streets are quieter than what is measured, and beside them stands whose they are.
async function told(p) {
  check((await p.locator("#streets").textContent()) === "Streets: © Nobody & contributors made up", `whose map it is: ${await p.locator("#streets").textContent()}`);
  check((await p.locator("main a, main img").count()) === 0, "their words are no markup");
  const order = await p.evaluate(() => [...document.getElementById("map").children].map((e) => e.getAttribute("class")));
  check(order[0] === "streets" && order.includes("rule") && order.includes("north"), `they lie under all else, which is there: ${[...new Set(order)]}`);
  const contrast = await p.evaluate(() => {
    const light = (c) => c.match(/[\d.]+/g).slice(0, 3).map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
    const ratio = (x, y) => (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05), of = (e, k) => getComputedStyle(e)[k];
    const ground = light(of(document.getElementById("map"), "backgroundColor"));
    const streets = [...document.querySelectorAll("#map .streets path:not(.rail)")].map((e) => ratio(ground, light(of(e, of(e, "fill") === "none" ? "stroke" : "fill"))));
    return { streets: Math.max(...streets), least: Math.min(...streets), ring: ratio(ground, light(of(document.querySelector("#map .ring"), "stroke"))) };
  });
  check(contrast.streets < 2.5 && contrast.least > 1.05 && contrast.ring > 7, `streets stand out less than nodes: ${JSON.stringify(contrast)}`);
}

async function drawn(browser) {
  for (const [width, colorScheme] of [[1280, "light"], [1280, "dark"], [400, "light"], [400, "dark"]]) {
    const p = await open(browser, { viewport: { width, height: 900 }, colorScheme });
    await until(p, "streets are drawn", () => document.querySelector("#map .streets .major"));
    await told(p);
    const asked = p.asked.length;
    await p.waitForTimeout(1500);
    check(p.asked.length === asked && asked === 1, `the same streets are asked for once: ${asked}, then ${p.asked.length}`);
    check((await p.evaluate(() => document.documentElement.scrollWidth)) <= width, "the page is no wider than its screen");
    if (pictures) await p.locator("#map").screenshot({ path: `${pictures}/streets-${width}-${colorScheme}.png` });
    await drive(p, width);
    if (pictures) {
      await p.waitForTimeout(300);
      await p.locator("section:has(> #map)").screenshot({ path: `${pictures}/streets-rail-${width}-${colorScheme}.png` });
    }
    check(p.faults.length === 0, `the page has no faults: ${p.faults.join("; ")}`);
  }
}

async function pictured(browser) {
  const p = await open(browser, { viewport: { width: 1280, height: 900 } });
  await until(p, "pictures are drawn", () => document.querySelector("#map .streets image"));
  const around = await p.evaluate(() => {
    const at = document.querySelector("#map .ring").getBoundingClientRect(), x = at.x + at.width / 2, y = at.y + at.height / 2;
    return [...document.querySelectorAll("#map .streets image")].map((i) => i.getBoundingClientRect()).filter((b) => b.left <= x && b.right > x && b.top <= y && b.bottom > y).length;
  });
  check(around === 1, `one picture lies under the node: ${around}`);
  for (let i = 0; i < 50 && p.asked.filter((r) => r.url().includes("/picture?")).length === 0; i++) await p.waitForTimeout(100);
  const got = p.asked.filter((r) => r.url().includes("/picture?"));
  check(got.length > 0 && got.every((r) => r.status() === 200 && r.headers()["content-type"] === "image/png"), `pictures come: ${got.map((r) => r.status())}`);
  if (pictures) await p.locator("#map").screenshot({ path: `${pictures}/streets-png.png` });
  check(p.faults.length === 0, `the page has no faults: ${p.faults.join("; ")}`);
}

// Without a map, or with a broken one, all else is as it is; the one says nothing, the other why.
async function bare(browser, says) {
  const p = await open(browser, { viewport: { width: 400, height: 900 } });
  await until(p, "the map is asked for", () => !sheet.asking && (sheet.none || sheet.box));
  const told = await p.locator("#streets").textContent();
  check(says.test(told), `it says ${says}: ${JSON.stringify(told)}`);
  check((await p.locator("#streets").isVisible()) === (told !== ""), "a line that says nothing takes no room");
  check((await p.locator(".streets").count()) === 0, "no streets are drawn");
  check((await p.locator("#map .rule").count()) > 3 && (await p.locator("#map .ring").count()) === 2, "grid and nodes are");
  await p.click("#mapin");
  await p.waitForTimeout(1500);
  check(/^grid [\d.]+ m, from roadside/.test(await p.locator("#scale").textContent()), "it comes closer");
  check(told !== "" || p.asked.length === 1, `without a map nobody asks again: ${p.asked.length}`);
  check(p.faults.length === 0, `the page has no faults: ${p.faults.join("; ")}`);
  console.log(`${map}: ${JSON.stringify(told)}`);
}

look((browser) => ({ drawn, pictured, none: (b) => bare(b, /^$/), broken: (b) => bare(b, /^map\.pmtiles cannot be read: .+/) })[map](browser));
