"use strict";
// Shows what the server sends, and attempts that it is asked for. Everything
// from outside is set as text, never as markup. What is not known is a dash,
// and what is old says so.

// written is when the newest record came, by this browser's clock.
let state = null, results = { levels: [], attempts: [], decided: 0 }, written, connected = false, failure = "";
// looked is the judged attempt that is looked at, null: now; shown is what of
// it or of now is drawn. zoom is a range of its window, null: all. pinned is the
// second at which the cursor was put, hovered that of a pointer over a chart.
let looked = null, shown = null, zoom = null, pinned, hovered, closer = 1;

function row(body, cells) {
  const tr = document.createElement("tr");
  for (const [content, className] of cells) {
    const td = document.createElement("td");
    td.append(content);
    if (className) td.className = className;
    tr.append(td);
  }
  body.append(tr);
  return tr;
}

function words(text, className) {
  const e = document.createElement("span");
  e.textContent = text;
  e.className = className;
  return e;
}

const cellOf = (factors) => Object.entries(factors ?? {}).map(([k, v]) => `${k} ${v}`).join(" · ");
// whyOf words a reason: "gate_timeout: …" is a code and a text.
const whyOf = (reason) => (reason ?? "").replace(/^[a-z_]+(?=:|$)/, (code) => code.replaceAll("_", " "));
const nameOf = (k) => `trial ${k.trial}, attempt ${k.attempt}`;
const same = (a, b) => known(a) && known(b) && a.trial === b.trial && a.attempt === b.attempt;

// newest is the last moment in which a value is known, if that is not long ago.
function newest(c, key) {
  const all = c.timeline, end = all.length - 1;
  for (let i = end; i >= 0 && all[end].s - all[i].s < Math.max(2, c.step_s); i--) if (known(all[i][key])) return all[i][key];
}

// READ_S is the longest time between two reads of the archive, in seconds.
const READ_S = 5;

// AGAIN_MS is how long to wait after an answer that refuses the page, before it is asked for again.
const AGAIN_MS = 5000;
const pageAge = () => (known(written) ? Math.max(0, Date.now() - written) / 1000 : 0);
// ageOf is how old a node's newest record is, in seconds, where behind_s is known: it is not of what is over.
const ageOf = (n) => n.behind_s + pageAge();
// gone: what a node told last is not of now any more. The time since the archive was read does not count.
const gone = (c, n) => known(n?.behind_s) && n.behind_s + (pageAge() > READ_S ? pageAge() : 0) > c.quiet_s;
const span = (s) => (s < 120 ? `${Math.floor(s)} s` : `${Math.floor(s / 60)} min`);
const silent = (n) => `not heard for ${span(ageOf(n))}`;
// missed are the nodes of which records are due and none come, the one that is silent for longest first.
const missed = (c) => c.nodes.filter((n) => n.state !== "kept" && gone(c, n)).sort((a, b) => b.behind_s - a.behind_s);
const nodeOf = (c, name) => c.nodes.find((n) => n.name === name);
const speedOf = (c) => (gone(c, nodeOf(c, c.car)) ? undefined : nodeOf(c, c.car)?.speed_mps);

// silence tells which nodes are missed.
function silence(c) {
  const [n, ...others] = missed(c);
  return n ? `${n.name} ${silent(n)}${others.length ? `, and ${others.length} more` : ""}` : "";
}

const GPS = ["no answer", "no fix", "2-D", "3-D"];

