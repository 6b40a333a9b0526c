"use strict";
// Looks at `fieldmesh live` as two viewers do, one with a dark and one with a
// narrow screen, while a rehearsal goes. Its arguments: the program, the folder
// of runs, the run, an address "host:port" on loopback, one beyond loopback, and
// a folder for pictures. It ends with status 0 when all of it held.
const { spawn } = require("node:child_process");
const { check, look, until } = require("chromium.cjs");

const [, , program, runs, run, address, beyond, pictures] = process.argv;

// serve starts the server and waits for the address that it prints.
function serve(listen) {
  const child = spawn(program, ["live", run, "--runs", runs, "--listen", listen], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  return new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (text) => {
      said += text;
      const url = said.match(/^live: (\S+)\n/)?.[1];
      if (url) resolve({ url, stop: () => { child.kill("SIGINT"); return ended; } });
    });
    ended.then((status) => reject(new Error(`fieldmesh live ended with ${status}: ${said}`)));
  });
}

async function open(browser, name, options, url) {
  const p = await browser.newPage(options);
  p.faults = [];
  p.on("pageerror", (e) => p.faults.push(`${name}: ${e}`));
  p.on("console", (m) => { if (m.type() === "error" && !m.text().includes("ERR_")) p.faults.push(`${name}: ${m.text()}`); });
  await p.goto(url);
  return p;
}

const text = (p, id) => p.locator(`#${id}`).textContent();
const number = async (p, id) => { const s = await text(p, id); check(s !== "–" && Number.isFinite(Number(s)), `#${id} is a number: ${JSON.stringify(s)}`); return Number(s); };
const known = (p, ...ids) => until(p, `${ids} are known`, (all) => all.every((id) => document.getElementById(id).textContent !== "–"), ids);

// moves waits until a value is another than it was.
async function moves(p, id) {
  const before = await text(p, id);
  await until(p, `#${id} is not ${before} any more`, ([i, v]) => !["–", v].includes(document.getElementById(i).textContent), [id, before]);
}

async function watch(browser) {
  let server = await serve(address);
  const wide = await open(browser, "dark", { colorScheme: "dark", viewport: { width: 1280, height: 800 } }, server.url);
  const narrow = await open(browser, "narrow", { viewport: { width: 360, height: 740 } }, server.url);
  for (const p of [wide, narrow]) {
    // The phases that last are told, what comes next, and how long the run takes.
    for (const phase of ["faster", "measuring"])
      await until(p, `the phase is ${phase}`, (v) => document.getElementById("phase").textContent === v, phase);
    await known(p, "next", "runleft");
    await known(p, "bps", "mps", "dbm", "metres");
    await moves(p, "bps");
    await moves(p, "metres");
    check((await number(p, "mps")) >= 0, "a speed is not negative");
    check((await p.locator("#plot-bps polyline").count()) > 0, "throughput is drawn");
    check((await p.locator("#map .ring").count()) === 2, "both nodes are on the map");
    check((await p.locator("#nodes tr").count()) === 2, "both nodes are in the table");
    const [needs, has] = await p.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    check(needs <= has, `the page is no wider than its screen: ${needs} > ${has}`);
  }
  const ground = await wide.evaluate(() => getComputedStyle(document.body).backgroundColor);
  check(ground.match(/\d+/g).every((v) => v < 60), `a dark screen stays dark: ${ground}`);
  check((await text(wide, "run")) === (await text(narrow, "run")), "both see one run");
  await wide.screenshot({ path: `${pictures}/dark.png`, fullPage: true });
  await narrow.screenshot({ path: `${pictures}/narrow.png`, fullPage: true });

  // The server goes and comes again at the same address; nobody loads the page anew.
  await wide.evaluate(() => { window.loadedOnce = true; });
  check((await server.stop()) === 0, "the server ends well");
  for (const p of [wide, narrow]) await until(p, "it says that nobody answers", () => document.getElementById("status").textContent.includes("does not answer"));
  server = await serve(address);
  for (const p of [wide, narrow]) {
    await until(p, "it is answered again", () => !document.getElementById("status").textContent.includes("does not answer"));
    await moves(p, "metres");
  }
  check(await wide.evaluate(() => window.loadedOnce), "the page is the same one");

  // What is decided meanwhile comes too.
  await until(wide, "a trial was accepted", () => document.querySelectorAll("#recent .accepted").length > 0);
  check((await number(wide, "accepted")) > 0, "accepted trials are counted");
  await until(wide, "it is told while the next goes on", () => /^before: trial \d+, attempt \d+ (accepted|rejected|failed)/.test(document.getElementById("last").textContent));
  await until(wide, "its result is drawn", () => document.querySelectorAll("#levels .result").length > 0 && document.querySelectorAll("#means tr").length === 1);
  check(/^about, by the/.test(await text(wide, "runleftby")), `what the time left rests on is told: ${await text(wide, "runleftby")}`);
  await wide.emulateMedia({ colorScheme: "light" });
  await wide.screenshot({ path: `${pictures}/light.png`, fullPage: true });
  const faults = [...wide.faults, ...narrow.faults];
  check(faults.length === 0, `the pages have no faults: ${faults.join("; ")}`);
  check((await server.stop()) === 0, "the server ends well");
}

// Beyond loopback nobody sees the page without the token that was printed.
async function guarded(browser) {
  const server = await serve(beyond);
  const url = new URL(server.url);
  check(url.searchParams.get("token")?.length >= 22, "a token is printed");
  const p = await browser.newPage();
  const without = await p.goto(url.origin + "/");
  check(without.status() === 403, `without the token it is refused: ${without.status()}`);
  check((await p.goto(server.url)).status() === 200, "with the token it is shown");
  await until(p, "it shows the run", () => document.getElementById("accepted").textContent !== "–");
  check((await server.stop()) === 0, "the server ends well");
}

look(async (browser) => {
  await watch(browser);
  await guarded(browser);
});
