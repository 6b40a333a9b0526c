"use strict";
// Draws the state that the server sends. Everything from outside is set as
// text, never as markup. What is not known is a dash, and what is old says so.

const $ = (id) => document.getElementById(id);
const known = (v) => v !== undefined && v !== null;
const fixed = (v, digits) => (known(v) ? v.toFixed(digits) : "–");
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 44, RIGHT = 8, BOTTOM = 18, TOP = 8;

// written is when the newest record came, by this browser's clock.
let state = null, written, connected = false, failure = "";

function el(name, attributes, text) {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (known(text)) e.textContent = text;
  return e;
}

// clean empties a drawing and gives its size; a unit is a pixel on any screen.
function clean(id) {
  const svg = $(id), w = Math.max(svg.clientWidth, 200), h = Math.max(svg.clientHeight, 100);
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  svg.replaceChildren();
  return [svg, w, h];
}

// curves cuts a series where a value is missing: no line is drawn over a gap.
function curves(points, x, y, key, scale) {
  const out = [];
  let run = [];
  for (const p of points) {
    if (known(p[key])) run.push(`${x(p.s).toFixed(1)},${y(p[key] * scale).toFixed(1)}`);
    else if (run.length) { out.push(run); run = []; }
  }
  if (run.length) out.push(run);
  return out;
}

function nice(top) {
  const unit = 10 ** Math.floor(Math.log10(top));
  for (const k of [1, 2, 5, 10]) if (k * unit >= top) return k * unit;
  return 10 * unit;
}

