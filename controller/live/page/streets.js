"use strict";
// Draws streets under the map's tracks, from a map file beside the run, where
// there is one. The server draws them; here they are put in their place.

// sheet is the drawing that came last, and the box [west, south, east, north]
// for which it was asked; without a map file there is none.
const sheet = { g: el("g", { class: "streets" }), box: null, drawing: null, asking: false, none: false };

// widened is a box on round degrees with the view in it: one drawing serves
// until the view has moved far, and the browser may have kept it.
function widened([west, south, east, north]) {
  const step = 2 ** Math.floor(Math.log2(Math.max(east - west, north - south)) - 1);
  const down = (v) => Math.floor(v / step) * step, up = (v) => Math.ceil(v / step) * step;
  return [Math.max(down(west), -180), Math.max(down(south), -85), Math.min(up(east), 180), Math.min(up(north), 85)];
}

const size = (box) => Math.max(box[2] - box[0], box[3] - box[1]);
const covers = (box, view) => box[0] <= view[0] && box[1] <= view[1] && box[2] >= view[2] && box[3] >= view[3] && size(box) <= 4 * size(view);

// streets puts the drawing under what comes next, and asks for another where the view needs it.
function streets(svg, f) {
  if (!sheet.none && !sheet.asking && !(sheet.box && covers(sheet.box, f.box))) ask(widened(f.box));
  const d = sheet.drawing;
  if (!d) return;
  const [x, y] = f.place([d.north, d.west]), [x1, y1] = f.place([d.north - 1, d.west + 1]);
  sheet.g.setAttribute("transform", `matrix(${(x1 - x) * d.step_deg} 0 0 ${(y1 - y) * d.step_deg} ${x} ${y})`);
  svg.append(sheet.g);
}

async function ask(box) {
  sheet.asking = true;
  const query = new URLSearchParams(location.search);
  ["west", "south", "east", "north"].forEach((side, i) => query.set(side, box[i]));
  try {
    const r = await fetch(`streets?${query}`);
    sheet.none = r.status === 204;
    if (!sheet.none) keep(box, r.ok ? await r.json() : { failure: `the street map cannot be drawn: ${await r.text()}` });
  } catch {
    return; // the controller does not answer, which the page says: it is asked again with what comes next
  } finally {
    sheet.asking = false;
  }
  if (shown) drawMap();
}

function keep(box, d) {
  sheet.box = box;
  sheet.drawing = d.failure ? null : d;
  $("streets").textContent = d.failure ?? [d.note, d.attribution && `Streets: ${d.attribution}`].filter(Boolean).join(". ");
  $("streets").className = d.failure ? "small bad" : "small";
  sheet.g.replaceChildren(...(d.paths ?? []).map((p) => el("path", { class: p.kind, d: p.d })), ...(d.images ?? []).map((i) => {
    const query = new URLSearchParams(location.search);
    for (const k of ["zoom", "x", "y"]) query.set(k, i[k]);
    return el("image", { href: `picture?${query}`, x: i.left, y: i.top, width: i.width, height: i.height, preserveAspectRatio: "none" });
  }));
}
