// One dashboard of ../json as a page: its panels in its grid, its queries put
// to the InfluxDB behind the server of this page. ?dashboard=live&run=…&from=…&to=…
import { createRoot } from "react-dom/client";
import { ThemeContext } from "@grafana/ui";
import * as ui from "@grafana/ui";
import { EventBusSrv, createTheme, dateTime, standardEditorsRegistry, standardFieldConfigEditorRegistry, standardTransformers, standardTransformersRegistry, LoadingState } from "@grafana/data";
import { config, setAppEvents, setPluginImportUtils, setRunRequest } from "@grafana/runtime";
import { ConstantVariable, EmbeddedScene, RuntimeDataSource, SceneDataTransformer, SceneGridItem, SceneGridLayout, SceneQueryRunner, SceneTimeRange, SceneVariableSet, VizPanel, sceneUtils } from "@grafana/scenes";
import { Observable, map } from "rxjs";
import { frames } from "./frames.js";
import { partitionByValues, plugins } from "./plugins.jsx";

const asked = new URLSearchParams(location.search);
const values = { run: ".*", other: ".*", trial: ".*", node: ".*", flow: ".*", section: ".*", factor: "section", second: "variant", outcome: "throughput_bps", ...Object.fromEntries(asked) };

/** fill puts in what Grafana would; in a run of the past, now is its end. */
function fill(query, { range, intervalMs }) {
  const [from, to] = [range.from.valueOf(), range.to.valueOf()].map((ms) => `${ms}ms`);
  let text = query.replaceAll("$timeFilter", `time >= ${from} AND time <= ${to}`).replaceAll("$__interval", `${Math.max(intervalMs, 100)}ms`).replaceAll("now()", to);
  for (const [name, value] of Object.entries(values)) text = text.replaceAll(`/^$${name}$/`, `/^${value}$/`).replaceAll(`"$${name}"`, `"${value}"`);
  return text;
}

class Influx extends RuntimeDataSource {
  query(request) {
    return new Observable((out) => {
      Promise.all(request.targets.map((target) => ask(target, request)))
        .then((all) => out.next({ data: all.flat(), state: LoadingState.Done }))
        .catch((error) => out.next({ data: [], state: LoadingState.Error, errors: [{ message: String(error) }] }))
        .finally(() => out.complete());
    });
  }
}

async function ask(target, request) {
  const answer = await fetch(`/query?${new URLSearchParams({ db: "fieldmesh", epoch: "ms", q: fill(target.query, request) })}`);
  const body = await answer.json();
  const wrong = body.error ?? body.results?.[0]?.error;
  if (wrong) throw new Error(`${target.query}: ${wrong}`);
  return frames(body.results[0].series ?? [], target);
}

function panelOf(p) {
  const runner = new SceneQueryRunner({ datasource: { uid: "influx", type: "influx" }, queries: p.targets.map((t) => ({ ...t, datasource: undefined })), maxDataPoints: 800, minInterval: p.interval });
  const $data = p.transformations?.length ? new SceneDataTransformer({ $data: runner, transformations: p.transformations }) : runner;
  const { x, y, w, h } = p.gridPos;
  const body = new VizPanel({ pluginId: `fm-${p.type}`, title: p.title, description: p.description, options: p.options ?? {}, fieldConfig: p.fieldConfig ?? { defaults: {}, overrides: [] }, $data });
  return new SceneGridItem({ x, y, width: w, height: h, isDraggable: false, isResizable: false, body });
}

async function show() {
  const dashboard = await (await fetch(`/json/${asked.get("dashboard")}.json`)).json();
  const theme = createTheme({ colors: { mode: asked.get("theme") ?? "light" } });
  config.theme2 = theme;
  for (const [id, plugin] of Object.entries(plugins)) sceneUtils.registerRuntimePanelPlugin({ pluginId: `fm-${id}`, plugin });
  sceneUtils.registerRuntimeDataSource({ dataSource: new Influx("influx", "influx") });
  const scene = new EmbeddedScene({
    $timeRange: new SceneTimeRange({ from: dateTime(Number(asked.get("from"))).toISOString(), to: dateTime(Number(asked.get("to"))).toISOString() }),
    $variables: new SceneVariableSet({ variables: Object.entries(values).map(([name, value]) => new ConstantVariable({ name, value })) }),
    body: new SceneGridLayout({ children: dashboard.panels.map(panelOf) }),
  });
  document.body.style.background = theme.colors.background.canvas;
  document.body.style.font = "14px Inter, Helvetica, Arial, sans-serif";
  document.body.style.color = theme.colors.text.primary;
  createRoot(document.getElementById("page")).render(
    <ThemeContext.Provider value={theme}>
      <ui.GlobalStyles />
      <scene.Component model={scene} />
    </ThemeContext.Provider>,
  );
}

/** The options that every panel has, with Grafana's defaults; the list is part of its server's page. */
const standard = {
  unit: undefined, min: undefined, max: undefined, decimals: undefined, displayName: undefined, noValue: undefined, links: undefined, mappings: [], filterable: undefined,
  color: { mode: "palette-classic" },
  thresholds: { mode: "absolute", steps: [{ value: -Infinity, color: "green" }, { value: 80, color: "red" }] },
};

standardEditorsRegistry.setInit(() => []);
standardFieldConfigEditorRegistry.setInit(() => Object.entries(standard).map(([path, defaultValue]) => ({ id: path, path, name: path, editor: () => null, override: () => null, process: (v) => v, shouldApply: () => true, defaultValue })));
setAppEvents(new EventBusSrv());
setRunRequest((source, request) => source.query(request).pipe(map((answer) => ({ state: answer.state, series: answer.data, errors: answer.errors, error: answer.errors?.[0], timeRange: request.range, request }))));
setPluginImportUtils({ importPanelPlugin: (id) => Promise.reject(new Error(`no panel ${id}`)), getPanelPluginFromCache: () => undefined });
standardTransformersRegistry.setInit(() =>
  [...new Map([...Object.values(standardTransformers), partitionByValues].map((t) => [t.id, t])).values()].map((t) => ({ id: t.id, name: t.name, transformation: () => Promise.resolve(t), editor: () => null })),
);
show().catch((error) => console.error("page:", error));
