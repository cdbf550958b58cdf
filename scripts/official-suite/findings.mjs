// Prints every check of the official suite that did not succeed, scored or not,
// and fails when there is one.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const dir = process.argv[2];

let found = 0;
for (const scenario of readdirSync(dir).sort()) {
	for (const check of JSON.parse(readFileSync(join(dir, scenario, "checks.json"), "utf8"))) {
		if (check.status !== "FAILURE" && check.status !== "WARNING") continue;
		found++;
		const text = (check.errorMessage ?? check.description ?? "").slice(0, 300);
		console.log(`${check.status} ${scenario} ${check.id}: ${text}`);
	}
}
console.log(found === 0 ? "nothing found, scored or not" : `${found} findings`);
process.exit(found === 0 ? 0 : 1);
