"use strict";
// Looks at the live page while the car's records come no more, as it is out of reach, and the roadside's do. Its
// arguments: the page's address, the phase in which the car was last heard, and a folder for pictures. It ends with
// status 0 when all of it held.
const { check, look, until } = require("chromium.cjs");

const [, , address, phase, pictures] = process.argv;

const text = (p, id) => p.locator(`#${id}`).textContent();
const row = (p, name) => p.locator("#nodes tr").filter({ hasText: name }).locator("td").allInnerTexts();

// heard is the page while both nodes are heard.
async function heard(p) {
  await until(p, "the car's speed is in its band", () => document.getElementById("band").textContent.endsWith(": in the band"));
  check((await text(p, "phase")) === (phase === "armed" ? "hold" : "measuring"), `the phase is told: ${await text(p, "phase")}`);
  check((await text(p, "hint")).includes("not heard") === false, `nobody is missed: ${await text(p, "hint")}`);
  const [name, , gps, age, speed] = await row(p, "car");
  check(name === "car" && gps === "3-D" && Number(age) >= 0 && Number(speed) > 0, `the car's row has what it told: ${[name, gps, age, speed]}`);
}

// missed is the page when the car has not been heard for a while.
async function missed(p) {
  await until(p, "the car's row says that it is not heard", () => /not heard for \d+ s/.test(document.getElementById("nodes").innerText));
  check((await text(p, "mps")) === "–", `its speed is not known: ${await text(p, "mps")}`);
  check(!/band|slow|fast/.test(await text(p, "band")), `nor is it judged: ${await text(p, "band")}`);
  check((await p.locator("#speedbox").getAttribute("class")) === "big", "its box has no colour of a judgement");
  const [name, , gps, age, speed, , rtt, retransmitted] = await row(p, "car");
  check(/^car\s+not heard for \d+ s$/.test(name), `the row says for how long: ${name}`);
  check([gps, age, speed, rtt, retransmitted].every((v) => v === "–"), `the row has nothing old: ${await row(p, "car")}`);
  const other = await row(p, "roadside");
  check(other[0] === "roadside" && other[2] === "3-D" && other[3] !== "–", `the roadside's row stays: ${other}`);
  check(/^newest record (just now|\d s ago)$/.test(await text(p, "status")), `records come: ${await text(p, "status")}`);
  check(/car not heard for \d+ s/.test(await text(p, "scale")), `the map says whose place is old: ${await text(p, "scale")}`);
}

look(async (browser) => {
  const p = await (await browser.newContext({ viewport: { width: 1280, height: 1000 } })).newPage();
  const faults = [];
  p.on("pageerror", (e) => faults.push(String(e)));
  await p.goto(address);
  await heard(p);
  await missed(p);
  if (phase === "armed") {
    check((await text(p, "phase")) === "not heard", `the phase is not known: ${await text(p, "phase")}`);
    check(/^car for \d+ s$/.test(await text(p, "left")), `it says who, and for how long: ${await text(p, "left")}`);
    check((await text(p, "hint")).startsWith("armed when"), `and what was known last: ${await text(p, "hint")}`);
  } else {
    await until(p, "the countdown has come to its end", () => document.getElementById("phase").textContent === "should be over");
    check(/car not heard for \d+ s$/.test(await text(p, "hint")), `it says who is not heard: ${await text(p, "hint")}`);
  }
  await p.screenshot({ path: `${pictures}/gone-${phase}.png`, fullPage: true });
  check(faults.length === 0, `the page has no faults: ${faults.join("; ")}`);
});
