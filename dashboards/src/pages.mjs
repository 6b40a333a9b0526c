// The dashboards themselves.
import * as common from "@grafana/grafana-foundation-sdk/common";
import * as dashboard from "@grafana/grafana-foundation-sdk/dashboard";
import * as geomap from "@grafana/grafana-foundation-sdk/geomap";
import { curves, flows, list, marks, nodes, number, page, pages, runs, trials, variable } from "./parts.mjs";
import { chosen, dataOnly, lastOf, mean, newest, ofRun, rate, rows, source, target, throughput } from "./queries.mjs";

/** tested leaves the nodes that the reader chose. */
const tested = `"node" =~ /^$node$/`;

/** Live trial: what the experimenter at the desk wants to see while a car drives. */
function live() {
  const d = page(pages.live, "Fieldmesh: live trial", "One run as its records arrive: throughput at the receiver's kernel, speed, TCP, radio.")
    .withVariable(runs()).withVariable(trials()).withVariable(nodes()).withVariable(flows());
  for (const m of marks()) d.annotation(m);
  return d
    .withPanel(curves("Throughput", "bps", [target(throughput, { alias: "$tag_flow at $tag_node" })],
      { w: 16, h: 10, min: 0, description: "Unique payload that the receiver's kernel delivered (growth of tcp_info.bytes_received). A sender's curve stays at zero." }))
    .withPanel(curves("Speed", "velocityms", [
      target(newest("fm_gps", "speed_mps", ["node"], { where: tested }), { alias: "$tag_node" }),
      target(newest("fm_truth", "speed_mps", ["of"]), { alias: "$tag_of in the emulated field", refId: "B" }),
    ], { w: 8, h: 10, min: 0, description: "Over ground, by GPS; a fix shows once. In a rehearsal the emulated field's truth beside it." }))
    .withPanel(curves("Round-trip time", "µs", [target(mean("fm_tcp", "rtt_us", ["node", "flow"], { where: `${dataOnly} AND ${tested}` }), { alias: "$tag_flow at $tag_node" })], { w: 8, min: 0 }))
    .withPanel(curves("Congestion window", "segments", [target(newest("fm_tcp", "cwnd_segments", ["node", "flow", "stream"], { where: `${dataOnly} AND ${tested}` }), { alias: "$tag_flow/$tag_stream at $tag_node" })], { w: 8, min: 0 }))
    .withPanel(curves("Retransmissions", "segments/s", [target(rate("fm_tcp", "retransmits_total", ["node", "flow"], ["stream", "trial", "attempt"], { where: `${dataOnly} AND ${tested}` }), { alias: "$tag_flow at $tag_node" })], { w: 8, min: 0 }))
    .withPanel(curves("Signal", "dBm", [target(newest("fm_station", "signal_dbm", ["node", "peer"], { where: tested }), { alias: "$tag_peer at $tag_node" })], { w: 8 }))
    .withPanel(curves("Radio bit rate", "Mbits", [target(newest("fm_station", "tx_bitrate_mbps", ["node", "peer"], { where: tested }), { alias: "$tag_node to $tag_peer" })], { w: 8, min: 0 }))
    .withPanel(curves("Channel busy", "percent", [target(rate("fm_survey", "busy_ms", ["node"], ["trial", "attempt"], { factor: " / 10", where: tested }), { alias: "$tag_node" })], { w: 8, min: 0, max: 100, description: "Share of time in which the radio found the channel busy." }))
    .withPanel(curves("Age of the GPS fix", "ms", [target(newest("fm_gps", "fix_age_ms", ["node"], { where: tested }), { alias: "$tag_node" })], { w: 12, min: 0, description: "More than 1500 ms: the fix is stale, and the trial will be judged so." }))
    .withPanel(curves("Lateness of timed loops", "percentunit", [target(newest("fm_lateness", "sum_s", ["node", "source"]), { alias: "$tag_source at $tag_node" })], { w: 12, min: 0, points: true, description: "Seconds behind, summed over a window. Above 1 % of the window a rehearsed trial is rejected." }));
}

/** Map: where the nodes drove, coloured by what the flow got there. */
function map() {
  const position = `SELECT last("lat_deg") AS "lat_deg", last("lon_deg") AS "lon_deg", last("speed_mps") AS "speed_mps" FROM "fm_gps" WHERE ${chosen} GROUP BY time(1s), "node" fill(none)`;
  const delivered = throughput.replaceAll("$__interval", "1s").replace('sum("grown") * 8', 'sum("grown") * 8 AS "throughput_bps"').replaceAll(`, "node", "flow" fill(none)`, ` fill(none)`);
  const layer = new common.MapLayerOptionsBuilder()
    .type("markers").name("nodes")
    .location(new common.FrameGeometrySourceBuilder().mode(common.FrameGeometrySourceMode.Coords).latitude("lat_deg").longitude("lon_deg"))
    .config({ style: { size: { fixed: 5 }, color: { field: "throughput_bps", fixed: "dark-green" }, symbol: { mode: "fixed", fixed: "img/icons/marker/circle.svg" } } });
  const panel = new geomap.PanelBuilder()
    .title("Tracks, coloured by throughput").datasource(source).unit("bps").span(24).height(20)
    .description("Every second of every node, coloured by what the receivers got in that second. Not rendered in the project's tests: the geomap panel is not published as a package.")
    .colorScheme(new dashboard.FieldColorBuilder().mode(dashboard.FieldColorModeId.ContinuousViridis))
    .view(new geomap.MapViewConfigBuilder().id("fit").allLayers(true).padding(20))
    .controls(new geomap.ControlsOptionsBuilder().showScale(true).showZoom(true).mouseWheelZoom(true))
    .layers([layer])
    .withTarget(target(position, { format: "table" }))
    .withTarget(target(delivered, { format: "table", refId: "B" }))
    .withTransformation({ id: "joinByField", options: { byField: "Time", mode: "outer" } });
  return page(pages.map, "Fieldmesh: map", "Tracks of all nodes of a run.")
    .withVariable(runs()).withVariable(trials()).withVariable(flows()).withPanel(panel);
}