// tally counts what nodes have in common: "3-D 198, no fix 2".
function tally(nodes, of) {
  const counts = new Map();
  for (const n of nodes) counts.set(of(n), (counts.get(of(n)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([k, n]) => `${k} ${n}`).join(", ");
}

function drawNodes(c) {
  const nodes = c.nodes, now = (n, v) => (gone(c, n) ? undefined : v), gps = (n) => GPS[now(n, n.gps_mode)] ?? "–", trial = (n) => n.state ?? "–";
  const away = missed(c);
  $("tally").textContent = nodes.length > 2 ? `${nodes.length} nodes. Trial: ${tally(nodes, trial)}. GPS: ${tally(nodes, gps)}.${away.length ? ` Not heard: ${away.length}.` : ""}` : "";
  $("nodes").replaceChildren();
  for (const n of nodes) {
    const who = document.createElement("div"), resent = now(n, n.retransmits);
    who.append(n.name);
    if (away.includes(n)) who.append(" ", words(silent(n), "bad"));
    row($("nodes"), [[who], [trial(n)], [gps(n)], [fixed(now(n, n.fix_age_ms), 0), "n"], [fixed(now(n, n.speed_mps), 1), "n"], [n.congestion ?? "–"],
      [fixed(now(n, n.rtt_ms), 1), "n"], [known(resent) ? String(resent) : "–", "n"]]);
  }
}

// driveOf says who sends, and how the car drives.
function driveOf(t) {
  const parts = [];
  if (known(t.target_mps)) parts.push(`${t.target_mps} m/s`);
  parts.push(t.car === t.sender ? `car sends to ${t.receiver}` : t.car && t.car === t.receiver ? `car receives from ${t.sender}` : `${t.sender} → ${t.receiver}`);
  if (t.car && t.direction) parts.push(t.direction);
  return parts.join(", ");
}

// phaseOf words how far the attempt under way is: what a driver does or waits
// for, what is beside it, and what that means.
function phaseOf(c) {
  const mps = speedOf(c), target = c.target_mps, half = c.band_mps, by = nodeOf(c, c.phase_of);
  const hint = (...all) => [...all, silence(c)].filter(Boolean).join("; ");
  switch (c.phase) {
    case "arming": return ["getting ready", "", hint("the nodes are set up for the trial")];
    case "armed": {
      const banded = known(target) && known(half), window = `the window takes ${c.duration_s} s`, lost = [by, nodeOf(c, c.car)].find((n) => gone(c, n));
      if (lost) return ["not heard", `${lost.name} for ${span(ageOf(lost))}`, `armed when it was last heard; the window of ${c.duration_s} s may have opened since`];
      if (!banded) return ["ready", "", hint("armed: waits for the window to open", window)];
      if (!known(mps)) return ["wait", "", hint(`armed: ${known(nodeOf(c, c.car)?.behind_s) ? "waits for the GPS to tell the speed" : `nothing was heard of ${c.car} yet`}`)];
      if (Math.abs(mps - target) > half) return [mps < target ? "faster" : "slower", `${mps.toFixed(1)} of ${target.toFixed(1)} m/s`, hint("armed: waits for the speed", window)];
      return ["hold", `${mps.toFixed(1)} of ${target.toFixed(1)} m/s`, hint(`armed: the speed is in its band${c.hold_s ? `, for ${c.hold_s} s` : ""}`, `then ${window}`)];
    }
    case "running": {
      const left = known(c.elapsed_s) ? c.duration_s - c.elapsed_s - pageAge() : undefined, told = `${known(left) ? Math.ceil(left) : "–"} s left of ${c.duration_s} s`;
      if (c.unasked && left > -READ_S - c.quiet_s) return left > 0 ? ["measuring", told, "no node is asked for records meanwhile"] : ["window over", "", "the nodes are asked again for what they recorded"];
      if (known(left) && left <= 0) return gone(c, by) ? ["window over?", "", hint("by now it should be")] : ["window over", "", hint("the flows end; waits for what the nodes recorded")];
      return ["measuring", told, hint(known(target) ? "hold the speed" : "")];
    }
    case "draining": return ["ending", "", hint("the flows end, and what the trial changed is put back")];
    case "kept": return ["collecting", "", hint("the nodes' records are collected, and judged")];
    case "judged": return [c.outcome, "", whyOf(c.reason)];
  }
  return ["–", "", hint("no node has told yet how far it is")];
}

function drawPhase() {
  const c = state?.current;
  if (!c) return;
  const [phase, left, hint] = phaseOf(c), before = results.attempts.find((d) => !same(d, c));
  $("step").textContent = `now: ${nameOf(c)}`;
  $("phase").textContent = phase;
  $("phase").className = c.phase === "judged" ? c.outcome : "";
  $("left").textContent = left;
  $("hint").textContent = hint;
  $("last").replaceChildren();
  if (!before || c.phase === "judged") return;
  const came = before.outcome === "accepted" ? (known(before.mbps) ? `, ${before.mbps.toFixed(2)} Mbit/s` : "") : `: ${whyOf(before.reason) || "no reason is known"}`;
  $("last").append(`before: ${nameOf(before)} `, words(before.outcome, before.outcome), came);
}

function drawNow() {
  const c = state.current, n = state.next;
  $("accepted").textContent = state.done.accepted;
  $("trials").textContent = `of ${state.trials} trials`;
  $("runleft").textContent = state.left?.about ?? "–";
  $("runleftby").textContent = state.left ? `about, ${state.left.by}` : state.over ? "nothing is left to drive" : "";
  $("next").textContent = n ? driveOf(n) : "–";
  $("nextcell").textContent = n ? `${nameOf(n)}${n.pass ? `, ${n.pass}` : ""}, window of ${n.duration_s} s · ${cellOf(n.factors)}` : state.over ? "" : "no trial is left to begin";
  if (!c) return;
  const by = (key, ...names) => (names.some((v) => gone(c, nodeOf(c, v))) ? undefined : newest(c, key));
  const mps = speedOf(c), bps = by("bps", c.receiver), target = c.target_mps, half = c.band_mps;
  $("bps").textContent = known(bps) ? (bps / 1e6).toFixed(2) : "–";
  $("mps").textContent = fixed(mps, 1);
  $("dbm").textContent = fixed(by("dbm", c.receiver), 0);
  $("metres").textContent = fixed(by("m", c.sender, c.receiver), 0);
  const judged = known(target) && known(half) && known(mps), inside = judged && Math.abs(mps - target) <= half;
  $("band").textContent = known(target) ? `target ${target.toFixed(1)}${known(half) ? ` ± ${half.toFixed(1)}` : ""}${judged ? (inside ? ": in the band" : mps < target ? ": too slow" : ": too fast") : ""}` : "";
  $("speedbox").className = "big" + (judged ? (inside ? " in" : " out") : "");
}

const range = () => zoom ?? [0, Math.max(shown.duration_s, 1)];
const second = () => hovered ?? pinned;

function drawMap() { $("scale").textContent = [map(shown, closer, second()), silence(shown)].filter(Boolean).join("; "); }

// drawShown draws the attempt that is looked at, or now.
function drawShown() {
  const c = shown;
  if (!c) return;
  $("trial").textContent = `Trial ${c.trial}, attempt ${c.attempt}: ${c.sender} → ${c.receiver}${c.outcome ? ` (${c.outcome})` : ""}`;
  $("cell").textContent = cellOf(c.factors) + (looked && c.reason ? ` · ${whyOf(c.reason)}` : "");
  for (const [id, is, was] of [["where", "Where the nodes are", "Where the nodes were"], ["nodeshead", "Nodes", "Nodes"]])
    $(id).textContent = looked ? `${was}: ${nameOf(c)}` : is;
  $("moment").max = Math.max(c.duration_s, 1);
  for (const p of PLOTS) plot(p, c, range());
  drawMap();
  drawCursor();
  drawDrag();
  drawNodes(c);
  $("events").replaceChildren();
  for (const e of c.events ?? []) {
    const li = document.createElement("li");
    li.textContent = `${e.node}${known(e.s) ? `, ${e.s.toFixed(1)} s` : ""}: ${e.text}`;
    $("events").append(li);
  }
}

// drawCursor puts the one cursor on all charts, and tells the values there.
function drawCursor() {
  if (!shown) return;
  const s = second(), at = known(s) ? momentAt(shown, s) ?? { s } : undefined;
  for (const p of PLOTS) cross(p, at);
  const told = at ? [`${at.s.toFixed(1)} s`, ...PLOTS.map((p) => `${known(at[p.key]) ? (at[p.key] * p.scale).toFixed(p.digits) : "–"} ${p.unit}`), `${fixed(at.m, 0)} m apart`].join(", ") : "–";
  $("at").textContent = told;
  $("moment").value = at?.s ?? 0;
  $("moment").setAttribute("aria-valuetext", told);
}

let due = false;
// moved draws the cursor in the next frame, however often it moves before.
function moved() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    if (!shown) return;
    drawCursor();
    map.move(second());
  });
}

