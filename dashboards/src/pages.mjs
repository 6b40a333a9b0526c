// The dashboards themselves.
import * as common from "@grafana/grafana-foundation-sdk/common";
import * as dashboard from "@grafana/grafana-foundation-sdk/dashboard";
import * as geomap from "@grafana/grafana-foundation-sdk/geomap";
import { cloud, curves, factor, flows, join, list, marks, matrix, nodes, number, order, outcomes, page, pages, runs, sections, toLive, toResult, trials, variable } from "./parts.mjs";
import { attempts, between, cells, chosen, counted, dataOnly, heard, lastOf, mean, newest, ofRun, rate, rateShown, results as ofResults, rows, source, tally, target, throughput } from "./queries.mjs";

/** tested leaves the nodes that the reader chose. */
const tested = `"node" =~ /^$node$/`;

/** Live trial: what the experimenter at the desk wants to see while a car drives. */
function live() {
  const d = page(pages.live, "Fieldmesh: live trial", "One run as its records arrive: throughput at the receiver's kernel, speed, TCP, radio.")
    .withVariable(runs()).withVariable(trials()).withVariable(nodes()).withVariable(flows());
  for (const m of marks()) d.annotation(m);
  return d
    .withPanel(curves("Throughput", "bps", [target(throughput, { alias: "$tag_flow at $tag_node" })],
      { w: 16, h: 10, min: 0, description: `Unique payload that the receiver's kernel delivered (growth of tcp_info.bytes_received). A sender's curve stays at zero. ${rateShown}` }))
    .withPanel(curves("Speed", "velocityms", [
      target(newest("fm_gps", "speed_mps", ["node"], { where: tested }), { alias: "$tag_node" }),
      target(newest("fm_truth", "speed_mps", ["of"]), { alias: "$tag_of in the emulated field", refId: "B" }),
      target(newest("fm_target", "speed_low_mps", []).replace("fill(null)", "fill(previous)"), { alias: "band from", refId: "C" }),
      target(newest("fm_target", "speed_high_mps", []).replace("fill(null)", "fill(previous)"), { alias: "band to", refId: "D" }),
    ], { w: 8, h: 10, min: 0, band: ["band from", "band to"], description: "Over ground, by GPS; a fix shows once. In a rehearsal the emulated field's truth beside it. Shaded: the band by which the trial is judged." }))
    .withPanel(curves("Round-trip time", "µs", [target(mean("fm_tcp", "rtt_us", ["node", "flow"], { where: `${dataOnly} AND ${tested} AND "rtt_us" > 0` }), { alias: "$tag_flow at $tag_node" })], { w: 8, min: 0, description: "As the kernel smooths it. Before its handshake is over a socket has none." }))
    .withPanel(curves("Congestion window", "segments", [target(newest("fm_tcp", "cwnd_segments", ["node", "flow", "stream"], { where: `${dataOnly} AND ${tested}` }), { alias: "$tag_flow/$tag_stream at $tag_node" })], { w: 8, min: 0 }))
    .withPanel(curves("Retransmissions", "segments/s", [target(rate("fm_tcp", "retransmits_total", ["node", "flow"], ["stream", "trial", "attempt"], { where: `${between} AND ${tested}` }), { alias: "$tag_flow at $tag_node" })], { w: 8, min: 0, description: rateShown }))
    .withPanel(curves("Signal", "suffix: dBm", [target(newest("fm_station", "signal_dbm", ["node", "peer"], { where: `${tested} AND ${heard}` }), { alias: "$tag_peer at $tag_node" })], { w: 8, description: "Of peers that were heard within 300 ms." }))
    .withPanel(curves("Radio bit rate", "Mbits", [target(newest("fm_station", "tx_bitrate_mbps", ["node", "peer"], { where: tested }), { alias: "$tag_node to $tag_peer" })], { w: 8, min: 0 }))
    .withPanel(curves("Channel busy", "percent", [target(rate("fm_survey", "busy_ms", ["node"], ["trial", "attempt"], { times: 0.1, where: tested }), { alias: "$tag_node" })], { w: 8, min: 0, max: 100, description: `Share of time in which the radio found the channel busy. ${rateShown}` }))
    .withPanel(curves("Hops", "hops", [target(newest("fm_route", "hops", ["node", "destination"], { where: tested }), { alias: "$tag_node to $tag_destination" })], { w: 8, min: 0, points: true, description: "Of the kernel's routes, where the routing protocol tells." }))
    .withPanel(curves("Routing packets", "packets/s", [target(rate("fm_routing", "packets_sent", ["node"], ["protocol", "trial", "attempt"], { where: tested }), { alias: "$tag_node" })], { w: 8, min: 0, description: `What each routing daemon sent, by its own count. ${rateShown}` }))
    .withPanel(curves("Frames lost", "frames/s", [target(`SELECT count("seq") FROM "fm_loss" WHERE ${chosen} GROUP BY time(1s), "cause" fill(none)`, { alias: "$tag_cause" })], { w: 8, min: 0, points: true, description: "By cause; only an emulated radio tells. On a real one see Retransmissions." }))
    .withPanel(curves("Age of the GPS fix", "ms", [target(newest("fm_gps", "fix_age_ms", ["node"], { where: tested }), { alias: "$tag_node" })], { w: 12, min: 0, limit: 1500, description: "More than 1500 ms: the fix is stale, and the trial will be judged so." }))
    .withPanel(curves("Lateness of timed loops", "percentunit", [target(newest("fm_lateness", "sum_s", ["node", "source"], { factor: ' / last("window_s")' }), { alias: "$tag_source at $tag_node" })], { w: 12, min: 0, points: true, description: "Share of the window in which a loop was behind. A rehearsed trial is rejected when the medium's is above the campaign's lateness_share_max (1 % in those that are shipped)." }));
}