function plot(id, current, key, scale, options = {}) {
  const [svg, w, h] = clean(id);
  const values = current.timeline.filter((p) => known(p[key])).map((p) => p[key] * scale);
  const low = options.low ?? 0, high = options.high ?? nice(Math.max(options.least ?? 1, ...values));
  const x = (s) => LEFT + ((w - LEFT - RIGHT) * s) / Math.max(current.duration_s, 1);
  const y = (v) => h - BOTTOM - ((h - BOTTOM - TOP) * (v - low)) / (high - low);
  if (options.band) {
    const [a, b] = options.band;
    const upper = Math.min(b, high);
    svg.append(el("rect", { class: "band", x: LEFT, width: w - LEFT - RIGHT, y: y(upper), height: Math.max(y(Math.max(a, low)) - y(upper), 1) }));
  }
  for (const v of [low, (low + high) / 2, high]) {
    svg.append(el("line", { class: "rule", x1: LEFT, x2: w - RIGHT, y1: y(v), y2: y(v) }));
    svg.append(el("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, +v.toPrecision(3)));
  }
  svg.append(el("text", { x: LEFT, y: h - 4 }, "0 s"));
  svg.append(el("text", { x: w - RIGHT, y: h - 4, "text-anchor": "end" }, `${current.duration_s} s`));
  for (const e of current.events ?? [])
    if (known(e.s) && e.s >= 0 && e.s <= current.duration_s) svg.append(el("line", { class: "event", x1: x(e.s), x2: x(e.s), y1: TOP, y2: h - BOTTOM }));
  for (const c of curves(current.timeline, x, y, key, scale)) svg.append(el("polyline", { class: "curve", points: c.join(" ") }));
}

// viridis, five stops: readable in print, in the dark and without red and green.
const COLOURS = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"];
const GREY = "#888", MANY = 20, MARGIN = 24;

// projection turns positions into pixels: metres from the first, all of them in
// the drawing, north up.
function projection(all, w, h) {
  const lat0 = all[0][0], lon0 = all[0][1], metres = 111320;
  const at = (p) => [(p[1] - lon0) * metres * Math.cos((lat0 * Math.PI) / 180), (p[0] - lat0) * metres];
  let left = Infinity, right = -Infinity, bottom = Infinity, top = -Infinity;
  for (const p of all) {
    const [x, y] = at(p);
    left = Math.min(left, x); right = Math.max(right, x); bottom = Math.min(bottom, y); top = Math.max(top, y);
  }
  const scale = Math.min((w - 2 * MARGIN) / Math.max(right - left, 20), (h - 2 * MARGIN) / Math.max(top - bottom, 20));
  const place = (p) => {
    const [x, y] = at(p);
    return [w / 2 + (x - (left + right) / 2) * scale, h / 2 - (y - (bottom + top) / 2) * scale];
  };
  return { place, scale };
}

// dots draws where a node was; what would lie on the dot before is left out.
function dots(svg, points, place, colour) {
  let last = null;
  for (const p of points) {
    const [cx, cy] = place(p), fill = colour(p);
    if (last && last.fill === fill && Math.hypot(cx - last.cx, cy - last.cy) < 3) continue;
    last = { cx, cy, fill };
    svg.append(el("circle", { class: "dot", cx: cx.toFixed(1), cy: cy.toFixed(1), r: 3, fill }));
  }
}

// ring draws where a node is now, and its name where there is room for it; the
// name stands in its tooltip too. An end of the trial is named in any case.
function ring(svg, name, [cx, cy], radius, taken, w, end) {
  const mark = el("circle", { class: "ring", cx, cy, r: radius });
  mark.append(el("title", {}, name));
  svg.append(mark);
  const width = 7 * name.length, x = cx + radius + 3 + width < w ? cx + radius + 3 : cx - radius - 3 - width;
  const box = { x, y: cy - 13, right: x + width, bottom: cy + 1 };
  if (!end && taken.some((t) => t.x < box.right && box.x < t.right && t.y < box.bottom && box.y < t.bottom)) return 0;
  taken.push(box);
  svg.append(el("text", { x, y: cy - 3 }, name));
  return 1;
}

function map(current) {
  const [svg, w, h] = clean("map");
  const seen = current.nodes.filter((n) => n.track?.length);
  $("scale").textContent = seen.length ? "" : "no position is known";
  if (!seen.length) return;
  const { place, scale } = projection(seen.flatMap((n) => n.track), w, h);
  const top = Math.max(1, ...current.timeline.filter((p) => known(p.bps)).map((p) => p.bps));
  const colour = (p) => {
    const bps = known(p[2]) ? current.timeline[Math.floor(Math.round(p[2] * 10) / Math.round(current.step_s * 10))]?.bps : undefined;
    return known(bps) ? COLOURS[Math.min(4, Math.floor((5 * bps) / top))] : GREY;
  };
  for (const n of seen) dots(svg, n.track, place, colour);
  const newest = (n) => place(n.track[n.track.length - 1]), radius = seen.length > MANY ? 5 : 7;
  const taken = seen.map(newest).map(([x, y]) => ({ x: x - radius, y: y - radius, right: x + radius, bottom: y + radius }));
  let named = 0;
  for (const n of seen) named += ring(svg, n.name, newest(n), radius, taken, w, n.name === current.sender || n.name === current.receiver);
  const bar = nice(w / scale / 8);
  svg.append(el("line", { class: "bar", x1: 10, x2: 10 + bar * scale, y1: h - 8, y2: h - 8 }));
  svg.append(el("text", { x: 10, y: h - 14 }, `${bar} m`));
  const hidden = seen.length - named;
  $("scale").textContent = `colour: throughput, dark none, yellow ${(top / 1e6).toFixed(1)} Mbit/s; grey: outside the window` +
    (hidden ? `; ${hidden} names have no room: point at a ring` : "");
}

function row(body, cells) {
  const tr = document.createElement("tr");
  for (const [text, className] of cells) {
    const td = document.createElement("td");
    td.textContent = text;
    if (className) td.className = className;
    tr.append(td);
  }
  body.append(tr);
}

const cellOf = (factors) => Object.entries(factors ?? {}).map(([k, v]) => `${k} ${v}`).join(" · ");

// newest is the last moment in which a value is known, if that is not long ago.
function newest(current, key) {
  const all = current.timeline, end = all.length - 1;
  for (let i = end; i >= 0 && all[end].s - all[i].s < Math.max(2, current.step_s); i--) if (known(all[i][key])) return all[i][key];
}

const GPS = ["no answer", "no fix", "2-D", "3-D"];

// tally counts what nodes have in common: "3-D 198, no fix 2".
function tally(nodes, of) {
  const counts = new Map();
  for (const n of nodes) counts.set(of(n), (counts.get(of(n)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([k, n]) => `${k} ${n}`).join(", ");
}

function drawNodes(nodes) {
  const gps = (n) => GPS[n.gps_mode] ?? "–", trial = (n) => n.state ?? "–";
  $("tally").textContent = nodes.length > 2 ? `${nodes.length} nodes. Trial: ${tally(nodes, trial)}. GPS: ${tally(nodes, gps)}.` : "";
  $("nodes").replaceChildren();
  for (const n of nodes)
    row($("nodes"), [[n.name], [trial(n)], [gps(n)], [fixed(n.fix_age_ms, 0), "n"], [fixed(n.speed_mps, 1), "n"], [n.congestion ?? "–"],
      [fixed(n.rtt_ms, 1), "n"], [known(n.retransmits) ? String(n.retransmits) : "–", "n"]]);
}

function drawCurrent(c) {
  $("trial").textContent = `Trial ${c.trial}, attempt ${c.attempt}: ${c.sender} → ${c.receiver}${c.outcome ? ` (${c.outcome})` : ""}`;
  $("cell").textContent = cellOf(c.factors);
  const car = c.nodes.find((n) => n.name === c.car);
  const bps = newest(c, "bps");
  $("bps").textContent = known(bps) ? (bps / 1e6).toFixed(2) : "–";
  $("mps").textContent = fixed(car?.speed_mps, 1);
  $("dbm").textContent = fixed(newest(c, "dbm"), 0);
  $("metres").textContent = fixed(newest(c, "m"), 0);
  const target = c.target_mps, half = c.band_mps;
  $("band").textContent = known(target) ? `target ${target.toFixed(1)}${known(half) ? ` ± ${half.toFixed(1)}` : ""}` : "";
  const judged = known(target) && known(half) && known(car?.speed_mps);
  $("speedbox").className = "big" + (judged ? (Math.abs(car.speed_mps - target) <= half ? " in" : " out") : "");
  plot("plot-bps", c, "bps", 1e-6);
  plot("plot-mps", c, "mps", 1, { least: (target ?? 1) + (half ?? 0), band: known(target) && known(half) ? [target - half, target + half] : null });
  plot("plot-dbm", c, "dbm", 1, { low: -100, high: -20 });
  plot("plot-cwnd", c, "cwnd", 1);
  map(c);
  drawNodes(c.nodes);
  $("events").replaceChildren();
  for (const e of c.events ?? []) {
    const li = document.createElement("li");
    li.textContent = `${e.node}${known(e.s) ? `, ${e.s.toFixed(1)} s` : ""}: ${e.text}`;
    $("events").append(li);
  }
}

function draw() {
  if (!state) return;
  document.title = `${state.run} – Fieldmesh live`;
  $("run").textContent = `${state.run} (${state.campaign}, ${state.place})`;
  $("accepted").textContent = state.done.accepted;
  $("trials").textContent = `of ${state.trials}`;
  if (state.current) drawCurrent(state.current);
  $("recent").replaceChildren();
  for (const d of state.recent ?? [])
    row($("recent"), [[d.trial, "n"], [d.attempt, "n"], [cellOf(d.factors)], [d.outcome, d.outcome], [d.reason ?? ""]]);
}

// tick says how old the page's values are, whatever the server does.
function tick() {
  const s = $("status");
  const age = known(written) ? (Date.now() - written) / 1000 : undefined;
  const done = state !== null && state.trials > 0 && state.done.accepted >= state.trials;
  const news = !known(age) ? "waiting for the first record" : `newest record ${age < 2 ? "just now" : `${Math.round(age)} s ago`}`;
  s.className = !connected || failure !== "" || (age > 5 && !done) ? "old" : "";
  if (!connected) s.textContent = `the controller does not answer, trying again; ${news}`;
  else if (failure) s.textContent = `the archive cannot be read: ${failure}`;
  else s.textContent = (done ? "every trial is accepted; " : "") + news;
}

const source = new EventSource("events" + location.search);
source.onopen = () => { connected = true; tick(); };
source.onerror = () => { connected = false; tick(); };
source.addEventListener("state", (e) => { state = JSON.parse(e.data); draw(); });
source.addEventListener("status", (e) => {
  const news = JSON.parse(e.data);
  failure = news.failure ?? "";
  if (known(news.age_ms)) written = Date.now() - news.age_ms;
  tick();
});
setInterval(tick, 500);
for (const when of ["load", "resize"]) addEventListener(when, draw); // sizes are known, or others