function zoomTo(from, to) {
  const all = Math.max(shown.duration_s, 1), width = Math.max(to - from, 1);
  from = Math.max(0, Math.min(from, all - width));
  zoom = width >= all ? null : [from, from + width];
  drawShown();
}

// zoomBy keeps the cursor, or the middle, in its place.
function zoomBy(factor) {
  if (!shown) return;
  const [from, to] = range(), mid = Math.min(to, Math.max(from, second() ?? (from + to) / 2));
  zoomTo(mid - (mid - from) * factor, mid + (to - mid) * factor);
}

// A drag over a chart chooses a range for all; a tap or a click puts the cursor.
let drag = null;

function drawDrag() {
  if (!drag || !known(drag.to)) return;
  for (const p of PLOTS) {
    const [a, b] = [p.x(drag.from), p.x(drag.to)].sort((x, y) => x - y);
    p.chosen.setAttribute("x", a);
    p.chosen.setAttribute("width", b - a);
  }
}

for (const p of PLOTS) {
  const at = (e) => p.second(e.clientX - p.svg.getBoundingClientRect().left);
  p.svg.addEventListener("pointerdown", (e) => { if (shown && p.second && e.isPrimary && e.button === 0) { drag = { from: at(e), px: e.clientX }; p.svg.setPointerCapture(e.pointerId); } });
  p.svg.addEventListener("pointermove", (e) => {
    if (!shown || !p.second || !e.isPrimary) return;
    hovered = at(e);
    if (drag) drag.to = hovered;
    drawDrag();
    moved();
  });
  p.svg.addEventListener("pointerup", (e) => {
    if (!drag) return;
    const { from, px } = drag, to = at(e);
    drag = null;
    hovered = undefined;
    if (Math.abs(e.clientX - px) > 8) return zoomTo(Math.min(from, to), Math.max(from, to));
    pinned = to;
    moved();
  });
  p.svg.addEventListener("pointercancel", () => { drag = null; hovered = undefined; drawShown(); });
  p.svg.addEventListener("pointerleave", () => { if (!drag) { hovered = undefined; moved(); } });
  p.svg.addEventListener("dblclick", () => { zoom = null; drawShown(); });
}
$("moment").addEventListener("input", () => { pinned = Number($("moment").value); hovered = undefined; moved(); });
$("closer").addEventListener("click", () => zoomBy(0.5));
$("wider").addEventListener("click", () => zoomBy(2));
$("whole").addEventListener("click", () => { zoom = null; pinned = undefined; drawShown(); });
for (const [id, to] of [["mapin", () => Math.min(closer * 2, 64)], ["mapout", () => Math.max(closer / 2, 1)], ["mapall", () => 1]])
  $(id).addEventListener("click", () => { closer = to(); if (shown) drawMap(); });

