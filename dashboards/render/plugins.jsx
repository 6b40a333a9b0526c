// The panels by Grafana's own components. The plugins around them are not
// published as packages; these are the thinnest that serve.
import { FieldType, PanelPlugin, getFieldDisplayValues } from "@grafana/data";
import { map } from "rxjs";
import { BigValue, TimeSeries, VizRepeater, useTheme2 } from "@grafana/ui";
import { TableNG } from "@grafana/ui/unstable";

const custom = ["drawStyle", "lineWidth", "fillOpacity", "spanNulls", "insertNulls", "showPoints", "pointSize", "lineInterpolation", "lineStyle", "fillBelowTo", "thresholdsStyle", "gradientMode", "axisLabel",
  "axisPlacement", "axisColorMode", "axisSoftMin", "axisSoftMax", "scaleDistribution", "hideFrom", "stacking", "show", "align", "cellOptions", "filterable", "width", "minWidth", "inspect"];
const defaults = { drawStyle: "line", lineWidth: 1, showPoints: "auto", pointSize: 5, axisPlacement: "auto", cellOptions: { type: "auto" }, align: "auto", inspect: false };

const plugin = (component) =>
  new PanelPlugin(component).useFieldConfig({
    useCustomConfig: (builder) => {
      for (const path of custom)
        builder.addCustomEditor({ id: path, path, name: path, editor: () => null, override: () => null, process: (v) => v, shouldApply: () => true, defaultValue: defaults[path] });
    },
  });

const empty = (series) => !series.length || series.every((f) => !f.length);
const Nothing = () => <div data-testid="no data" style={{ display: "grid", placeItems: "center", height: "100%", opacity: 0.6 }}>No data</div>;

function Curves({ data, width, height, timeRange, timeZone, options }) {
  if (empty(data.series)) return <Nothing />;
  return <TimeSeries frames={data.series} structureRev={data.structureRev} width={width} height={height} timeRange={timeRange} timeZone={timeZone} legend={options.legend ?? { showLegend: false }} options={options} />;
}

/** x is the first number of each frame, as with the xychart's automatic mapping. */
function Cloud({ data, width, height, timeRange, timeZone, options }) {
  const both = data.series.every((f) => f.fields.filter((g) => g.type === FieldType.number).length > 1);
  if (empty(data.series) || !both) return <Nothing />;
  const sorted = data.series.map((f, n) => {
    const numbers = f.fields.filter((g) => g.type === FieldType.number);
    const order = [...numbers[0].values.keys()].sort((a, b) => numbers[0].values[a] - numbers[0].values[b]);
    const label = Object.values(numbers[1].labels ?? {}).join(" ");
    const take = (g, more) => ({ ...g, ...more, values: order.map((i) => g.values[i]) });
    const points = { ...numbers[1].config.custom, drawStyle: "points", showPoints: "always", pointSize: 8, lineWidth: 0 };
    return { ...f, fields: [take(numbers[0]), take(numbers[1], { config: { ...numbers[1].config, displayName: label, custom: points }, state: { seriesIndex: n } })] };
  });
  const x = (field) => field.name === sorted[0].fields[0].name;
  return <TimeSeries frames={sorted} width={width} height={height} timeRange={timeRange} timeZone={timeZone} legend={options.legend} fields={{ x, y: (field) => !x(field) && field.type === FieldType.number }} options={options} />;
}

function Numbers({ data, width, height, options, fieldConfig, replaceVariables, timeZone }) {
  const theme = useTheme2();
  const none = fieldConfig.defaults.noValue;
  if (empty(data.series)) return none ? <div data-testid="drawn"><BigValue value={{ text: none, numeric: NaN }} theme={theme} width={width} height={height} graphMode="none" /></div> : <Nothing />;
  const values = () => getFieldDisplayValues({ data: data.series, fieldConfig, reduceOptions: options.reduceOptions, replaceVariables, theme, timeZone });
  return (
    <div data-testid="drawn"><VizRepeater getValues={values} width={width} height={height} source={data} orientation="auto" itemSpacing={3}
      renderValue={({ value, width, height }) => <BigValue value={value.display} theme={theme} width={width} height={height} colorMode={options.colorMode} graphMode="none" justifyMode="auto" textMode={options.textMode ?? "auto"} />} /></div>
  );
}

function Rows({ data, width, height, timeRange, fieldConfig, replaceVariables }) {
  if (empty(data.series)) return <Nothing />;
  return <TableNG data={data.series[0]} width={width} height={height} structureRev={data.structureRev ?? 1} getActions={() => []} fieldConfig={fieldConfig} replaceVariables={replaceVariables} timeRange={timeRange} />;
}

function Map({ data }) {
  const points = data.series[0]?.length ?? 0;
  return <div data-testid="drawn" style={{ padding: 16 }}>{points ? `Not drawn here: geomap is not published as a package. ${points} positions.` : <Nothing />}</div>;
}

export const plugins = { timeseries: plugin(Curves), xychart: plugin(Cloud), stat: plugin(Numbers), table: plugin(Rows), geomap: plugin(Map) };

/** Grafana's own partitionByValues is part of its server's page, not of a package. */
export const partitionByValues = {
  id: "partitionByValues",
  name: "Partition by values",
  defaultOptions: {},
  operator: ({ fields: by }) => (source) => source.pipe(mapFrames((frame) => partition(frame, by))),
};

function partition(frame, by) {
  const keys = by.map((n) => frame.fields.find((f) => f.name === n));
  const groups = {};
  for (let i = 0; i < frame.length; i++) (groups[JSON.stringify(keys.map((k) => k?.values[i]))] ??= []).push(i);
  return Object.entries(groups).map(([key, at]) => {
    const labels = Object.fromEntries(by.map((n, i) => [n, JSON.parse(key)[i] ?? ""]));
    const fields = frame.fields.filter((f) => !by.includes(f.name)).map((f) => ({ ...f, labels, values: at.map((i) => f.values[i]), state: {} }));
    return { ...frame, length: at.length, fields };
  });
}

const mapFrames = (f) => map((frames) => frames.flatMap(f));
