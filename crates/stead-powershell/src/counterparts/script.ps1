# The resource Script: each property is a script of its own. The last object that a script gives is its answer.

function Invoke-Script([string] $Text, [string] $Property) {
    $output = @(& ([scriptblock]::Create($Text)))
    for ($index = 0; $index -lt $output.Count - 1; $index++) { Write-Verbose "${Property}: $($output[$index])" }
    if ($output.Count -gt 0) { return , $output[$output.Count - 1] }
}

function Get-TargetResource {
    param([string] $GetScript, [string] $SetScript, [string] $TestScript)
    $state = Invoke-Script $GetScript 'GetScript'
    if ($state -isnot [hashtable]) { throw 'GetScript must return a hashtable' }
    $state
}

function Test-TargetResource {
    param([string] $GetScript, [string] $SetScript, [string] $TestScript)
    $verdict = Invoke-Script $TestScript 'TestScript'
    if ($verdict -isnot [bool]) { throw 'TestScript must return $true or $false' }
    $verdict
}

function Set-TargetResource {
    param([string] $GetScript, [string] $SetScript, [string] $TestScript)
    $null = Invoke-Script $SetScript 'SetScript'
}
