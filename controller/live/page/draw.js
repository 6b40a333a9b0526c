"use strict";
// Draws charts and the map as SVG. Everything from outside is set as text,
// never as markup. What is not known is not drawn.

const $ = (id) => document.getElementById(id);
const known = (v) => v !== undefined && v !== null;
const fixed = (v, digits) => (known(v) ? v.toFixed(digits) : "–");
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 44, RIGHT = 8, BOTTOM = 18, TOP = 8;

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

function rules(svg, w, y, values) {
  for (const v of values) {
    svg.append(el("line", { class: "rule", x1: LEFT, x2: w - RIGHT, y1: y(v), y2: y(v) }));
    svg.append(el("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, +v.toPrecision(3)));
  }
}

// PLOTS are the charts over the window, which share a range of it and a cursor.
const PLOTS = [
  { key: "bps", scale: 1e-6, digits: 2, name: "throughput", unit: "Mbit/s" },
  { key: "mps", scale: 1, digits: 1, name: "speed", unit: "m/s" },
  { key: "dbm", scale: 1, digits: 0, name: "signal", unit: "dBm", low: -100, high: -20 },
  { key: "cwnd", scale: 1, digits: 0, name: "congestion window", unit: "segments" },
];
for (const p of PLOTS) p.svg = $(`plot-${p.key}`);

// plot draws a chart of the seconds from..to, and keeps what its cursor needs.
function plot(of, c, [from, to]) {
  const { svg, key, scale } = of, [, w, h] = clean(svg.id);
  const points = c.timeline.filter((p) => p.s >= from && p.s <= to);
  const values = points.filter((p) => known(p[key])).map((p) => p[key] * scale);
  const target = c.target_mps, half = c.band_mps, band = key === "mps" && known(target) && known(half);
  const low = of.low ?? 0, high = of.high ?? nice(Math.max(band ? target + half : 1, ...values));
  const x = (s) => LEFT + ((w - LEFT - RIGHT) * (s - from)) / (to - from);
  const y = (v) => h - BOTTOM - ((h - BOTTOM - TOP) * (v - low)) / (high - low);
  if (band) {
    const upper = Math.min(target + half, high);
    svg.append(el("rect", { class: "band", x: LEFT, width: w - LEFT - RIGHT, y: y(upper), height: Math.max(y(Math.max(target - half, low)) - y(upper), 1) }));
  }
  rules(svg, w, y, [low, (low + high) / 2, high]);
  const digits = to - from < 10 ? 1 : 0;
  for (const [s, anchor] of [[from, "start"], [(from + to) / 2, "middle"], [to, "end"]]) svg.append(el("text", { x: x(s), y: h - 4, "text-anchor": anchor }, `${s.toFixed(digits)} s`));
  for (const e of c.events ?? [])
    if (known(e.s) && e.s >= from && e.s <= to) svg.append(el("line", { class: "event", x1: x(e.s), x2: x(e.s), y1: TOP, y2: h - BOTTOM }));
  for (const k of curves(points, x, y, key, scale)) svg.append(el("polyline", { class: "curve", points: k.join(" ") }));
  Object.assign(of, { x, y, second: (px) => Math.min(to, Math.max(from, from + ((px - LEFT) * (to - from)) / (w - LEFT - RIGHT))) });
  of.chosen = svg.appendChild(el("rect", { class: "chosen", y: TOP, height: h - BOTTOM - TOP, width: 0 }));
  of.cursor = svg.appendChild(el("line", { class: "cursor", y1: TOP, y2: h - BOTTOM, visibility: "hidden" }));
  of.spot = svg.appendChild(el("circle", { class: "spot", r: 3.5, visibility: "hidden" }));
  const said = values.length ? `from ${Math.min(...values).toFixed(of.digits)} to ${Math.max(...values).toFixed(of.digits)} ${of.unit}, last ${values[values.length - 1].toFixed(of.digits)}` : "nothing is known";
  svg.setAttribute("aria-label", `${of.name}, second ${from.toFixed(0)} to ${to.toFixed(0)} of the window: ${said}`);
}

// cross puts a chart's cursor at a moment; without one it is taken away.
function cross(of, moment) {
  const value = known(moment) && known(moment[of.key]) ? moment[of.key] * of.scale : undefined;
  $(`read-${of.key}`).textContent = known(moment) ? fixed(value, of.digits) : "";
  if (!of.cursor) return;
  of.cursor.setAttribute("visibility", known(moment) ? "visible" : "hidden");
  of.spot.setAttribute("visibility", known(value) ? "visible" : "hidden");
  if (!known(moment)) return;
  for (const k of ["x1", "x2"]) of.cursor.setAttribute(k, of.x(moment.s));
  if (!known(value)) return;
  of.spot.setAttribute("cx", of.x(moment.s));
  of.spot.setAttribute("cy", of.y(value));
}

// viridis, five stops: readable in print, in the dark and without red and green.
const COLOURS = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"];
const GREY = "#888", MANY = 20, MARGIN = 30;

// projection turns positions into pixels: metres from an origin, north up, all
// positions in the drawing, or so many times closer to one of them.
function projection(all, origin, w, h, closer, centre) {
  const metres = 111320, east = metres * Math.cos((origin[0] * Math.PI) / 180);
  const at = (p) => [(p[1] - origin[1]) * east, (p[0] - origin[0]) * metres];
  let left = Infinity, right = -Infinity, bottom = Infinity, top = -Infinity;
  for (const p of all) {
    const [x, y] = at(p);
    left = Math.min(left, x); right = Math.max(right, x); bottom = Math.min(bottom, y); top = Math.max(top, y);
  }
  const scale = closer * Math.min((w - 2 * MARGIN) / Math.max(right - left, 20), (h - 2 * MARGIN) / Math.max(top - bottom, 20));
  const [mx, my] = closer > 1 ? at(centre) : [(left + right) / 2, (bottom + top) / 2];
  const x0 = mx - w / 2 / scale, x1 = mx + w / 2 / scale, y0 = my - h / 2 / scale, y1 = my + h / 2 / scale;
  const box = [origin[1] + x0 / east, origin[0] + y0 / metres, origin[1] + x1 / east, origin[0] + y1 / metres];
  return { scale, place: (p) => pixel(at(p)), pixel, x0, x1, y0, y1, box };
  function pixel([x, y]) { return [w / 2 + (x - mx) * scale, h / 2 - (y - my) * scale]; }
}

// grid draws lines every so many metres, told at the edges, and where north is.
function grid(svg, w, h, f) {
  const step = nice(70 / f.scale), told = (v) => `${+v.toPrecision(6)} m`;
  for (let v = Math.ceil(f.x0 / step) * step; v <= f.x1; v += step) {
    const [x] = f.pixel([v, 0]);
    svg.append(el("line", { class: "rule", x1: x, x2: x, y1: 0, y2: h }));
    if (x > 60 && x < w - 20) svg.append(el("text", { x, y: h - 5, "text-anchor": "middle" }, told(v)));
  }
  for (let v = Math.ceil(f.y0 / step) * step; v <= f.y1; v += step) {
    const [, y] = f.pixel([0, v]);
    svg.append(el("line", { class: "rule", x1: 0, x2: w, y1: y, y2: y }));
    if (y > 20 && y < h - 22) svg.append(el("text", { x: 5, y: y - 3 }, told(v)));
  }
  svg.append(el("path", { class: "north", d: `M${w - 20} 8l7 20l-7 -5l-7 5z` }));
  svg.append(el("text", { class: "strong", x: w - 20, y: 41, "text-anchor": "middle" }, "N"));
  return step;
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

// ring draws where a node is, and its name where there is room for it; the name
// stands in its tooltip too. An end of the trial is named in any case.
function ring(svg, name, [cx, cy], radius, taken, w, end) {
  const mark = svg.appendChild(el("g", { transform: `translate(${cx} ${cy})` })), circle = el("circle", { class: "ring", r: radius });
  circle.append(el("title", {}, name));
  mark.append(circle);
  const width = 7 * name.length, x = cx + radius + 3 + width < w ? radius + 3 : -radius - 3 - width;
  const box = { x: cx + x, y: cy - 13, right: cx + x + width, bottom: cy + 1 };
  const named = end || !taken.some((t) => t.x < box.right && box.x < t.right && t.y < box.bottom && box.y < t.bottom);
  if (named) {
    taken.push(box);
    mark.append(el("text", { class: end ? "strong" : "", x, y: -3 }, name));
  }
  return [mark, named];
}

// momentAt is the moment of a timeline at a second; what has not happened has none.
const momentAt = (c, s) => c.timeline[Math.floor(Math.round(s * 10) / Math.round(c.step_s * 10))];

// then is where a node was at a second of the window, or is last.
function then(track, s) {
  let best = track[track.length - 1];
  if (known(s)) for (const p of track) if (known(p[2]) && !(Math.abs(p[2] - s) >= Math.abs((best[2] ?? Infinity) - s))) best = p;
  return best;
}

// map draws the tracks, and rings where the nodes were at a second; without one,
// where they are. It tells what its colours mean. map.move puts the rings elsewhere.
function map(c, closer, s) {
  const [svg, w, h] = clean("map"), seen = c.nodes.filter((n) => n.track?.length);
  map.move = () => {};
  if (!seen.length) return "no position is known";
  const stands = seen.find((n) => n.name !== c.car && (n.name === c.sender || n.name === c.receiver)) ?? seen[0];
  const centre = then((seen.find((n) => n.name === c.car) ?? stands).track, s);
  const f = projection(seen.flatMap((n) => n.track), stands.track[0], w, h, closer, centre);
  streets(svg, f);
  const step = grid(svg, w, h, f);
  const top = Math.max(1, ...c.timeline.filter((p) => known(p.bps)).map((p) => p.bps));
  const colour = (p) => {
    const bps = known(p[2]) ? momentAt(c, p[2])?.bps : undefined;
    return known(bps) ? COLOURS[Math.min(4, Math.floor((5 * bps) / top))] : GREY;
  };
  for (const n of seen) dots(svg, n.track, f.place, colour);
  const radius = seen.length > MANY ? 5 : 7;
  const at = (n, s) => f.place(then(n.track, s));
  const taken = seen.map((n) => at(n, s)).map(([x, y]) => ({ x: x - radius, y: y - radius, right: x + radius, bottom: y + radius }));
  const rings = seen.map((n) => ring(svg, n.name, at(n, s), radius, taken, w, n.name === c.sender || n.name === c.receiver));
  map.move = (s) => rings.forEach(([mark], i) => mark.setAttribute("transform", `translate(${at(seen[i], s).map((v) => v.toFixed(1)).join(" ")})`));
  const hidden = rings.filter(([, named]) => !named).length;
  return `grid ${+step.toPrecision(3)} m, from ${stands.name}; colour: throughput, dark none, yellow ${(top / 1e6).toFixed(1)} Mbit/s; grey: outside the window` +
    (hidden ? `; ${hidden} names have no room: point at a ring` : "");
}

// levels draws one sign for each result, and a bar at each level's mean.
function levels(all, unit, look) {
  const [svg, w, h] = clean("levels");
  svg.setAttribute("aria-label", all.length ? all.map((l) => `${l.name}${unit}: mean ${l.mbps.toFixed(2)} Mbit/s of ${l.n}`).join("; ") : "no result yet");
  if (!all.length) return;
  const high = nice(Math.max(0.01, ...all.flatMap((l) => l.points.map((p) => p.mbps)))), each = (w - LEFT - RIGHT) / all.length;
  const y = (v) => h - BOTTOM - ((h - BOTTOM - TOP) * v) / high;
  rules(svg, w, y, [0, high / 2, high]);
  all.forEach((l, i) => {
    const x = LEFT + (i + 0.5) * each, room = Math.max(2, Math.floor(each / 7));
    l.points.forEach((p, j) => {
      const share = ((j * 0.618) % 1) - 0.5; // beside each other, and where they were before
      const sign = el("circle", { class: p.car_gets ? "result gets" : "result", cx: x + share * Math.min(each * 0.6, 60), cy: y(p.mbps), r: 4.5 });
      sign.append(el("title", {}, `trial ${p.trial}, attempt ${p.attempt}: ${p.mbps.toFixed(2)} Mbit/s`));
      sign.addEventListener("click", () => look(p));
      svg.append(sign);
    });
    svg.append(el("line", { class: "mean", x1: x - Math.min(each * 0.4, 40), x2: x + Math.min(each * 0.4, 40), y1: y(l.mbps), y2: y(l.mbps) }));
    svg.append(el("text", { x, y: h - 4, "text-anchor": "middle" }, l.name.length > room ? l.name.slice(0, room - 1) + "…" : l.name));
  });
}
