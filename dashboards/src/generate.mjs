// Writes every dashboard as JSON into the folder that is named.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { all } from "./pages.mjs";

const folder = process.argv[2];
if (!folder) {
  console.error("usage: node src/generate.mjs FOLDER");
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
for (const [name, make] of Object.entries(all)) {
  const built = make().build();
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(built, null, 2) + "\n");
}
