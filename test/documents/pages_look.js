// Looks at pages as a reader does: in a window of a laptop and of a phone, light and
// dark, and as they are printed. It prints a line for each fault: what is wider than the
// page or its own frame, a picture that is not there, an error of a script, and text
// that stands out too little from what is behind it (WCAG 2.1, 1.4.3: 4.5 to 1, large
// text 3 to 1).
//
//   node pages_look.js PICTURES NAME=ADDRESS…
//
// With a folder PICTURES each view is drawn into it; "" draws none.
const { chromium } = require("playwright-core");

const views = [1280, 400].flatMap((width) => ["light", "dark"].map((scheme) => ({ width, scheme })));
const paper = { width: 718, scheme: "light", media: "print" }; // A4 less margins of 10 mm, at 96 to the inch

// faults runs in the page.
function faults() {
  const out = [];
  const root = document.documentElement;
  const name = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") +
    (typeof e.className === "string" && e.className ? "." + e.className.trim().split(/\s+/).join(".") : "");
  if (root.scrollWidth > root.clientWidth + 1) {
    let most = null;
    for (const e of document.body.querySelectorAll("*")) {
      const right = e.getBoundingClientRect().right;
      if (right > root.clientWidth + 1 && (!most || right >= most.right)) most = { right, e };
    }
    out.push(`is ${root.scrollWidth} wide in a window of ${root.clientWidth}` + (most ? `, by ${name(most.e)}` : ""));
  }
  for (const e of document.body.querySelectorAll("*")) {
    const style = getComputedStyle(e);
    if (e.clientWidth && e.scrollWidth > e.clientWidth + 1 && style.overflowX === "visible" &&
      parseFloat(style.borderRightWidth) > 0) {
      out.push(`has ${name(e)} overfull, ${e.scrollWidth} wide in ${e.clientWidth}: ` +
        JSON.stringify(e.textContent.trim().slice(0, 40)));
    }
  }
  for (const i of document.images) {
    if (i.complete && i.naturalWidth === 0) out.push(`does not show ${i.src}`);
  }
  const parse = (c) => {
    const m = c.match(/^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/);
    return m && { rgb: [+m[1], +m[2], +m[3]], alpha: m[4] === undefined ? 1 : +m[4] };
  };
  const over = (top, rgb) => top.rgb.map((v, i) => v * top.alpha + rgb[i] * (1 - top.alpha));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => { // null: a picture is behind it, or a colour that is written otherwise
    const layers = [];
    for (; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      const c = parse(style.backgroundColor);
      if (!c || style.backgroundImage !== "none") return null;
      if (c.alpha > 0) layers.push(c);
      if (c.alpha === 1) break;
    }
    return layers.reverse().reduce((rgb, c) => over(c, rgb), [255, 255, 255]);
  };
  const faint = new Map();
  let judged = 0;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || e.closest("svg, script, style, noscript, template, [aria-hidden=true], " +
      ":disabled, .headerlink") || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = getComputedStyle(e);
    const [ink, ground] = [parse(style.color), behind(e)];
    if (!ink || !ground) continue;
    judged++;
    const [a, b] = [light(over(ink, ground)), light(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const wanted = size >= 24 || size >= 18.66 && +style.fontWeight >= 700 ? 3 : 4.5;
    if (ratio < wanted - 0.005 && !faint.has(name(e))) {
      faint.set(name(e), `has faint text, ${ratio.toFixed(2)} to 1: ${name(e)} ` +
        JSON.stringify(texts.currentNode.data.trim().slice(0, 40)));
    }
  }
  if (judged < 20) out.push(`has ${judged} texts that could be judged`);
  return [...out, ...faint.values()];
}

(async () => {
  const [pictures, ...pages] = process.argv.slice(2);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  process.on("SIGTERM", () => browser.close().finally(() => process.exit(1)));
  try {
    for (const { width, scheme, media } of [...views, paper]) {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
      for (const page of pages) {
        const [name, address] = [page.slice(0, page.indexOf("=")), page.slice(page.indexOf("=") + 1)];
        const view = `${name}-${media || width + "-" + scheme}`;
        const tab = await context.newPage();
        tab.on("pageerror", (e) => console.log(`${view} has an error: ${e.message}`));
        tab.on("console", (m) => { if (m.type() === "error") console.log(`${view} says ${m.text()}`); });
        await tab.goto(address);
        if (media) await tab.emulateMedia({ media, colorScheme: scheme });
        await tab.waitForTimeout(400); // a page that draws itself
        for (const fault of await tab.evaluate(faults)) console.log(view, fault);
        if (pictures) await tab.screenshot({ path: `${pictures}/${view}.png`, fullPage: true });
        await tab.close();
      }
      await context.close();
    }
  } finally {
    await browser.close();
  }
})().catch((e) => { console.error(e); process.exit(1); });
