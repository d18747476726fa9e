<#
Carries out one call after the other, until one ends it or none is left. A call begins as the first one did, by the preferences that modules
are written for: an error that a command reports ends nothing. Errors have a stream of their own, so that those that a resource caught
or put away are none. What few calls need is elsewhere: PowerShell compiles what is in a loop.
#>
param($turn, $restore, $shared)
$target = $shared.Target
$bodies = $shared.Bodies
$after = $shared.After
$left = $false
$getVariable = $null
try {
    while ($true) {
        # A "continue" outside of a loop comes here.
        if ($left) { return }
        $call = $turn.Next()
        if ($null -eq $call) { return }
        $left = $true
        $body = $bodies[$call.Shape]
        if ($null -eq $body) { $body = $bodies[$call.Shape] = [scriptblock]::Create($shared.Text) }
        $shared.Method = $call.Method
        $shared.Names = $call.Names
        $global:Error.Clear()
        $global:LASTEXITCODE = 0
        $global:ErrorActionPreference = "Continue"
        $global:VerbosePreference = $call.Verbose
        $global:DebugPreference = $call.Debug
        $global:InformationPreference = $call.Information
        $global:WarningPreference = "Continue"
        $global:ProgressPreference = $call.Progress
        $global:ConfirmPreference = "None"
        $global:WhatIfPreference = $false
        $global:DSCMachineStatus = $null
        # A command that is looked for by its name takes longer than most calls.
        if ($null -eq $getVariable) { $getVariable = [System.Management.Automation.CmdletInfo]::new("Get-Variable", [Microsoft.PowerShell.Commands.GetVariableCommand, Microsoft.PowerShell.Commands.Utility]) }
        $values = @(& $getVariable -Scope Global -ValueOnly)
        if ($null -eq $after["Values"]) {
            $after["All"] = @(& $getVariable -Scope Global)
            $after["Options"] = $after["All"].Options
            $after["Values"] = $after["Seen"] = $values
            $after["Culture"] = [cultureinfo]::CurrentCulture
            $after["UICulture"] = [cultureinfo]::CurrentUICulture
            $after["Defaults"] = $global:PSDefaultParameterValues.Clone()
        } else {
            if (-not [System.Collections.StructuralComparisons]::StructuralEqualityComparer.Equals($values, $after["Seen"])) {
                & ([scriptblock]::Create($restore)) $after @(& $getVariable -Scope Global)
                $after["Seen"] = @(& $getVariable -Scope Global -ValueOnly)
            }
            [cultureinfo]::CurrentCulture = $after["Culture"]
            [cultureinfo]::CurrentUICulture = $after["UICulture"]
            if ($global:PSDefaultParameterValues.Count -or $after["Defaults"].Count) { $global:PSDefaultParameterValues = $after["Defaults"].Clone() }
        }
        # A path is a pattern here.
        $path = $ExecutionContext.SessionState.Path
        if ($path.CurrentLocation.Path -cne $call.Directory) { [void]$path.SetLocation([WildcardPattern]::Escape($call.Directory)) }
        $shared.Began = $true
        & $body $target $shared.Values $shared 3>&1 4>&1 5>&1 6>&1
        $shared.Reboot = [bool]($global:DSCMachineStatus -eq 1)
        $shared.Came = $true
        $left = $false
        $turn.Done()
    }
} catch {
    if ($shared.Began) { throw }
    $shared.Unready = $_
} finally {
    # Whatever ended it.
    if ($left) { $turn.Leave() }
}
