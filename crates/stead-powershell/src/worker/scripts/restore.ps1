<#
Puts the global variables back where any is not as the last call found it. What is automatic is PowerShell's own.
#>
param($after, $all)

[string[]] $names = '$', '?', '^', '_', 'args', 'ConsoleFileName', 'EnabledExperimentalFeatures', 'Error', 'ExecutionContext', 'foreach', 'HOME', 'Host', 'input',
    'LASTEXITCODE', 'MyInvocation', 'NestedPromptLevel', 'PID', 'PSBoundParameters', 'PSCmdlet', 'PSCommandPath', 'PSItem', 'PSScriptRoot',
    'ErrorActionPreference', 'VerbosePreference', 'DebugPreference', 'InformationPreference', 'WarningPreference', 'ProgressPreference',
    'ConfirmPreference', 'WhatIfPreference', 'PWD', 'sender', 'ShellId', 'StackTrace', 'switch', 'this', 'true', 'false', 'null', 'PSDefaultParameterValues', 'DSCMachineStatus'
if (-not $after.Variables) {
    $after.Variables = @{}
    $after.Automatic = [System.Collections.Generic.HashSet[string]]::new($names, [StringComparer]::OrdinalIgnoreCase)
    for ($index = 0; $index -lt $after.All.Count; $index++) {
        $name = $after.All[$index].Name
        # Read-only or constant.
        if ([int]$after.Options[$index] -band 3) { [void]$after.Automatic.Add($name) }
        elseif (-not $after.Automatic.Contains($name)) { $after.Variables[$name] = $after.Values[$index] }
    }
}
$found = [System.Collections.Generic.HashSet[string]]::new([StringComparer]::OrdinalIgnoreCase)
foreach ($each in $all) {
    $name = $each.Name
    if ($after.Automatic.Contains($name)) { continue }
    # One that a call made read-only is made anew, a constant one stays.
    try {
        if ([int]$each.Options -band 3) { Microsoft.PowerShell.Utility\Remove-Variable ([WildcardPattern]::Escape($name)) -Scope Global -Force; continue }
        [void]$found.Add($name)
        if (-not $after.Variables.ContainsKey($name)) { $ExecutionContext.SessionState.PSVariable.Remove("global:$name") }
        elseif (-not [object]::ReferenceEquals($each.Value, $after.Variables[$name])) { $each.Value = $after.Variables[$name] }
    } catch { }
}
foreach ($name in $after.Variables.get_Keys()) {
    if (-not $found.Contains($name)) { try { $ExecutionContext.SessionState.PSVariable.Set("global:$name", $after.Variables[$name]) } catch { } }
}
