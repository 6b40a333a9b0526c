"use strict";
// Draws the state that the server sends. Everything from outside is set as
// text, never as markup. What is not known is a dash, and what is old says so.

const $ = (id) => document.getElementById(id);
const known = (v) => v !== undefined && v !== null;
const fixed = (v, digits) => (known(v) ? v.toFixed(digits) : "–");
const SVG = "http://www.w3.org/2000/svg";
const W = 600, H = 130, LEFT = 44, BOTTOM = 18, TOP = 8;

let state = null, arrived = 0, connected = false, failure = "";

function el(name, attributes, text) {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (known(text)) e.textContent = text;
  return e;
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
  const svg = $(id);
  svg.replaceChildren();
  const values = current.timeline.filter((p) => known(p[key])).map((p) => p[key] * scale);
  let low = options.low ?? 0, high = nice(Math.max(options.least ?? 1, ...values));
  if (known(options.high)) high = options.high;
  const x = (s) => LEFT + ((W - LEFT - 8) * s) / Math.max(current.duration_s, 1);
  const y = (v) => H - BOTTOM - ((H - BOTTOM - TOP) * (v - low)) / (high - low);
  if (options.band) {
    const [a, b] = options.band;
    const upper = Math.min(b, high);
    svg.append(el("rect", { class: "band", x: LEFT, width: W - LEFT - 8, y: y(upper), height: Math.max(y(Math.max(a, low)) - y(upper), 1) }));
  }
  for (const v of [low, (low + high) / 2, high]) {
    svg.append(el("line", { class: "rule", x1: LEFT, x2: W - 8, y1: y(v), y2: y(v) }));
    svg.append(el("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, +v.toPrecision(3)));
  }
  svg.append(el("text", { x: LEFT, y: H - 4 }, "0 s"));
  svg.append(el("text", { x: W - 8, y: H - 4, "text-anchor": "end" }, `${current.duration_s} s`));
  for (const e of current.events ?? [])
    if (known(e.s) && e.s >= 0 && e.s <= current.duration_s) svg.append(el("line", { class: "event", x1: x(e.s), x2: x(e.s), y1: TOP, y2: H - BOTTOM }));
  for (const c of curves(current.timeline, x, y, key, scale)) svg.append(el("polyline", { class: "curve", points: c.join(" ") }));
}

// viridis, five stops: readable in print, in the dark and without red and green.
const COLOURS = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"];

function map(current) {
  const svg = $("map");
  svg.replaceChildren();
  const all = current.nodes.flatMap((n) => n.track ?? []);
  $("scale").textContent = all.length ? "" : "no position is known";
  if (!all.length) return;
  const lat0 = all[0][0], metresLat = 111320, metresLon = metresLat * Math.cos((lat0 * Math.PI) / 180);
  const at = (p) => [(p[1] - all[0][1]) * metresLon, (p[0] - lat0) * metresLat];
  const xs = all.map((p) => at(p)[0]), ys = all.map((p) => at(p)[1]);
  const left = Math.min(...xs), bottom = Math.min(...ys);
  const span = Math.max(Math.max(...xs) - left, (Math.max(...ys) - bottom) * 2, 20) * 1.15;
  const k = W / span, offX = (W - (Math.max(...xs) - left) * k) / 2, offY = (300 - (Math.max(...ys) - bottom) * k) / 2;
  const place = (p) => { const [mx, my] = at(p); return [offX + (mx - left) * k, 300 - offY - (my - bottom) * k]; };
  const top = Math.max(1, ...current.timeline.filter((p) => known(p.bps)).map((p) => p.bps));
  for (const n of current.nodes) {
    const track = n.track ?? [];
    for (const p of track) {
      const moment = known(p[2]) ? current.timeline[Math.round(p[2] * 10)] : undefined;
      const bps = moment?.bps;
      const [cx, cy] = place(p);
      svg.append(el("circle", { cx, cy, r: 3, fill: known(bps) ? COLOURS[Math.min(4, Math.floor((5 * bps) / top))] : "#888" }));
    }
    if (!track.length) continue;
    const [cx, cy] = place(track[track.length - 1]);
    svg.append(el("circle", { cx, cy, r: 7, fill: "none", stroke: "currentColor", "stroke-width": 2 }));
    svg.append(el("text", { x: Math.min(cx + 10, W - 60), y: cy - 8 }, n.name));
  }
  const bar = nice(span / 5);
  svg.append(el("line", { x1: 10, x2: 10 + bar * k, y1: 288, y2: 288, stroke: "currentColor", "stroke-width": 2 }));
  svg.append(el("text", { x: 10, y: 282 }, `${bar} m`));
  $("scale").textContent = `colour: throughput, dark none, yellow ${(top / 1e6).toFixed(1)} Mbit/s; grey: outside the window`;
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
  const end = current.timeline.length - 1;
  for (let i = end; i >= 0 && i > end - 10; i--) if (known(current.timeline[i][key])) return current.timeline[i][key];
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
  $("nodes").replaceChildren();
  for (const n of c.nodes)
    row($("nodes"), [[n.name], [n.state ?? "–"], [["no answer", "no fix", "2-D", "3-D"][n.gps_mode] ?? "–"], [fixed(n.fix_age_ms, 0), "n"],
      [fixed(n.speed_mps, 1), "n"], [n.congestion ?? "–"], [fixed(n.rtt_ms, 1), "n"], [known(n.retransmits) ? String(n.retransmits) : "–", "n"]]);
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
  if (!state) { s.textContent = connected ? "waiting for the first record" : "the controller does not answer; trying again"; return; }
  const age = ((state.current?.written_ms ?? 0) + Date.now() - arrived) / 1000;
  const done = state.trials > 0 && state.done.accepted >= state.trials;
  const old = !connected || failure !== "" || (age > 5 && !done);
  s.className = old ? "old" : "";
  const news = state.current ? `newest record ${age < 2 ? "just now" : `${Math.round(age)} s ago`}` : "no record yet";
  s.textContent = failure ? `the archive cannot be read: ${failure}` : connected ? (done ? "every trial is accepted; " : "") + news : `the controller does not answer; ${news}`;
}

const source = new EventSource("events" + location.search);
source.onopen = () => { connected = true; tick(); };
source.onerror = () => { connected = false; tick(); };
source.addEventListener("state", (e) => { state = JSON.parse(e.data); arrived = Date.now(); draw(); tick(); });
source.addEventListener("failure", (e) => { failure = JSON.parse(e.data); tick(); });
setInterval(tick, 500);
