// node client2.mjs legacy|REVISION COMMAND ARGS…: a session of the TypeScript SDK 2.x.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [mode, command, ...args] = process.argv.slice(2);
const options = mode === "legacy" ? {} : { versionNegotiation: { mode: { pin: mode } } };
const client = new Client({ name: "recordclients", version: "1" }, options);
await client.connect(new StdioClientTransport({ command, args }));
await client.listTools();
await client.callTool({ name: "echo", arguments: { text: "a ${b} é" } });
await client.callTool({ name: "steps", arguments: { n: 3 } }, { onprogress: () => {} });
await client.callTool({ name: "structured", arguments: { n: 21 } });
await client.readResource({ uri: "test://static-text" });
await client.getPrompt({ name: "test_simple_prompt" });
await client.close();
