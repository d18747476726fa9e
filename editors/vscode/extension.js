// Starts `stead lsp`, which does everything else.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { serverCommand } = require("./server");

let client;

async function activate() {
  const settings = vscode.workspace.getConfiguration("stead");
  const selector = [{ language: "stead" }];
  client = new LanguageClient("stead", serverCommand({ path: settings.get("path") }), { documentSelector: selector });
  await client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
