-- Writes a document in Neovim with the language server, and prints what a user is shown.
local program, document = os.getenv('STEAD'), os.getenv('DOCUMENT')
vim.cmd('edit ' .. document)
local buffer = vim.api.nvim_get_current_buf()
local client = vim.lsp.start_client({ name = 'stead', cmd = { program, 'lsp' } })
vim.lsp.buf_attach_client(buffer, client)

local function out(text)
  io.stdout:write(text .. '\n')
end

-- The findings, once there are as many as expected.
local function findings(count)
  local there = vim.wait(20000, function() return #vim.diagnostic.get(buffer) == count end, 20)
  out('findings: ' .. #vim.diagnostic.get(buffer) .. (there and '' or ' (others were expected)'))
  for _, each in ipairs(vim.diagnostic.get(buffer)) do
    out(string.format('  %d:%d %s %s', each.lnum + 1, each.col + 1, each.code, (each.message:gsub('\n', '; '))))
  end
end

local function ask(method, line, column, more)
  local params = vim.tbl_extend('force', {
    textDocument = vim.lsp.util.make_text_document_params(buffer),
    position = { line = line - 1, character = column - 1 },
  }, more or {})
  local answers = vim.lsp.buf_request_sync(buffer, method, params, 20000)
  return answers[client].result
end

local function place(word)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    local from = line:find(word, 1, true)
    if from then return number, from end
  end
end

findings(1)
local line, from = place('contents')
local actions = ask('textDocument/codeAction', line, from, {
  range = { start = { line = line - 1, character = from }, ['end'] = { line = line - 1, character = from } },
  context = { diagnostics = {} },
})
out('action: ' .. actions[1].title)
vim.lsp.util.apply_workspace_edit(actions[1].edit, 'utf-16')
findings(0)

-- A key is typed letter by letter, and completed.
local number = place('content: x')
vim.api.nvim_buf_set_lines(buffer, number, number, false, { '' })
for letters = 1, 2 do
  vim.api.nvim_buf_set_lines(buffer, number, number + 1, false, { '    ' .. ('mo'):sub(1, letters) })
end
for _, item in ipairs(ask('textDocument/completion', number + 1, 7)) do
  if vim.startswith(item.label, 'mo') then
    out('completion: ' .. item.label)
    vim.lsp.util.apply_text_edits({ item.textEdit }, buffer, 'utf-16')
  end
end
vim.api.nvim_buf_set_lines(buffer, number, number + 1, false, { vim.api.nvim_buf_get_lines(buffer, number, number + 1, false)[1] .. '"0644"' })
findings(0)

line, from = place('Stead/File')
local hover = ask('textDocument/hover', line, from)
out('hover: ' .. vim.split(hover.contents.value, '\n')[1])
line, from = place("'folder'")
out('definition: line ' .. (ask('textDocument/definition', line, from + 1)[1].range.start.line + 1))
vim.lsp.util.apply_workspace_edit(ask('textDocument/rename', line, from + 1, { newName = 'root' }), 'utf-16')
findings(0)
local edits = ask('textDocument/formatting', 1, 1, { options = { tabSize = 4, insertSpaces = true } })
out('formatting: ' .. #edits .. ' edits')
vim.lsp.util.apply_text_edits(edits, buffer, 'utf-16')
findings(0)
out(table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n'))
vim.lsp.stop_client(client)
vim.wait(20000, function() return vim.lsp.client_is_stopped(client) end, 20)
vim.cmd('qall!')