// look asks for a judged attempt and shows it until somebody goes back to now.
let asked = null, latest = 0;
async function look(d) {
  asked?.abort();
  asked = new AbortController();
  looked = { trial: d.trial, attempt: d.attempt };
  drawLooking(`reading ${nameOf(d)}`);
  const query = new URLSearchParams(location.search), turn = ++latest;
  query.set("trial", d.trial);
  query.set("attempt", d.attempt);
  try {
    const r = await fetch(`attempt?${query}`, { signal: asked.signal });
    if (!r.ok) throw new Error(await r.text());
    const c = await r.json();
    if (turn !== latest) return;
    shown = c;
    [zoom, pinned, hovered] = [null, undefined, undefined];
    drawLooking("");
    drawShown();
  } catch (e) {
    if (turn === latest) drawLooking(`${nameOf(d)} cannot be shown: ${e.message}`);
  }
}

function backToNow() {
  asked?.abort();
  latest++;
  looked = null;
  shown = state?.current ?? null;
  [zoom, pinned, hovered] = [null, undefined, undefined];
  drawLooking("");
  drawShown();
}

// drawLooking says whether now or an attempt before is shown, and marks it, or that it is not there yet.
let said = "";
function drawLooking(news) {
  said = news;
  const all = results.attempts, i = all.findIndex((d) => same(d, looked)), slider = $("attempt");
  $("replay").hidden = all.length === 0;
  slider.max = all.length;
  slider.value = looked && i >= 0 ? all.length - 1 - i : all.length;
  slider.setAttribute("aria-valuetext", looked ? nameOf(looked) : "now");
  $("older").disabled = Number(slider.value) === 0;
  $("newer").disabled = $("back").hidden = !looked;
  $("look").className = looked ? "past" : "";
  $("looking").textContent = news || (looked ? `Looking at ${nameOf(looked)}; the run goes on above.` : all.length ? "Now. Slide back, or choose in the list below, to look at an attempt that is over." : "");
  for (const tr of $("recent").children) tr.className = same(tr.attempt, looked) ? "chosen" : "";
}

// step takes the slider's place: an attempt, or now at its right end.
function step(to) {
  const all = results.attempts;
  if (to >= all.length) backToNow();
  else look(all[all.length - 1 - Math.max(0, to)]);
}
let stepping;
$("attempt").addEventListener("input", () => { clearTimeout(stepping); stepping = setTimeout(() => step(Number($("attempt").value)), 150); });
$("older").addEventListener("click", () => step(Number($("attempt").value) - 1));
$("newer").addEventListener("click", () => step(Number($("attempt").value) + 1));
$("back").addEventListener("click", () => { backToNow(); $("older").focus(); });
addEventListener("keydown", (e) => { if (e.key === "Escape" && looked) backToNow(); });

