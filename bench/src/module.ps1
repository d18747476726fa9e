# Calls of the module Stead, and what is beside them: one line each, of a name and milliseconds.
param($module, $modules)

$ErrorActionPreference = 'Stop'
$env:PSModulePath = $modules
$call = @{ Name = 'Sample'; ModuleName = 'Sample'; Method = 'Test'; Property = @{ Name = 'bench' }; WarningAction = 'Ignore' }
function Measure-Once([scriptblock] $Of) {
    $clock = [System.Diagnostics.Stopwatch]::StartNew()
    $null = & $Of
    return $clock.Elapsed.TotalMilliseconds
}
function Measure-Median([scriptblock] $Of) { return @(1..20 | ForEach-Object { Measure-Once $Of } | Sort-Object)[10] }
function Write-Figure([string] $Name, [double] $Time) { [Console]::Out.WriteLine("$Name $($Time.ToString([cultureinfo]::InvariantCulture))") }

# PowerShell analyses all modules of the path at the first command that it looks for in them, and keeps what it found in its cache.
$null = ConvertTo-Json 1
Write-Figure first (Measure-Once { Import-Module $module; Invoke-DscResource @call })

# A call of .NET that goes through a pipe and back, and does nothing.
$start = [System.Diagnostics.ProcessStartInfo]@{ FileName = 'cat'; UseShellExecute = $false; RedirectStandardInput = $true; RedirectStandardOutput = $true }
$cat = [System.Diagnostics.Process]::Start($start)
Write-Figure pipe (Measure-Median { $cat.StandardInput.WriteLine('{}'); $cat.StandardInput.Flush(); $cat.StandardOutput.ReadLine() })
$cat.StandardInput.Close()
Write-Figure call (Measure-Median { Invoke-DscResource @call })

# Beside each other, each in a runspace that has the module, and of a length that makes the start of runspaces small.
$get = @{ Name = 'Sample'; ModuleName = 'Sample'; Method = 'Get'; Property = @{ Name = 'slow' } }
$runspaces = 1..4 | ForEach-Object {
    $shell = [powershell]::Create()
    [void] $shell.AddScript('param($module) Import-Module $module').AddArgument($module)
    [void] $shell.Invoke()
    $shell.Commands.Clear()
    $shell
}
function Measure-Side([int] $Count) {
    return Measure-Once {
        $running = foreach ($shell in $runspaces[0..($Count - 1)]) {
            $shell.Commands.Clear()
            [void] $shell.AddScript('param($get) Invoke-DscResource @get').AddArgument($get)
            @{ Shell = $shell; Running = $shell.BeginInvoke() }
        }
        foreach ($each in $running) { $each.Shell.EndInvoke($each.Running) }
    }
}
$null = Measure-Side 4
Write-Figure one (Measure-Side 1)
Write-Figure four (Measure-Side 4)

$null = Get-DscResource
Write-Figure list (Measure-Once { $script:found = @(Get-DscResource) })
Write-Figure found $found.Count