/** Map: where the nodes drove, coloured by what the flow got there. */
function map() {
  const position = `SELECT last("lat_deg") AS "lat_deg", last("lon_deg") AS "lon_deg", last("speed_mps") AS "speed_mps" FROM "fm_gps" WHERE ${chosen} GROUP BY time(1s), "node" fill(none)`;
  const delivered = throughput.replaceAll("$__interval", "1s").replace(/(?<=^SELECT )\S+ \* \d+/, '$& AS "throughput_bps"').replaceAll(`, "node", "flow" fill(null)`, ` fill(none)`);
  const layer = new common.MapLayerOptionsBuilder()
    .type("markers").name("nodes")
    .location(new common.FrameGeometrySourceBuilder().mode(common.FrameGeometrySourceMode.Coords).latitude("lat_deg").longitude("lon_deg"))
    .config({ style: { size: { fixed: 5 }, color: { field: "throughput_bps", fixed: "dark-green" }, symbol: { mode: "fixed", fixed: "img/icons/marker/circle.svg" } } });
  const panel = new geomap.PanelBuilder()
    .title("Tracks, coloured by throughput").datasource(source).unit("bps").span(24).height(20)
    .description("Every second of every node, coloured by what the receivers got in that second. Not rendered in the project's tests: the geomap panel is not published as a package.")
    .colorScheme(new dashboard.FieldColorBuilder().mode(dashboard.FieldColorModeId.ContinuousYlBl))
    .view(new geomap.MapViewConfigBuilder().id("fit").allLayers(true).padding(20))
    .controls(new geomap.ControlsOptionsBuilder().showScale(true).showZoom(true).mouseWheelZoom(true))
    .layers([layer])
    .withTarget(target(position, { format: "table" }))
    .withTarget(target(delivered, { format: "table", refId: "B" }))
    .withTransformation({ id: "joinByField", options: { byField: "Time", mode: "outerTabular" } }); // "outer" has one node at a time
  return page(pages.map, "Fieldmesh: map", "Tracks of all nodes of a run.")
    .withVariable(runs()).withVariable(trials()).withVariable(flows()).withPanel(panel);
}