function drawResults() {
  const r = results, by = r.by || "", unit = by === "speed" ? " m/s" : "";
  $("resultsby").textContent = `Results so far${by ? `, by ${by}` : ""}`;
  $("levelname").textContent = by === "speed" ? "speed, m/s" : by || "level";
  $("results").hidden = r.levels.length === 0;
  levels(r.levels, unit, look);
  const gets = r.levels.some((l) => l.points.some((p) => p.car_gets)), sends = r.levels.some((l) => l.points.some((p) => !p.car_gets));
  $("key").textContent = (r.levels.length ? "one sign for each accepted attempt, a bar at the mean; Mbit/s that the receiver got" : "no result yet") +
    (gets ? `; hollow: the car receives${sends ? ", filled: it sends" : ""}` : "") + (r.unread ? `; ${r.unread} are still being computed` : "");
  $("means").replaceChildren();
  for (const l of r.levels) row($("means"), [[l.name], [l.mbps.toFixed(2), "n"], [String(l.n), "n"]]);
  const focused = document.activeElement?.closest?.("#recent tr")?.attempt;
  $("listed").textContent = r.decided > r.attempts.length ? `the newest ${r.attempts.length} of ${r.decided}` : r.decided ? "" : "none yet";
  $("recent").replaceChildren();
  for (const d of r.attempts) {
    const button = document.createElement("button"), what = document.createElement("div");
    button.type = "button";
    button.textContent = `${d.trial}.${d.attempt}`;
    button.setAttribute("aria-label", `look at ${nameOf(d)}, ${d.outcome}`);
    button.addEventListener("click", () => { look(d); $("look").scrollIntoView(); });
    what.append(words(d.outcome, d.outcome), words(` ${cellOf(d.factors)}`, "small"), words(whyOf(d.reason), "why"));
    row($("recent"), [[button], [what], [fixed(d.mbps, 2), "n"]]).attempt = d;
    if (same(focused, d)) button.focus();
  }
  drawLooking(said);
}

function draw() {
  if (!state) return;
  document.title = `${state.run} – Fieldmesh live`;
  $("run").textContent = `${state.run} (${state.campaign}, ${state.place})`;
  drawNow();
  drawPhase();
  if (looked) return;
  if (!same(shown, state.current)) [zoom, pinned] = [null, undefined];
  shown = state.current ?? null;
  drawShown();
}

// drawAges draws again what is said of nodes when one is not heard, or for longer.
let aged = "";
function drawAges() {
  const c = state?.current, now = (c?.nodes ?? []).map((n) => (!gone(c, n) ? "" : n.state === "kept" ? "kept" : silent(n))).join();
  if (now === aged) return;
  aged = now;
  drawNow();
  if (looked || !shown) return;
  drawMap();
  drawNodes(shown);
}

// tick says how old the page's values are, whatever the server does.
function tick() {
  const s = $("status");
  const age = known(written) ? (Date.now() - written) / 1000 : undefined;
  const done = state !== null && state.over, all = done && state.done.accepted >= state.trials;
  const news = !known(age) ? "waiting for the first record" : `newest record ${age < 2 ? "just now" : `${Math.round(age)} s ago`}`;
  s.className = !connected || failure !== "" || (age > READ_S && !done) ? "old" : "";
  if (!connected && refused) s.textContent = `this address shows no page now: open the one that fieldmesh live prints; ${news}`;
  else if (!connected) s.textContent = `the controller does not answer, trying again; ${news}`;
  else if (failure) s.textContent = `the archive cannot be read: ${failure}`;
  else s.textContent = (all ? "every trial is accepted; " : done ? "every trial is accepted or given up; " : "") + news;
  drawPhase();
  drawAges();
}

// listen follows the run. A browser tries again by itself when a connection ends, and not when an answer refuses it.
let refused = false;
function listen() {
  const source = new EventSource("events" + location.search);
  source.onopen = () => { connected = true; refused = false; tick(); };
  source.onerror = async () => {
    connected = false;
    tick();
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(listen, AGAIN_MS);
    refused = await fetch(location.href).then((r) => r.status === 403, () => false);
  };
  source.addEventListener("state", (e) => { state = JSON.parse(e.data); draw(); });
  source.addEventListener("results", (e) => { results = JSON.parse(e.data); drawResults(); });
  source.addEventListener("status", (e) => {
    const news = JSON.parse(e.data);
    failure = news.failure ?? "";
    if (known(news.age_ms)) written = Date.now() - news.age_ms;
    tick();
  });
}
listen();
setInterval(tick, 500);
for (const when of ["load", "resize"]) addEventListener(when, () => { draw(); if (looked) drawShown(); drawResults(); }); // sizes are known, or others
