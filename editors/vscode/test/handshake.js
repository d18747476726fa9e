// Starts the server as the extension does, and has the conversation that an editor begins with.
// node handshake.js PROGRAM; ends with 0 once a mistake in a document was reported.
"use strict";

const { spawn } = require("node:child_process");
const { serverCommand } = require("../server");

const { command, args } = serverCommand({ path: process.argv[2] });
const server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
let received = Buffer.alloc(0);
let version;

function say(message) {
  const text = JSON.stringify({ jsonrpc: "2.0", ...message });
  server.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
}

function take(message) {
  if (message.id === 1) {
    version = message.result.serverInfo.version;
    say({ method: "initialized", params: {} });
    const text = "resources:\n- {name: a, type: Stead/Fil}\n";
    say({ method: "textDocument/didOpen", params: { textDocument: { uri: "file:///a.stead.yaml", languageId: "stead", version: 1, text } } });
  } else if (message.method === "textDocument/publishDiagnostics") {
    console.log(`${version} ${message.params.diagnostics.map((each) => each.code).join(" ")}`);
    say({ id: 2, method: "shutdown" });
  } else if (message.id === 2) {
    say({ method: "exit" });
  }
}

server.stdout.on("data", (bytes) => {
  received = Buffer.concat([received, bytes]);
  for (;;) {
    const head = received.indexOf("\r\n\r\n");
    const length = /Content-Length: (\d+)/i.exec(received.subarray(0, Math.max(head, 0)).toString());
    if (!length || received.length < head + 4 + Number(length[1])) return;
    const end = head + 4 + Number(length[1]);
    take(JSON.parse(received.subarray(head + 4, end).toString()));
    received = received.subarray(end);
  }
});
server.on("error", (error) => { console.error(error.message); process.exit(1); });
server.on("exit", (code) => process.exit(code ?? 1));
say({ id: 1, method: "initialize", params: { processId: process.pid, rootUri: null, capabilities: {} } });
