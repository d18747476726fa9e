$ErrorActionPreference = 'Stop'
$of = $PSVersionTable
# What is compiled for this PowerShell, or else is now: no module is needed for that, and none looked for.
$from = $env:STEAD_POWERSHELL_WORKER
$env:STEAD_POWERSHELL_WORKER = $null
$name = "$($of['PSVersion']).dll"
$compiled = "$from/$name"
$assembly = $null
# What cannot be loaded is compiled again.
if ([System.IO.File]::Exists($compiled)) {
    try { $assembly = [System.Reflection.Assembly]::Load([System.IO.File]::ReadAllBytes($compiled)) } catch { [System.IO.File]::Delete($compiled) }
}
if ($null -eq $assembly) {
    $addType = [System.Management.Automation.CmdletInfo]::new('Add-Type', [Microsoft.PowerShell.Commands.AddTypeCommand, Microsoft.PowerShell.Commands.Utility])
    # Both paths are patterns: one is the location, whatever it is called, and the other one a name.
    [void]$ExecutionContext.SessionState.Path.SetLocation([WildcardPattern]::Escape($from))
    & $addType -LiteralPath ([System.IO.Directory]::GetFiles($from, '*.cs')) -OutputAssembly $name -OutputType Library
    $assembly = [System.Reflection.Assembly]::Load([System.IO.File]::ReadAllBytes($compiled))
}
$assembly.GetType('SteadWorker.Worker')::Run($of['PSVersion'], $of['PSEdition'], $PSHOME)
