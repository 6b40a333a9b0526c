// What the dashboards share: variables, annotations, and panels with the same
// looks, so that each dashboard says only what it shows.
import * as dashboard from "@grafana/grafana-foundation-sdk/dashboard";
import * as common from "@grafana/grafana-foundation-sdk/common";
import * as timeseries from "@grafana/grafana-foundation-sdk/timeseries";
import * as stat from "@grafana/grafana-foundation-sdk/stat";
import * as table from "@grafana/grafana-foundation-sdk/table";
import * as xychart from "@grafana/grafana-foundation-sdk/xychart";
import { ofRun, rows, source, target } from "./queries.mjs";

/** The dashboards by their fixed uid; each links to the others. */
export const pages = { live: "fieldmesh-live", map: "fieldmesh-map", fleet: "fieldmesh-fleet", campaign: "fieldmesh-campaign", compare: "fieldmesh-compare", results: "fieldmesh-results" };

/** page begins a dashboard. */
export function page(uid, title, description) {
  return new dashboard.DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags(["fieldmesh"])
    .timezone("browser")
    .tooltip(dashboard.DashboardCursorSync.Crosshair)
    .refresh("5s")
    .time({ from: "now-15m", to: "now" })
    .link(new dashboard.DashboardLinkBuilder("Fieldmesh").type(dashboard.DashboardLinkType.Dashboards).tags(["fieldmesh"]).keepTime(true).includeVars(true))
    .withVariable(new dashboard.DatasourceVariableBuilder("source").label("InfluxDB").type("influxdb"));
}

/** variable lets the reader choose among a tag's values. */
export function variable(name, label, measurement, { tag = name, where = "", multi = true, regex = "" } = {}) {
  const from = [measurement].flat().map((m) => `"${m}"`).join(", ");
  const query = `SHOW TAG VALUES FROM ${from} WITH KEY = "${tag}"${where && ` WHERE ${where}`}`;
  const v = new dashboard.QueryVariableBuilder(name)
    .label(label)
    .datasource(source)
    .query(query)
    .definition(query)
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged)
    .sort(multi ? dashboard.VariableSort.NumericalAsc : dashboard.VariableSort.AlphabeticalDesc)
    .multi(multi)
    .includeAll(multi);
  if (multi) v.allValue(".*").current({ selected: true, text: "All", value: "$__all" });
  if (regex) v.regex(regex);
  return v;
}

/** factor lets the reader choose a tag of the results to group them by. */
export function factor(name, label, first) {
  const query = `SHOW TAG KEYS FROM "fm_result" WHERE "run" =~ /^$run$/`;
  return new dashboard.QueryVariableBuilder(name)
    .label(label)
    .datasource(source)
    .query(query)
    .definition(query)
    .regex("/^(?!(?:attempt|run|trial)$).+/")
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged)
    .sort(dashboard.VariableSort.AlphabeticalAsc)
    .multi(false)
    .includeAll(false)
    .current({ selected: true, text: first, value: first });
}

/** outcomes lets the reader choose a number of the results, by its name and unit. */
export function outcomes(list) {
  const [[text, value]] = list;
  return new dashboard.CustomVariableBuilder("outcome")
    .label("outcome")
    .values(list.map(([text, value]) => `${text} : ${value}`).join(", "))
    .multi(false)
    .includeAll(false)
    .current({ selected: true, text, value });
}

/** runs are those with trials, and nodes' own logs, which have none. */
export const runs = (name = "run", label = "run") => variable(name, label, ["fm_trial", "fm_gps"], { tag: "run", multi: false });
export const trials = () => variable("trial", "trial", "fm_trial", { where: `"run" =~ /^$run$/` });
export const nodes = () => variable("node", "node", "fm_trial", { where: `"run" =~ /^$run$/` });
export const sections = () => variable("section", "section", "fm_result", { where: `"run" =~ /^$run$/` });
export const flows = () => variable("flow", "flow", "fm_tcp", { where: `"run" =~ /^$run$/` });

/** mark draws a vertical line where something happened. */
export function mark(name, colour, query, text) {
  const t = { refId: "Anno", query, rawQuery: true, textEditor: true, resultFormat: "table", fromAnnotations: true, textColumn: text, tagsColumn: "node" };
  const built = { name, datasource: source, enable: true, hide: false, iconColor: colour, query, textColumn: text, tagsColumn: "node", target: t };
  return { build: () => built };
}