/** Fleet: is every node well, before and between trials. One row for each node, so that 200 fit. */
function fleet() {
  const green = { value: null, color: "green" };
  const above = (orange, red) => [green, { value: orange, color: "orange" }, { value: red, color: "red" }];
  const below = (red, orange) => [{ value: null, color: "red" }, { value: red, color: "orange" }, { value: orange, color: "green" }];
  const ofNode = { filter: ofRun, where: tested };
  const latest = (measurement, columns, refId) => target(lastOf(measurement, columns, tested), { format: "table", refId });
  return page(pages.fleet, "Fieldmesh: fleet", "Every node: heard or not, GPS, clock, radio, battery, disk, version.")
    .withVariable(runs()).withVariable(nodes())
    .withPanel(number("Nodes of the run", "none", [target(`SELECT count("newest") FROM (SELECT last("seq") AS "newest" FROM "fm_trial" WHERE ${ofRun} GROUP BY "node")`)], { w: 4, h: 4, description: "That have sent a record of a trial." }))
    .withPanel(number("Heard within 30 s", "none", [target(`SELECT count("newest") FROM (SELECT last("seq") AS "newest" FROM "fm_interface" WHERE "run" =~ /^$run$/ AND time > now() - 30s GROUP BY "node")`)], { w: 4, h: 4, description: "Whose records reached the database. A node beyond the control link's reach keeps them on its disk and delivers later." }))
    .withPanel(curves("Records by node", "records/s", [target(`SELECT count("seq") / 10 FROM "fm_interface" WHERE ${ofRun} AND ${tested} GROUP BY time(10s), "node" fill(0)`, { alias: "$tag_node" })], { w: 16, h: 4, min: 0, plain: true, description: "Zero: the node is silent, or rests between trials." }))
    .withPanel(list("Nodes", [
      latest("fm_gps", ["mode", "fix_age_ms"], "A"),
      target(`SELECT last("signal_dbm") AS "signal_dbm" FROM "fm_station" WHERE ${ofRun} AND ${tested} AND ${heard} GROUP BY "node"`, { format: "table", refId: "B" }),
      latest("fm_machine", ["battery_percent", "temperature_c", "disk_free_bytes", "spool_bytes", "alarm"], "C"),
      latest("fm_provenance", ["agent", "tested_interface"], "D"),
      latest("fm_trial", ["state", "reason"], "E"),
    ], {
      w: 24, h: 10, description: "Each node's newest record of each kind. GPS mode: 1 no fix, 2 2-D, 3 3-D. Signal: when a peer was last heard. Spool: records on the node's disk, delivered ones among them until the room is needed.",
      units: { fix_age_ms: "ms", signal_dbm: "suffix: dBm", battery_percent: "percent", temperature_c: "celsius", disk_free_bytes: "decbytes", spool_bytes: "decbytes" },
      colours: { mode: below(2, 3), fix_age_ms: above(1000, 1500), signal_dbm: below(-85, -75), battery_percent: below(15, 30), temperature_c: above(70, 85), disk_free_bytes: below(2e8, 1e9) },
      transformations: join("node", ["mode", "fix_age_ms", "signal_dbm", "battery_percent", "temperature_c", "disk_free_bytes", "spool_bytes", "alarm", "agent", "tested_interface", "state", "reason"]),
    }))
    .withPanel(list("Last heard", [target(`SELECT last("seq") AS "record" FROM "fm_interface" WHERE ${ofRun} AND ${tested} GROUP BY "node"`, { format: "table" })], { w: 8, h: 9, units: { Time: "dateTimeFromNow", time: "dateTimeFromNow" } }))
    .withPanel(curves("Clock against the controller's", "ns", [target(newest("fm_clock", "wall_offset_ns", ["peer"], { filter: ofRun, where: `"peer" =~ /^$node$/` }), { alias: "$tag_peer" })], { w: 8, h: 9, points: true, description: "The node's wall clock less the controller's; nothing is stepped, the analysis applies it." }))
    .withPanel(curves("Its uncertainty", "ns", [target(newest("fm_clock", "uncertainty_ns", ["peer"], { filter: ofRun, where: `"peer" =~ /^$node$/` }), { alias: "$tag_peer" })], { w: 8, h: 9, min: 0, limit: 20e6, points: true, description: "Above 20 ms a trial of the shipped campaigns is rejected." }))
    .withPanel(curves("Noise floor", "suffix: dBm", [target(newest("fm_survey", "noise_dbm", ["node"], ofNode), { alias: "$tag_node" })], { w: 12 }))
    .withPanel(curves("Sent and received on the tested interface", "Bps", [
      target(rate("fm_interface", "tx_bytes", ["node"], ["interface", "trial", "attempt"], ofNode), { alias: "$tag_node sent" }),
      target(rate("fm_interface", "rx_bytes", ["node"], ["interface", "trial", "attempt"], ofNode), { alias: "$tag_node received", refId: "B" }),
    ], { w: 12, min: 0, description: rateShown }))
    .withPanel(list("Agents", [target(lastOf("fm_provenance", ["agent", "kernel", "arch", "machine", "tested_interface", "driver"]), { format: "table" })], { w: 24, h: 6, transformations: order([], ["Time", "record"]) }))
    .withPanel(curves("Battery", "percent", [target(newest("fm_machine", "battery_percent", ["node"], ofNode), { alias: "$tag_node" })], { w: 8, h: 6, min: 0, max: 100, description: "Of nodes that have one." }))
    .withPanel(curves("Temperature", "celsius", [target(newest("fm_machine", "temperature_c", ["node"], ofNode), { alias: "$tag_node" })], { w: 8, h: 6, description: "Of the hottest zone, where the kernel tells one." }))
    .withPanel(curves("Disk left for records", "decbytes", [target(newest("fm_machine", "disk_free_bytes", ["node"], ofNode), { alias: "$tag_node" })], { w: 8, h: 6, min: 0, points: true }))
    .withPanel(list("Steps of trials", [target(rows("fm_trial", ["node", "trial", "attempt", "state", "outcome", "reason"], { where: tested, order: "DESC" }), { format: "table" })], { w: 12, h: 10, links: { trial: toLive(180000) } }))
    .withPanel(list("Changes made to the nodes, and put back", [target(rows("fm_change", ["node", "scope", "action", "what"], { where: tested, order: "DESC" }), { format: "table" })], { w: 12, h: 10 }));
}

