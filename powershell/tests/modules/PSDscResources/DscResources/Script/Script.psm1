# Runs what it is given, as a resource with functions and a schema.
function Get-TargetResource {
    param([string] $GetScript, [string] $SetScript, [string] $TestScript)
    return @{ GetScript = $GetScript; SetScript = $SetScript; TestScript = $TestScript; Result = "$(& ([scriptblock]::Create($GetScript)))" }
}

function Test-TargetResource {
    param([string] $GetScript, [string] $SetScript, [string] $TestScript)
    return & ([scriptblock]::Create($TestScript))
}

function Set-TargetResource {
    param([string] $GetScript, [string] $SetScript, [string] $TestScript)
    Write-Verbose "sets by $($SetScript.Length) characters"
    & ([scriptblock]::Create($SetScript))
}
