# PowerShellScript: a script that gets, tests or sets, and what it writes. One that is to set is run by Get as well: what it writes is
# its answer.

function Invoke-Script([string] $Text, [bool] $IsGiven, $Given) {
    $faults = $null
    $tree = [System.Management.Automation.Language.Parser]::ParseInput($Text, [ref] $null, [ref] $faults)
    if ($faults) { throw "Script has syntax errors: $(@($faults.Message) -join '; ')" }
    $names = @(if ($tree.ParamBlock) { $tree.ParamBlock.Parameters.Name.VariablePath.UserPath })
    if ($tree.ParamBlock -and $names.Count -ne 1) { throw 'Script must have exactly one parameter.' }
    if ($IsGiven -and -not $names) {
        throw 'Input was provided but script does not have a parameter to accept input.'
    }
    if ($names -and -not $IsGiven) { throw "Script has a parameter '$names' but no input was provided." }
    $passed = if ($names) { @{ $names[0] = $Given } } else { @{} }
    $VerbosePreference = $DebugPreference = 'Continue'
    & $tree.GetScriptBlock() @passed
}

function Get-TargetResource {
    param([string] $Script, [bool] $IsGiven, $Given)
    @{ output = @(Invoke-Script $Script $IsGiven $Given) }
}

function Test-TargetResource {
    param([string] $Script, [bool] $IsGiven, $Given)
    $output = @(Invoke-Script $Script $IsGiven $Given)
    if ($output.Count -ne 1 -or $output[0] -isnot [bool]) {
        throw 'Test operation did not return a single boolean value.'
    }
    $output[0]
}

function Set-TargetResource { }
