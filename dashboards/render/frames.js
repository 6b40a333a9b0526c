// InfluxDB's answers as data frames, in the shape that Grafana's InfluxDB data
// source gives them. That data source is not published as a package, so this
// is ours, and what it proves of Grafana's is nothing.
import { FieldType, toDataFrame } from "@grafana/data";

const name = (alias, series, column) =>
  alias ? alias.replace(/\$tag_(\w+)/g, (_, tag) => series.tags?.[tag] ?? "").replaceAll("$col", column) : `${series.name}.${column}`;

/** curves is a frame for each column of each series. */
function curves(series, { alias, refId }) {
  return series.flatMap((s) =>
    s.columns.slice(1).map((column, i) =>
      toDataFrame({
        refId,
        name: name(alias, s, column),
        fields: [
          { name: "Time", type: FieldType.time, values: s.values.map((v) => v[0]) },
          { name: "Value", type: FieldType.number, labels: s.tags, config: { displayNameFromDS: name(alias, s, column) }, values: s.values.map((v) => v[i + 1]) },
        ],
      }),
    ),
  );
}

/** table is one frame of all series, with their tags as columns. */
function table(series, { refId }) {
  if (!series.length) return [];
  const tags = Object.keys(series[0].tags ?? {});
  const rows = series.flatMap((s) => s.values.map((v) => [v[0], ...tags.map((t) => s.tags[t]), ...v.slice(1)]));
  const columns = ["Time", ...tags, ...series[0].columns.slice(1)];
  const typeOf = (i) => {
    const value = rows.find((r) => r[i] !== null)?.[i];
    return i === 0 ? FieldType.time : typeof value === "number" ? FieldType.number : typeof value === "boolean" ? FieldType.boolean : FieldType.string;
  };
  return [toDataFrame({ refId, fields: columns.map((c, i) => ({ name: c, type: typeOf(i), values: rows.map((r) => r[i]) })) })];
}

export const frames = (series, target) => (target.resultFormat === "table" ? table(series, target) : curves(series, target));
