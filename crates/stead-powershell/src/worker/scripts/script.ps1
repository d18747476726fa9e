<#
Calls a function of a script resource with the values of a request.
#>
param($module, $values, $call)
try {
    $at = -1
    $method = $call.Method
    $command = $module.ExportedCommands["$method-TargetResource"]
    if (-not $command) { throw [InvalidOperationException]::new("the module exports no command '$method-TargetResource'") }
    $arguments = @{}
    foreach ($name in $call.Names) {
        $value = $values[++$at]
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
    $at = -1
    & $command @arguments
} catch { $call.At = $at; throw }