/** Campaign: what has come of it so far. */
function campaign() {
  const x = { name: "speed_mean_mps", unit: "velocityms", label: "speed by GPS" };
  const y = { name: "throughput_bps", unit: "bps", label: "throughput at the receiver" };
  const d = page(pages.campaign, "Fieldmesh: campaign", "Every judged attempt of a run, whatever the range of time: throughput against speed, and TCP variant by routing protocol.")
    .refresh("30s").time({ from: "now-30d", to: "now" })
    .withVariable(runs()).withVariable(sections())
    .withPanel(number("Accepted", "none", [target(tally(`sum("accepted")`))], { none: "0", h: 4, steps: [{ value: 0, color: "green" }] }))
    .withPanel(number("Left", "none", [target(tally(`max("planned_trials") - sum("accepted")`))], { w: 4, h: 4, description: "Trials of the plan without an accepted attempt; those given up among them." }))
    .withPanel(number("Rejected attempts", "none", [target(tally(`count("outcome")`, `"outcome" = 'rejected'`))], { none: "0", h: 4, steps: [{ value: 1, color: "orange" }] }))
    .withPanel(number("Failed attempts", "none", [target(tally(`count("outcome")`, `"outcome" = 'failed'`))], { none: "0", h: 4, steps: [{ value: 1, color: "red" }] }))
    .withPanel(number("Interrupted attempts", "none", [target(tally(`count("outcome")`, `"outcome" = 'interrupted'`))], { none: "0", h: 4, steps: [{ value: 1, color: "orange" }], description: "Ended from outside: they use up none of a trial's attempts." }))
    .withPanel(number("Runs of this name", "none", [target(tally(`count(distinct("begun"))`))], { h: 4, steps: [{ value: 2, color: "red" }], description: "By when they were begun. More than one: the database has another run of this name, and every number here is of both." }))
    .withPanel(cloud("Throughput against speed", [target(attempts([x.name, y.name], ["section", "unit"], { where: `${counted} AND "section" =~ /^$section$/` }), { format: "table" })], x, y, ["section", "unit"],
      { w: 16, h: 12, description: "One point for each accepted attempt, by section and by the hardware in the car. Speed and distance may go together: the report takes them apart as far as the course allows." }))
    .withPanel(matrix("Mean throughput by speed and section", cells("throughput_bps", "speed", "section"), "throughput_bps", "speed", "section", { w: 8, h: 12, unit: "bps", description: "Of accepted attempts, target speed in m/s down, section across. Intervals and tests are in the report." }));
  const delay = { name: "delay_round_trip_p50_ms", unit: "ms", label: "round trip, median" };
  d.withPanel(cloud("Delay against speed", [target(attempts([x.name, delay.name], ["section", "unit"], { where: `${counted} AND "section" =~ /^$section$/` }), { format: "table" })], x, delay, ["section", "unit"],
    { w: 16, h: 10, description: "Median round trip of the datagrams of a flow of kind delay: one point for each accepted attempt that has one, be it alone or beside other flows. The report has these apart." }))
    .withPanel(matrix("Mean share of datagrams lost by speed and section", cells("datagrams_lost_percent", "speed", "section"), "datagrams_lost_percent", "speed", "section", { w: 8, h: 10, unit: "percent", description: "Of a flow of kind delay: those without an answer within 3 s, of attempts alone and beside other flows together. Target speed in m/s down, section across." }));
  for (const [title, field, unit, description] of [
    ["Throughput", "throughput_bps", "bps", "What the receiver's kernel delivered."],
    ["Packet loss", "packet_loss_percent", "percent", "Of data packets, by the captures at both ends."],
    ["One-way delay", "one_way_delay_mean_ms", "ms", "Of data packets that arrived, by the captures at both ends."],
    ["Goodput", "goodput_ratio", "percentunit", "Packets that brought a new byte ÷ packets sent."],
    ["Time to connect", "connect_time_ms", "ms", "From the client's asking for its first connection to the first SYN-ACK that it got, the search for a way in it. Attempts without a connection are not in it."],
    ["Routing overhead", "routing_packets_per_s", "packets/s", "Routing packets at IP of all nodes, by their captures."],
  ])
    d.withPanel(matrix(title, cells(field, "variant", "routing"), field, "variant", "routing", { w: 8, h: 7, unit, description: `${description} Mean of the accepted attempts: TCP variant down, routing protocol across. Empty without captures, where it needs them.` }));
  d.withPanel(matrix("Without a connection", cells("connect_censored_ms", "variant", "routing", { of: "count" }), "connect_censored_ms", "variant", "routing", { w: 24, h: 5, unit: "none", description: "Accepted attempts whose client asked for its first connection in vain until the window closed or it gave up: TCP variant down, routing protocol across. Empty without captures." }));
  return d.withPanel(list("Attempts", [target(attempts(["outcome", "reason", "speed_target_mps", "speed_mean_mps", "distance_mean_m", "throughput_bps", "retransmits", "rtt_mean_ms", "clock_error_ms"], ["trial", "attempt", "section", "unit", "direction", "variant", "routing"], { where: `"section" =~ /^$section$/`, linked: true }), { format: "table" })], {
    w: 24, h: 12, ...toResult,
    transformations: order(["Time", "trial", "attempt", "outcome", "reason", "section", "unit", "direction", "variant", "routing"]),
    units: { speed_target_mps: "velocityms", speed_mean_mps: "velocityms", distance_mean_m: "lengthm", throughput_bps: "bps", rtt_mean_ms: "ms", clock_error_ms: "ms" },
  }));
}

