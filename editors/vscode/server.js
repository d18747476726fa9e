// How the language server is started; apart from the extension, since this needs nothing of the editor.
"use strict";

/** The command for the settings of a user; the program is `stead` of the PATH unless they name another. */
function serverCommand(settings) {
  return { command: settings?.path || "stead", args: ["lsp"] };
}

module.exports = { serverCommand };
