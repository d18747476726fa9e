<#
What runs in the runspace of a module, and the load of the first one: it goes on while the worker itself is read.

$first is a runspace that is being opened. Before this stands $words: the kind, the module and the resource of the first call.
#>

# An error that ends a statement would not end a resource without a 'try' around it. 'exit' and a 'break' outside of a loop leave it
# without an error: a call has come to its end where that is said.

$loadModule = {
    param($path)
    # A module of the program itself has no file.
    if ($path.StartsWith('text:', [StringComparison]::Ordinal)) { return New-Module -ScriptBlock ([scriptblock]::Create($path.Substring(5))) }
    # A path is a pattern here.
    $loaded = @(Import-Module -Name ([WildcardPattern]::Escape($path)) -PassThru -DisableNameChecking -ErrorAction Stop)
    # Scripts to be processed may be among them.
    foreach ($each in $loaded) { if ($each.Path -cne $path) { $each } }
    foreach ($each in $loaded) { if ($each.Path -ceq $path) { $each } }
}

# A class is visible in the scope of its module alone.
$findType = {
    param($module, $name)
    foreach ($each in @($module) + @($module.NestedModules)) {
        if (-not $each.SessionState) { continue }
        $type = & $each { param($n) $n -as [type] } $name
        if ($type) { return $type }
    }
    # That of an assembly is visible everywhere.
    $name -as [type]
}

