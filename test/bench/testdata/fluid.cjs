"use strict";
// Measures how fluid a page is: when it first paints, and how many frames it draws a
// second while somebody uses it. Its arguments: the page's address, and how it is used:
// "scroll", or "drag", which also drags the playback's slider, and plays.
// It prints one line of JSON.
const { look } = require("chromium.cjs");

const [, , address, use] = process.argv;
const SECONDS = 6;

// frames runs in the page: it uses it for so many seconds, and tells the fewest frames
// of a second and the longest time between two.
function frames([seconds, how]) {
  return new Promise((resolve) => {
    const times = [], slider = document.querySelector("#replay input"), button = document.querySelector("#replay button");
    const begun = performance.now(), all = document.documentElement.scrollHeight - innerHeight;
    if (how !== "scroll") slider.scrollIntoView({ block: "center" });
    if (how === "play") {
      slider.value = 0;
      button.click();
    }
    function frame(now) {
      const s = (performance.now() - begun) / 1000;
      times.push(now);
      if (s >= seconds) {
        let longest = 0, fewest = Infinity;
        for (let i = 1; i < times.length; i++) longest = Math.max(longest, times[i] - times[i - 1]);
        for (let i = 0; times[i] + 1000 <= times[times.length - 1]; i++)
          fewest = Math.min(fewest, times.filter((t) => t >= times[i] && t < times[i] + 1000).length);
        resolve({ fewest: Number.isFinite(fewest) ? fewest : 0, longest_ms: Math.round(longest) });
        return;
      }
      if (how === "scroll") scrollTo(0, all * (0.5 - 0.5 * Math.cos(s * Math.PI)));
      else if (how === "drag") {
        slider.value = slider.max * s / seconds;
        slider.dispatchEvent(new Event("input"));
      }
      requestAnimationFrame(frame);
    }
    requestAnimationFrame(frame);
  });
}

look(async (browser) => {
  const tab = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await tab.goto(address, { timeout: 120000 });
  const paint = await tab.evaluate(() => new Promise((resolve) => {
    new PerformanceObserver((l) => { for (const e of l.getEntries()) if (e.name === "first-contentful-paint") resolve(e.startTime); })
      .observe({ type: "paint", buffered: true });
  }));
  if (use === "scroll") await tab.waitForFunction(() => document.querySelector("#plot-bps polyline"), null, { timeout: 120000 });
  const out = { first_paint_ms: Math.round(paint), used: [] };
  for (const how of use === "drag" ? ["scroll", "drag", "play"] : ["scroll"]) out.used.push(await tab.evaluate(frames, [SECONDS, how]));
  console.log(JSON.stringify(out));
});
