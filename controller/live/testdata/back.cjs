"use strict";
// Looks at the live page while its server ends, refuses it, and answers it again. Its arguments: the page's address, and
// a file that it writes when it has seen a step, whereupon the next follows. It ends with status 0 when all of it held.
const { writeFileSync } = require("node:fs");
const { check, look } = require("chromium.cjs");

const [, , address, seen] = process.argv;
const PATIENCE_MS = 100000; // far more than anything takes on a busy machine

look(async (browser) => {
  const p = await (await browser.newContext()).newPage();
  const says = async (what, text) => {
    let now = "";
    for (const until = Date.now() + PATIENCE_MS; ; await p.waitForTimeout(100)) {
      now = await p.textContent("#status");
      if (text.test(now)) break;
      check(Date.now() < until, `${what}; the page says ${JSON.stringify(now)}`);
    }
    console.log(now);
  };
  await p.goto(address);
  await says("the page is served", /^newest record/);
  writeFileSync(seen, "");
  await says("another address is served in its place", /^this address shows no page now: open the one that fieldmesh live prints; /);
  writeFileSync(seen, "");
  await says("the page's own is served again", /^newest record/);
});
