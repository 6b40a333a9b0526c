// InfluxQL for every generation of InfluxDB: raw queries with quoted names,
// no SHOW … ON, no retention policy in a name. Measurements, tags and fields
// are those of protocols/wire/INFLUX.md.

/** The data source that every dashboard lets its reader choose. */
export const source = { type: "influxdb", uid: "${source}" };

/** What the reader's choices leave of a measurement. */
const chosen = `"run" =~ /^$run$/ AND "trial" =~ /^$trial$/ AND $timeFilter`;
const ofRun = `"run" =~ /^$run$/ AND $timeFilter`;

/** Results are of the whole run, one point for each attempt: a range of time that begins after its first day would count what is done as left. */
const results = `"run" =~ /^$run$/`;

/** target is a query as a builder of the SDK wants it. */
export function target(query, { alias = "", format = "time_series", refId = "A" } = {}) {
  const built = { refId, datasource: source, rawQuery: true, query, resultFormat: format, ...(alias && { alias }) };
  return { build: () => built };
}

/** newest takes a field's newest value in each interval, one curve for each set of tags. Empty intervals are told, so that gaps show. */
export function newest(measurement, field, tags, { factor = "", where = "", filter = chosen } = {}) {
  const by = tags.map((t) => `, "${t}"`).join("");
  const more = where && ` AND ${where}`;
  return `SELECT last("${field}")${factor} FROM "${measurement}" WHERE ${filter}${more} GROUP BY time($__interval)${by} fill(null)`;
}

/** mean is the mean over each interval. */
export function mean(measurement, field, tags, { factor = "", where = "", filter = chosen } = {}) {
  return newest(measurement, field, tags, { factor, where, filter }).replace(/^SELECT last/, "SELECT mean");
}

/**
 * rate is the growth of a counter per second of its node's clock, from an interval's last sample to the next one's,
 * summed over what lies below the tags: a counter belongs to one socket or radio, and starts anew with it. Divided by
 * the interval's length instead, what a counter grew by in a part of an interval would be too little. A counter's first
 * interval has no rate, so that of counters which follow each other two are never summed.
 */
export function rate(measurement, field, tags, below, { times = 1, where = "", filter = chosen } = {}) {
  const inner = [...tags, ...below].map((t) => `, "${t}"`).join("");
  const outer = tags.map((t) => `, "${t}"`).join("");
  const more = where && ` AND ${where}`;
  return (
    `SELECT sum("grown") * ${1e9 * times} FROM (SELECT non_negative_derivative(last("${field}"), 1s) / non_negative_derivative(last("t_boot_ns"), 1s) AS "grown" FROM "${measurement}" ` +
    `WHERE ${filter}${more} AND "${field}" >= 0 GROUP BY time($__interval)${inner} fill(none)) WHERE $timeFilter GROUP BY time($__interval)${outer} fill(null)`
  );
}

/** rateShown is what a panel of rates says beside what it shows. */
export const rateShown = "A trial shows little or nothing where an interval of the view is as long as its window: choose a narrower range.";

/** data sockets: iperf3's control connection is not the measured flow. */
export const dataOnly = `"stream" != 'control' AND "flow" =~ /^$flow$/`;

/** between leaves the samples of a socket's beat: those at the window's edges are series of their own. */
export const between = `${dataOnly} AND "edge" = ''`;

/** throughput is what the receiving kernel delivered, in bit/s. */
export const throughput = rate("fm_tcp", "bytes_received", ["node", "flow"], ["stream", "trial", "attempt"], { times: 8, where: between });

/** heard leaves samples of a peer that was heard within 300 ms: a radio tells a silent peer's last signal for as long as it knows the peer. */
export const heard = `"inactive_ms" <= 300`;

/** rows are points as they are, for tables and annotations. */
export function rows(measurement, fields, { where = "", filter = ofRun, order = "" } = {}) {
  const more = where && ` AND ${where}`;
  return `SELECT ${fields.map((f) => `"${f}"`).join(", ")} FROM "${measurement}" WHERE ${filter}${more}${order && ` ORDER BY time ${order}`}`;
}

/**
 * lastOf is the newest point of every node: a column that this point does not have is empty. The newest value of each
 * column by itself would be of different points, and a reason that is over would stand beside the step of now.
 */
export function lastOf(measurement, fields, where = "") {
  const picked = fields.map((f) => `"${f}"`).join(", ");
  return `SELECT last("seq") AS "record", ${picked} FROM "${measurement}" WHERE ${ofRun}${where && ` AND ${where}`} GROUP BY "node"`;
}

/**
 * counted leaves the attempts that answer the campaign's question: accepted ones, no calibration passes, and none that
 * was driven after the run had enough. A condition on the field "pass" would not do: where one point has it, InfluxDB
 * takes those that have not out too.
 */
export const counted = `"counts" = 1`;

/** view is how long a link to a trial shows, in ms: half a minute before its window and after it, and so long again before. */
const view = `"window_ms" * 2 + 60000 AS "view_ms"`;

/** attempts are results as rows, each with the tags that are asked for; linked are those with a link to their trial. */
export function attempts(fields, tags, { where = "", filter = results, linked = false } = {}) {
  const more = where && ` AND ${where}`;
  const by = tags.length ? ` GROUP BY ${tags.map((t) => `"${t}"`).join(", ")}` : "";
  return `SELECT ${[...fields.map((f) => `"${f}"`), ...(linked ? [view] : [])].join(", ")} FROM "fm_result" WHERE ${filter}${more}${by}`;
}

/** cells are the mean of a field over the attempts that count, or how many have it, by two tags. */
export function cells(field, row, column, { as = field, of = "mean" } = {}) {
  return `SELECT ${of}("${field}") AS "${as}" FROM "fm_result" WHERE ${results} AND ${counted} AND "section" =~ /^$section$/ GROUP BY "${row}", "${column}"`;
}

/** tally is one number of the campaign. */
export function tally(what, where = "") {
  return `SELECT ${what} FROM "fm_result" WHERE ${results}${where && ` AND ${where}`}`;
}

export { chosen, ofRun, results };