/** phases, warnings and what TCP did, as annotations. */
export const marks = () => [
  mark("trial", "blue", rows("fm_trial", ["state", "node"], { filter: ofRun }), "state"),
  mark("events", "red", rows("fm_event", ["text", "node"], { filter: ofRun }), "text"),
  mark("routes", "purple", rows("fm_route", ["action", "destination", "node"], { where: `("action" = 'set' OR "action" = 'delete')` }), "destination"),
  mark("marks", "green", rows("fm_note", ["text", "node"], { filter: ofRun }), "text"),
  mark("time-outs", "orange", rows("fm_tcp_event", ["tcp_event", "count", "node"], { where: `"tcp_event" = 'rto'` }), "tcp_event"),
];

/** at places a panel on the grid of 24 columns. */
const at = (panel, { w = 12, h = 8 }) => panel.span(w).height(h);

/** curves is a time series; a gap of two seconds stays a gap. */
export function curves(title, unit, targets, { w, h, min, max, description = "", points = false, plain = false, limit, band } = {}) {
  const p = new timeseries.PanelBuilder()
    .title(title)
    .description(description)
    .datasource(source)
    .unit(unit)
    .lineWidth(2)
    .fillOpacity(0)
    .spanNulls(2000)
    .interval("100ms")
    .drawStyle(points ? common.GraphDrawStyle.Points : common.GraphDrawStyle.Line)
    .showPoints(points ? common.VisibilityMode.Always : common.VisibilityMode.Never)
    .legend(new common.VizLegendOptionsBuilder().showLegend(!plain).displayMode(common.LegendDisplayMode.Table).placement(common.LegendPlacement.Bottom).calcs(["mean", "lastNotNull"]))
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.Descending));
  if (min !== undefined) p.min(min);
  if (max !== undefined) p.max(max);
  if (limit !== undefined) {
    p.thresholds(new dashboard.ThresholdsConfigBuilder().mode(dashboard.ThresholdsMode.Absolute).steps([{ value: null, color: "transparent" }, { value: limit, color: "red" }]));
    p.thresholdsStyle(new common.GraphThresholdsStyleConfigBuilder().mode(common.GraphThresholdsStyleMode.Dashed));
  }
  if (band) {
    const [low, high] = band;
    const edge = [{ id: "custom.lineWidth", value: 1 }, { id: "color", value: { mode: "fixed", fixedColor: "green" } }, { id: "custom.spanNulls", value: true }, { id: "custom.lineInterpolation", value: "stepAfter" }];
    p.overrideByName(low, edge).overrideByName(high, [...edge, { id: "custom.fillBelowTo", value: low }, { id: "custom.fillOpacity", value: 15 }]);
  }
  for (const t of targets) p.withTarget(t);
  return at(p, { w, h });
}

/** number is one large value for each curve, coloured by steps. */
export function number(title, unit, targets, { w = 4, h = 4, steps = [], decimals, none, description = "", calc = "lastNotNull" } = {}) {
  const p = new stat.PanelBuilder()
    .title(title)
    .description(description)
    .datasource(source)
    .unit(unit)
    .colorMode(common.BigValueColorMode.Value)
    .graphMode(common.BigValueGraphMode.None)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs([calc]).fields("").values(false))
    .thresholds(new dashboard.ThresholdsConfigBuilder().mode(dashboard.ThresholdsMode.Absolute).steps([{ value: null, color: "text" }, ...steps]));
  if (decimals !== undefined) p.decimals(decimals);
  if (none !== undefined) p.noValue(none);
  for (const t of targets) p.withTarget(t);
  return at(p, { w, h });
}

/** cloud is one point for each row: x and y are columns, a series for each value of the tags. */
export function cloud(title, targets, x, y, tags, { w = 24, h = 12, description = "" } = {}) {
  const p = new xychart.PanelBuilder()
    .title(title)
    .description(description)
    .datasource(source)
    .mapping(xychart.SeriesMapping.Auto)
    .series([])
    .show(xychart.XYShowMode.Points)
    .pointSize({ build: () => ({ fixed: 8 }) })
    .legend(new common.VizLegendOptionsBuilder().showLegend(true).displayMode(common.LegendDisplayMode.List).placement(common.LegendPlacement.Bottom))
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Single).sort(common.SortOrder.None))
    .overrideByName(x.name, [{ id: "unit", value: x.unit }, { id: "custom.axisLabel", value: x.label }, { id: "min", value: 0 }])
    .overrideByName(y.name, [{ id: "unit", value: y.unit }, { id: "custom.axisLabel", value: y.label }, { id: "min", value: 0 }])
    .withTransformation({ id: "filterFieldsByName", options: { include: { names: [...tags, x.name, y.name] } } })
    .withTransformation({ id: "partitionByValues", options: { fields: tags, keepFields: false, naming: { asLabels: true } } });
  for (const t of targets) p.withTarget(t);
  return at(p, { w, h });
}