/** Fleet: is every node well, before and between trials. */
function fleet() {
  const red = (value) => [{ value, color: "red" }];
  return page(pages.fleet, "Fieldmesh: fleet", "Every node: its trial, GPS, clock, radio, version.")
    .withVariable(runs()).withVariable(nodes())
    .withPanel(number("GPS mode", "none", [target(lastOf("fm_gps", ["mode"], ["node"], tested), { alias: "$tag_node" })],
      { w: 12, steps: [{ value: 0, color: "red" }, { value: 2, color: "orange" }, { value: 3, color: "green" }], description: "1 no fix, 2 2-D, 3 3-D" }))
    .withPanel(number("Age of the fix", "ms", [target(lastOf("fm_gps", ["fix_age_ms"], ["node"], tested), { alias: "$tag_node" })], { w: 12, decimals: 0, steps: [{ value: 0, color: "green" }, ...red(1500)] }))
    .withPanel(curves("Clock against the controller's", "ns", [target(newest("fm_clock", "wall_offset_ns", ["peer"], { filter: ofRun }), { alias: "$tag_peer" })], { w: 12, points: true, description: "The node's wall clock less the controller's; nothing is stepped, the analysis applies it." }))
    .withPanel(curves("Its uncertainty", "ns", [target(newest("fm_clock", "uncertainty_ns", ["peer"], { filter: ofRun }), { alias: "$tag_peer" })], { w: 12, min: 0, points: true }))
    .withPanel(curves("Noise floor", "dBm", [target(newest("fm_survey", "noise_dbm", ["node"], { filter: ofRun, where: tested }), { alias: "$tag_node" })], { w: 12 }))
    .withPanel(curves("Sent and received on the tested interface", "Bps", [
      target(rate("fm_interface", "tx_bytes", ["node"], ["interface", "trial", "attempt"], { filter: ofRun, where: tested }), { alias: "$tag_node sent" }),
      target(rate("fm_interface", "rx_bytes", ["node"], ["interface", "trial", "attempt"], { filter: ofRun, where: tested }), { alias: "$tag_node received", refId: "B" }),
    ], { w: 12, min: 0 }))
    .withPanel(list("Agents", [target(lastOf("fm_provenance", ["agent", "kernel", "arch", "machine", "tested_interface", "driver"]), { format: "table" })], { w: 24, h: 6 }))
    .withPanel(list("Steps of trials", [target(rows("fm_trial", ["node", "trial", "attempt", "state", "outcome", "reason"], { order: "DESC" }), { format: "table" })], { w: 12, h: 10 }))
    .withPanel(list("Changes made to the nodes, and put back", [target(rows("fm_change", ["node", "scope", "action", "what"], { order: "DESC" }), { format: "table" })], { w: 12, h: 10 }));
}

/** Compare: two runs side by side, a rehearsal and the road for instance. */
function compare() {
  const of = (query, name) => query.replaceAll("$run$", `$${name}$`);
  const d = page(pages.compare, "Fieldmesh: compare", "Two runs side by side, each over its own time.")
    .withVariable(variable("run", "run", "fm_trial", { multi: false }))
    .withVariable(variable("other", "with", "fm_trial", { tag: "run", multi: false }))
    .withVariable(trials()).withVariable(flows());
  const signal = newest("fm_station", "signal_dbm", ["node"]);
  const retransmitted = rate("fm_tcp", "retransmits_total", ["node"], ["flow", "stream", "trial", "attempt"], { where: dataOnly });
  for (const [title, unit, query, alias] of [
    ["Throughput", "bps", throughput, "$tag_flow at $tag_node"],
    ["Speed", "velocityms", newest("fm_gps", "speed_mps", ["node"]), "$tag_node"],
    ["Signal", "dBm", signal, "$tag_node"],
    ["Retransmissions", "segments/s", retransmitted, "$tag_node"],
  ])
    for (const name of ["run", "other"])
      d.withPanel(curves(`${title}, $${name}`, unit, [target(of(query, name), { alias })], { w: 12 }));
  return d;
}

export const all = { live, map, fleet, compare };