/** Compare: two runs side by side, a rehearsal and the road for instance. */
function compare() {
  const of = (query, name) => query.replaceAll("$run$", `$${name}$`);
  const d = page(pages.compare, "Fieldmesh: compare", "Two runs side by side, a rehearsal and the road for instance. Curves show what lies in the range of time.")
    .withVariable(runs()).withVariable(runs("other", "with"))
    .withVariable(trials()).withVariable(flows());
  const both = `("run" =~ /^$run$/ OR "run" =~ /^$other$/)`;
  d.withPanel(list("Both runs", [target(`SELECT last("place") AS "place", sum("counts") AS "results", max("planned_trials") AS "planned", mean("throughput_bps") AS "throughput_bps", mean("rtt_mean_ms") AS "rtt_mean_ms", mean("retransmits") AS "retransmits", mean("signal_mean_dbm") AS "signal_mean_dbm", mean("distance_mean_m") AS "distance_mean_m" FROM "fm_result" WHERE ${both} AND ${counted} GROUP BY "run"`, { format: "table" })],
    { w: 24, h: 5, description: "Means over the accepted attempts of each run, calibration passes left out.", units: { throughput_bps: "bps", rtt_mean_ms: "ms", signal_mean_dbm: "suffix: dBm", distance_mean_m: "lengthm" }, transformations: order(["run", "place"], ["Time"]) }));
  const x = { name: "speed_mean_mps", unit: "velocityms", label: "speed by GPS" };
  const y = { name: "throughput_bps", unit: "bps", label: "throughput at the receiver" };
  d.withPanel(cloud("Throughput against speed", [target(attempts([x.name, y.name], ["run", "section"], { filter: both, where: counted }), { format: "table" })], x, y, ["run", "section"], { w: 16, h: 11, description: "One point for each accepted attempt of either run." }));
  d.withPanel(matrix("Mean throughput by speed", `SELECT mean("throughput_bps") AS "throughput_bps" FROM "fm_result" WHERE ${both} AND ${counted} GROUP BY "speed", "run"`, "throughput_bps", "speed", "run", { w: 8, h: 11, unit: "bps", description: "Of accepted attempts: target speed in m/s down, run across." }));
  const signal = newest("fm_station", "signal_dbm", ["node", "peer"], { where: heard });
  const retransmitted = rate("fm_tcp", "retransmits_total", ["node"], ["flow", "stream", "trial", "attempt"], { where: between });
  for (const [title, unit, query, alias, description = ""] of [
    ["Throughput", "bps", throughput, "$tag_flow at $tag_node", rateShown],
    ["Speed", "velocityms", newest("fm_gps", "speed_mps", ["node"]), "$tag_node"],
    ["Signal", "suffix: dBm", signal, "$tag_peer at $tag_node"],
    ["Retransmissions", "segments/s", retransmitted, "$tag_node", rateShown],
  ])
    for (const name of ["run", "other"])
      d.withPanel(curves(`${title}, $${name}`, unit, [target(of(query, name), { alias })], { w: 12, description }));
  return d;
}

