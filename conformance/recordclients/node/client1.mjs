// node client1.mjs "" COMMAND ARGS…: a session of the TypeScript SDK 1.x.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [command, ...args] = process.argv.slice(3);
const client = new Client({ name: "recordclients", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: { name: "Ada" } }));
await client.connect(new StdioClientTransport({ command, args }));
await client.listTools();
await client.callTool({ name: "echo", arguments: { text: "a ${b} é" } });
await client.callTool({ name: "steps", arguments: { n: 3 } }, undefined, { onprogress: () => {} });
await client.callTool({ name: "structured", arguments: { n: 21 } });
await client.callTool({ name: "ask", arguments: {} });
await client.readResource({ uri: "test://static-text" });
await client.getPrompt({ name: "test_simple_prompt" });
await client.close();