# The text that makes an instance of a class with these properties and calls the method. Names that are written out are much quicker
# than ones that are looked up for each call.
$classText = {
    param($type, $names, $method)
    $text = 'param($type, $values, $shared) try { $object = $type::new()'
    $all = $type.GetProperties()
    $index = 0
    foreach ($name in $names) {
        $own = ''
        foreach ($each in $all) { if ($each.Name -eq $name) { $own = $each.Name; break } }
        $given = [System.Management.Automation.Language.CodeGeneration]::EscapeSingleQuotedStringContent($name)
        $text += "`n`$shared.Property = '$given'; "
        if ($own) { $text += "`$object.'$own' = `$values[$index]" } else { $text += 'throw [ArgumentException]::new("the resource has no property ''$($shared.Property)''")' }
        $index++
    }
    $text += "`n`$shared.Property = `$null; "
    if ($method -ne 'Export') { $text += "`$object.$method()" }
    elseif ($names.Length -eq 0 -and $type.GetMethod('Export', [type[]]@())) { $text += '$type::Export()' }
    elseif ($type.GetMethod('Export', [type[]]@($type))) { $text += '$type::Export($object)' }
    else {
        $given = if ($names.Length) { 'with' } else { 'without' }
        $text += "throw [NotSupportedException]::new(`"Export method $given parameters not implemented by resource '`$type'`")"
    }
    [scriptblock]::Create($text + ' } catch { throw }')
}

$scriptText = {
    param($module, $names, $method)
    {
        param($module, $values, $shared)
        try {
            $method = $shared.Method
            $command = $module.ExportedCommands["$method-TargetResource"]
            if (-not $command) { throw [InvalidOperationException]::new("the module exports no command '$method-TargetResource'") }
            $arguments = @{}
            $index = 0
            foreach ($name in $shared.Names) {
                $value = $values[$index++]
                $shared.Property = $name
                $parameter = $command.Parameters.Values | Where-Object Name -eq $name
                if (-not $parameter) {
                    # Get is given all properties and may declare the keys alone.
                    if ($method -eq 'Get') { continue }
                    throw [ArgumentException]::new("the resource has no property '$name'")
                }
                if ($value -is [hashtable] -and $parameter.ParameterType -eq [ciminstance[]]) {
                    if (-not $IsWindows) {
                        throw [NotSupportedException]::new("a table needs the cmdlet New-CimInstance here, which is not on this system")
                    }
                    $value = [ciminstance[]]@(foreach ($pair in $value.GetEnumerator()) {
                            CimCmdlets\New-CimInstance -ClientOnly -Namespace root/Microsoft/Windows/DesiredStateConfiguration -ClassName MSFT_KeyValuePair -Property @{ Key = "$($pair.Key)"; Value = "$($pair.Value)" }
                        })
                }
                $arguments[$parameter.Name] = $value
            }
            $shared.Property = $null
            & $command @arguments
        } catch { throw }
    }
}

$automatic = '$', '?', '^', '_', 'args', 'ConsoleFileName', 'EnabledExperimentalFeatures', 'Error', 'ExecutionContext', 'foreach', 'HOME', 'Host', 'input',
    'LASTEXITCODE', 'MyInvocation', 'NestedPromptLevel', 'PID', 'PSBoundParameters', 'PSCmdlet', 'PSCommandPath', 'PSItem', 'PSScriptRoot',
    'ErrorActionPreference', 'VerbosePreference', 'DebugPreference', 'InformationPreference', 'WarningPreference', 'ProgressPreference',
    'ConfirmPreference', 'WhatIfPreference', 'PWD', 'sender', 'ShellId', 'StackTrace', 'switch', 'this', 'true', 'false', 'null', 'PSDefaultParameterValues', 'DSCMachineStatus'

# Puts the global variables back where any is not as the last call found it. What is automatic is PowerShell's own.
$restore = {
    param($after, $all, [string[]] $names)
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
}

# Carries out one call after the other, until one ends it or none is left. A call begins as the first one did, by the preferences that modules
# are written for: an error that a command reports ends nothing. Errors have a stream of their own, so that those that a resource caught
# or put away are none. What few calls need is elsewhere: PowerShell compiles what is in a loop.
$callText = 'param($given, $ended, $textOf, $restore, $automatic, $shared)
    $target = $shared.Target
    $bodies = $shared.Bodies
    $after = $shared.After
    $left = $false
    $getVariable = $null
    try {
        while ($true) {
            # A "continue" outside of a loop comes here.
            if ($left) { return }
            [void]$given.WaitOne(); $call = $shared.Call
            if ($null -eq $call) { return }
            $left = $true
            $body = $bodies[$call.Shape]
            if ($null -eq $body) { $body = $bodies[$call.Shape] = & ([scriptblock]::Create($textOf)) $target $call.Names $call.Method }
            $shared.Method = $call.Method
            $shared.Names = $call.Names
            $global:Error.Clear()
            $global:LASTEXITCODE = 0
            $global:ErrorActionPreference = "Continue"
            $global:VerbosePreference = $call.Verbose
            $global:DebugPreference = $call.Debug
            $global:InformationPreference = $call.Information
            $global:WarningPreference = "Continue"
            $global:ProgressPreference = "SilentlyContinue"
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
                    & ([scriptblock]::Create($restore)) $after @(& $getVariable -Scope Global) $automatic
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
            [void]$ended.Set()
        }
    } catch {
        if ($shared.Began) { throw }
        $shared.Unready = $_
    } finally {
        # Whatever ended it.
        if ($left) { [void]$ended.Set() }
    }'

# All that comes before the first call of a resource. Scripts are given as text, so that they belong to this runspace.
$prepare = {
    param($kind, $path, $resource, $loadModule, $findType)
    $target = @(& ([scriptblock]::Create($loadModule)) $path)[-1]
    if ($kind -eq 'class') { $target = & ([scriptblock]::Create($findType)) $target $resource }
    if ($null -ne $target) { $target }
}

$folder = [Environment]::CurrentDirectory
$outputEncoding = [Console]::OutputEncoding

# Begins to load the module of a resource in a runspace that has just been opened.
function Start-Load($runspace, $kind, $path, $resource) {
    # For each new runspace PowerShell computes the path anew, with the directories of the user first.
    $computed = $env:PSModulePath
    $env:PSModulePath = $modulePath
    $shell = [powershell]::Create($runspace)
    [void]$shell.AddScript($prepare.ToString(), $true).AddArgument($kind).AddArgument($path).AddArgument($resource)
    [void]$shell.AddArgument($loadModule.ToString()).AddArgument($findType.ToString())
    return @{ Runspace = $runspace; Computed = $computed; Shell = $shell; Running = $shell.BeginInvoke() }
}

while ([string]$first.RunspaceStateInfo.State -eq 'Opening') { [System.Threading.Thread]::Sleep(5) }
$variablesAtStart = [Environment]::GetEnvironmentVariables()
$variablesAtStart['PSModulePath'] = $modulePath
$begun = [hashtable]::new([StringComparer]::Ordinal)
if ([string]$first.RunspaceStateInfo.State -eq 'Opened') { $begun[$words -join '|'] = Start-Load $first $words[0] $words[1] $words[2] }
else { $env:PSModulePath = $modulePath }