/** Results: any number of the results by any factor. */
function results() {
  const spread = (by) =>
    `SELECT count("$outcome") AS "attempts", mean("$outcome") AS "mean", stddev("$outcome") AS "standard_deviation", min("$outcome") AS "least", max("$outcome") AS "greatest" ` +
    `FROM "fm_result" WHERE ${ofResults} AND ${counted} GROUP BY ${by.map((tag) => `"${tag}"`).join(", ")}`;
  const description = "Of the attempts that count. A standard deviation is that of single attempts; intervals and tests are in the report.";
  const units = Object.fromEntries(["mean", "standard_deviation", "least", "greatest"].map((name) => [name, "sishort"]));
  return page(pages.results, "Fieldmesh: results", "The results of a run, whatever the range of time: any outcome by any factor of the campaign, alone and by a second one.")
    .refresh("30s").time({ from: "now-30d", to: "now" })
    .withVariable(runs()).withVariable(factor("factor", "by", "section")).withVariable(factor("second", "and by", "variant"))
    .withVariable(outcomes([
      ["throughput (bit/s)", "throughput_bps"],
      ["amount delivered (MB)", "transferred_mb"],
      ["round trip by the kernel (ms)", "rtt_mean_ms"],
      ["round trip of datagrams\\, median (ms)", "delay_round_trip_p50_ms"],
      ["datagrams lost (%)", "datagrams_lost_percent"],
      ["packet loss (%)", "packet_loss_percent"],
      ["one-way delay (ms)", "one_way_delay_mean_ms"],
      ["goodput (packets with a new byte ÷ packets sent)", "goodput_ratio"],
      ["time to connect\\, where it did (ms)", "connect_time_ms"],
      ["retransmits (segments)", "retransmits"],
      ["routing packets (packets/s)", "routing_packets_per_s"],
      ["longest time without a new byte (s)", "data_outage_s"],
      ["longest time without a route (s)", "route_outage_s"],
      ["hops", "hops_mean"],
      ["signal (dBm)", "signal_mean_dbm"],
      ["distance (m)", "distance_mean_m"],
    ]))
    .withPanel(list("$outcome by $factor", [target(spread(["$factor"]), { format: "table" })], { w: 24, h: 8, shaded: ["mean"], units, description, transformations: order([], ["Time"]) }))
    .withPanel(list("$outcome by $factor and $second", [target(spread(["$factor", "$second"]), { format: "table" })], { w: 24, h: 12, shaded: ["mean"], units, description, transformations: order([], ["Time"]) }))
    .withPanel(list("Attempts", [target(attempts(["$outcome", "speed_mean_mps", "distance_mean_m"], ["trial", "attempt", "$factor", "$second"], { where: counted, linked: true }), { format: "table" })], { w: 24, h: 12, ...toResult, units: { speed_mean_mps: "velocityms", distance_mean_m: "lengthm" } }));
}

export const all = { live, map, fleet, campaign, compare, results };
