// Puts two nodes' positions in three seconds, and a throughput, through the map's transformations,
// and prints the rows that have a position as JSON.
import { readFileSync } from "node:fs";
import { standardTransformers, standardTransformersRegistry, transformDataFrame } from "@grafana/data";
import { lastValueFrom } from "rxjs";
import { frames } from "./frames.js";

globalThis.window = globalThis; // where Grafana looks for a scene
const seconds = [1000, 2000, 3000];
const position = (node, lat) => ({ name: "fm_gps", tags: { node }, columns: ["time", "lat_deg", "lon_deg"], values: seconds.map((ms) => [ms, lat, 11]) });
// One second has a throughput and no position.
const throughput = { name: "fm_tcp", columns: ["time", "throughput_bps"], values: [...seconds, 4000].map((ms) => [ms, 1e6]) };

const [{ targets, transformations }] = JSON.parse(readFileSync("../json/map.json", "utf8")).panels;
const all = [...frames([position("car", 48), position("roadside", 49)], targets[0]), ...frames([throughput], targets[1])];
standardTransformersRegistry.setInit(() => [{ id: "joinByField", name: "Join by field", transformation: () => Promise.resolve(standardTransformers.joinByFieldTransformer) }]);
lastValueFrom(transformDataFrame(transformations, all)).then(([joined]) => {
  const rows = Array.from({ length: joined.length }, (_, i) => Object.fromEntries(joined.fields.map((f) => [f.name, f.values[i]])));
  console.log(JSON.stringify(rows.filter((row) => row.lat_deg !== null)));
});