/** matrix is a table of means: a tag's values down, another's across. */
export function matrix(title, query, field, row, column, { w = 8, h = 7, unit = "short", decimals, description = "", steps } = {}) {
  const p = new table.PanelBuilder()
    .title(title)
    .description(description)
    .datasource(source)
    .unit(unit)
    .align("right")
    .cellOptions({ type: "color-background", mode: "basic" })
    .colorScheme(new dashboard.FieldColorBuilder().mode(steps ? dashboard.FieldColorModeId.Thresholds : dashboard.FieldColorModeId.ContinuousBlues))
    .overrideByName(`${row}\\${column}`, [{ id: "custom.cellOptions", value: { type: "auto" } }, { id: "custom.align", value: "left" }, { id: "unit", value: "string" }])
    .withTransformation({ id: "convertFieldType", options: { conversions: row === "speed" ? [{ targetField: row, destinationType: "number" }] : [] } })
    .withTransformation({ id: "sortBy", options: { sort: [{ field: row }] } })
    .withTransformation({ id: "groupingToMatrix", options: { columnField: column, rowField: row, valueField: field, emptyValue: "null" } })
    .withTarget(target(query, { format: "table" }));
  if (decimals !== undefined) p.decimals(decimals);
  if (steps) p.thresholds(new dashboard.ThresholdsConfigBuilder().mode(dashboard.ThresholdsMode.Absolute).steps(steps));
  return at(p, { w, h });
}

/** list is a table; units are by column. */
export function list(title, targets, { w = 24, h = 8, units = {}, colours = {}, links = {}, shaded = [], hidden = [], description = "", transformations = [] } = {}) {
  const p = new table.PanelBuilder().title(title).description(description).datasource(source).filterable(true);
  for (const t of targets) p.withTarget(t);
  for (const t of transformations) p.withTransformation(t);
  const properties = {};
  const add = (name, id, value) => (properties[name] ??= []).push({ id, value });
  for (const [name, unit] of Object.entries(units)) add(name, "unit", unit);
  for (const [name, steps] of Object.entries(colours)) {
    add(name, "thresholds", { mode: "absolute", steps });
    add(name, "color", { mode: "thresholds" });
    add(name, "custom.cellOptions", { type: "color-text" });
  }
  for (const name of shaded) {
    add(name, "custom.cellOptions", { type: "color-background", mode: "basic" });
    add(name, "color", { mode: "continuous-blues" });
  }
  for (const name of hidden) {
    add(name, "custom.hidden", true); // to Grafana before 12.2
    add(name, "custom.hideFrom", { viz: true, legend: false, tooltip: false });
  }
  if (!transformations.some((t) => t.id === "joinByField")) add("Time", "custom.width", 170);
  for (const [name, link] of Object.entries(links)) add(name, "links", [link]);
  for (const [name, list] of Object.entries(properties)) p.overrideByName(name, list);
  return at(p, { w, h });
}

/** join puts several tables beside each other by a column they share, and drops their times. */
export const join = (by, columns) => [
  { id: "filterFieldsByName", options: { include: { names: [by, ...columns] } } },
  { id: "joinByField", options: { byField: by, mode: "outer" } },
];

/** order puts columns in their order, and leaves out those that say nothing. */
export const order = (columns, without = []) => [
  { id: "organize", options: { indexByName: Object.fromEntries(columns.map((c, i) => [c, i])), excludeByName: Object.fromEntries(without.map((c) => [c, true])), renameByName: {}, includeByName: {} } },
];

/**
 * toLive opens the live dashboard at the row's trial, for so many milliseconds around the row's time. The time range of
 * the row's own page may be a month, in which no curve has a trial of seconds.
 */
export const toLive = (ms) => ({ title: "Live trial", url: `/d/${pages.live}?var-run=\${run}&var-trial=\${__value.raw}&time=\${__value.time}&time.window=${ms}` });

/** toResult does so from a result: its column view_ms is for the link alone. */
export const toResult = { links: { trial: toLive("${__data.fields.view_ms}") }, hidden: ["view_ms"] };

export { target };
