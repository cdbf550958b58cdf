// Prints every check of the official suite that did not succeed, scored or not,
// and fails when one is neither known nor about HTTP alone.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const dir = process.argv[2];

// The suite's wire check knows the core schema only: it refuses the task handles
// of the very extension that the tasks scenarios test.
const onlyTaskHandles = (check) =>
	check.id === "wire-schema-valid" &&
	(check.details?.violations ?? []).every((v) => v.message?.result?.resultType === "task");

const known = (scenario, check) =>
	scenario.includes("http-custom-header-server-validation") ||
	(scenario.includes("server-tasks-") && onlyTaskHandles(check));

let unknown = 0;
for (const scenario of readdirSync(dir).sort()) {
	for (const check of JSON.parse(readFileSync(join(dir, scenario, "checks.json"), "utf8"))) {
		if (check.status !== "FAILURE" && check.status !== "WARNING") continue;
		const expected = known(scenario, check);
		if (!expected) unknown++;
		const text = (check.errorMessage ?? check.description ?? "").slice(0, 300);
		console.log(`${expected ? "known" : check.status} ${scenario} ${check.id}: ${text}`);
	}
}
console.log(unknown === 0 ? "no unexpected finding" : `${unknown} unexpected findings`);
process.exit(unknown === 0 ? 0 : 1);
