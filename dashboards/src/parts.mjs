// What the dashboards share: variables, annotations, and panels with the same
// looks, so that each dashboard says only what it shows.
import * as dashboard from "@grafana/grafana-foundation-sdk/dashboard";
import * as common from "@grafana/grafana-foundation-sdk/common";
import * as timeseries from "@grafana/grafana-foundation-sdk/timeseries";
import * as stat from "@grafana/grafana-foundation-sdk/stat";
import * as table from "@grafana/grafana-foundation-sdk/table";
import { ofRun, rows, source, target } from "./queries.mjs";

/** The dashboards by their fixed uid; each links to the others. */
export const pages = { live: "fieldmesh-live", map: "fieldmesh-map", fleet: "fieldmesh-fleet", compare: "fieldmesh-compare" };

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
  const query = `SHOW TAG VALUES FROM "${measurement}" WITH KEY = "${tag}"${where && ` WHERE ${where}`}`;
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

export const runs = () => variable("run", "run", "fm_trial", { multi: false });
export const trials = () => variable("trial", "trial", "fm_trial", { where: `"run" =~ /^$run$/` });
export const nodes = () => variable("node", "node", "fm_trial", { where: `"run" =~ /^$run$/` });
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
  mark("time-outs", "orange", rows("fm_tcp_event", ["tcp_event", "count", "node"], { where: `"tcp_event" = 'rto'` }), "tcp_event"),
];

/** at places a panel on the grid of 24 columns. */
const at = (panel, { w = 12, h = 8 }) => panel.span(w).height(h);

/** curves is a time series; gaps stay gaps. */
export function curves(title, unit, targets, { w, h, min, max, description = "", points = false, override } = {}) {
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
    .legend(new common.VizLegendOptionsBuilder().showLegend(true).displayMode(common.LegendDisplayMode.Table).placement(common.LegendPlacement.Bottom).calcs(["mean", "lastNotNull"]))
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.Descending));
  if (min !== undefined) p.min(min);
  if (max !== undefined) p.max(max);
  if (override) p.overrideByRegexp(override.name, override.properties);
  for (const t of targets) p.withTarget(t);
  return at(p, { w, h });
}

/** number is one large value for each curve, coloured by steps. */
export function number(title, unit, targets, { w = 4, h = 4, steps = [], decimals, description = "", calc = "lastNotNull" } = {}) {
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
  for (const t of targets) p.withTarget(t);
  return at(p, { w, h });
}

/** list is a table; units are by column. */
export function list(title, targets, { w = 24, h = 8, units = {}, description = "", transformations = [] } = {}) {
  const p = new table.PanelBuilder().title(title).description(description).datasource(source).filterable(true);
  for (const t of targets) p.withTarget(t);
  for (const t of transformations) p.withTransformation(t);
  for (const [name, unit] of Object.entries(units)) p.overrideByName(name, [{ id: "unit", value: unit }]);
  return at(p, { w, h });
}

export { target };
