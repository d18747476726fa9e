$ErrorActionPreference = 'Stop'
$of = $PSVersionTable
# What is compiled for this PowerShell, or else is now: no module is needed for that, and none looked for.
$from = $env:STEAD_POWERSHELL_WORKER
$env:STEAD_POWERSHELL_WORKER = $null
$compiled = "$from/$($of['PSVersion']).dll"
if (-not [System.IO.File]::Exists($compiled)) {
    $addType = [System.Management.Automation.CmdletInfo]::new('Add-Type', [Microsoft.PowerShell.Commands.AddTypeCommand, Microsoft.PowerShell.Commands.Utility])
    & $addType -LiteralPath ([System.IO.Directory]::GetFiles($from, '*.cs')) -OutputAssembly $compiled -OutputType Library
}
$assembly = [System.Reflection.Assembly]::Load([System.IO.File]::ReadAllBytes($compiled))
$assembly.GetType('SteadWorker.Worker')::Run($of['PSVersion'], $of['PSEdition'], $PSHOME)
