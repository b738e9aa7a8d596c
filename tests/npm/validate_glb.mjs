// Print the report of the glTF validator on each GLB file given, one line of JSON for each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [packages, ...paths] = process.argv.slice(2);
const validator = createRequire(`${packages}/`)("gltf-validator");
for (const path of paths) {
  const report = await validator.validateBytes(new Uint8Array(readFileSync(path)));
  console.log(JSON.stringify(report.issues));
}
