"use strict";
// Looks at the live page when the car's records come no more, as it is out of reach, and the roadside's do. Its
// arguments: the page's address, the phase in which the car is heard last, a folder for pictures, and a file that it
// writes when it has seen the car, which then leaves. It ends with status 0 when all of it held.
const { writeFileSync } = require("node:fs");
const { check, look } = require("chromium.cjs");

const [, , address, phase, pictures, left] = process.argv;
const PATIENCE_MS = 100000; // far more than anything takes on a busy machine

// told is what the page tells at one moment.
const told = (p) => p.evaluate(() => {
  const out = { box: document.getElementById("speedbox").className };
  for (const id of ["status", "phase", "left", "hint", "mps", "band", "scale"]) out[id] = document.getElementById(id).textContent;
  for (const tr of document.querySelectorAll("#nodes tr")) {
    const cells = [...tr.children].map((td) => td.textContent);
    out[cells[0].split(" ")[0]] = cells;
  }
  return out;
});

// becomes waits until the page tells what holds.
async function becomes(p, what, holds) {
  for (const until = Date.now() + PATIENCE_MS; ;) {
    const now = await told(p);
    if (holds(now)) return now;
    check(Date.now() < until, `${what}; the page tells ${JSON.stringify(now)}`);
    await p.waitForTimeout(100);
  }
}

// isHeard: the car is as it tells.
function isHeard(now) {
  const [name, , gps, age, speed] = now.car ?? [];
  return now.phase === (phase === "armed" ? "hold" : "measuring") && !now.hint.includes("not heard") && now.band.endsWith(": in the band") &&
    now.mps === "8.3" && now.box === "big in" && name === "car" && gps === "3-D" && Number(age) >= 0 && speed === "8.3" && !now.scale.includes("not heard");
}

// isMissed: nothing of the car is shown as if it were of now, and all of the roadside is.
function isMissed(now) {
  const [name, , gps, age, speed, , rtt, resent] = now.car, [other, , otherGps, otherAge] = now.roadside;
  return /^car not heard for \d+ s$/.test(name) && [gps, age, speed, rtt, resent, now.mps].every((v) => v === "–") &&
    now.band === "target 8.3 ± 0.8" && now.box === "big" && /; car not heard for \d+ s$/.test(now.scale) &&
    other === "roadside" && otherGps === "3-D" && Number(otherAge) >= 0 && /^newest record (just now|\d s ago)$/.test(now.status) &&
    (phase !== "armed" || now.phase === "not heard" && /^car for \d+ s$/.test(now.left) && now.hint.startsWith("armed when"));
}

look(async (browser) => {
  const p = await (await browser.newContext({ viewport: { width: 1280, height: 1000 } })).newPage();
  const faults = [];
  p.on("pageerror", (e) => faults.push(String(e)));
  await p.goto(address);
  await becomes(p, "the car is shown while it is heard", isHeard);
  writeFileSync(left, "");
  const now = await becomes(p, "what the car told last is left out", isMissed);
  console.log(JSON.stringify(now));
  if (phase === "running")
    console.log((await becomes(p, "the countdown ends, and says who is not heard", (v) => v.phase === "window over?" && /^by now it should be; car not heard for \d+ s$/.test(v.hint))).hint);
  await p.screenshot({ path: `${pictures}/gone-${phase}.png`, fullPage: true });
  check(faults.length === 0, `the page has no faults: ${faults.join("; ")}`);
});
