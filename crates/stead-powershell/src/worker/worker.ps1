<#
A warm worker: reads one request a line and answers with lines, until the socket is closed. One call at a time; whoever
started it ends it when a call takes too long. Standard output and error are not part of the protocol.

Request   7<tab>class|/x/Demo.psd1|Demo|Set|verbose|/home/you|/home/you|texts|Name<tab>n
                                  a random number, what is asked for, the values. U+0001 stands where a | is here, and what is below a
                                  space, and \, is written as a regular expression has it. What is asked for: the kind, the module, the
                                  resource, the method, what is sent of its records ("none": warnings and errors alone), where it
                                  stands, where the document is, the form of the values ("json" where any is not a text), the properties
Answers   {"id":"7","stream":"verbose","message":".."}                        any number, as they happen
          {"id":"7","type":"System.Boolean","output":true}                    what the method returned or leaked
          {"id":"7","type":"System.IntPtr","refused":"$: no JSON form .."}
          {"id":"7","done":{"ended":true,"reboot":false}}                     "ended": the script came to its end
       or {"id":"7","error":{"id":"..","message":"..","reboot":false, ..}}
#>
param($socket, $reader, $writer, $values)

Set-StrictMode -Version 3
$ErrorActionPreference = 'Stop'

# ---- the state of the process -----------------------------------------------------------------------------------------

# The variables, and all of them in one text: whether any changed is asked after each call. One may be called 'Keys'.
function Get-Environment($variables = [Environment]::GetEnvironmentVariables()) {
    return @{ Variables = $variables; Text = ($variables.get_Keys() -join "`0") + "`0" + ($variables.get_Values() -join "`0") }
}

# What a call did to the process is undone, so that the next one starts as if it were alone: with the environment as
# it was when the process started or when the module was loaded.
function Restore-Process($environment) {
    if ([Environment]::CurrentDirectory -cne $folder) { [Environment]::CurrentDirectory = $folder }
    if (-not [object]::ReferenceEquals([Console]::OutputEncoding, $outputEncoding)) { [Console]::OutputEncoding = $outputEncoding }
    [cultureinfo]::DefaultThreadCurrentCulture = [cultureinfo]::DefaultThreadCurrentUICulture = $null
    $found = Get-Environment
    $process['Environment'] = $environment
    if ($found['Text'] -cne $environment['Text']) { Restore-Environment $found['Variables'] $environment }
}

function Restore-Environment($now, $environment) {
    $then = $environment['Variables']
    # $null as a text would be "", which sets a variable to nothing and does not remove it.
    foreach ($name in @($now.get_Keys())) { if (-not $then.ContainsKey($name)) { [Environment]::SetEnvironmentVariable($name, [NullString]::Value) } }
    foreach ($name in @($then.get_Keys())) { if ($now[$name] -cne $then[$name]) { [Environment]::SetEnvironmentVariable($name, $then[$name]) } }
    # They have no order of their own.
    $environment['Text'] = (Get-Environment)['Text']
}

# Where the document is belongs to what each module finds: it changes with the document alone, and is put back by no call.
function Set-Root([string] $root) {
    $process['Root'] = $root
    # A module that is being loaded may have set others.
    [Environment]::SetEnvironmentVariable('DSC_CONFIG_ROOT', $root)
    $atStart['Variables']['DSC_CONFIG_ROOT'] = $root
    $atStart['Text'] = ''
    foreach ($moduleRunspace in $runspaces.get_Values()) {
        $moduleRunspace['Environment']['Variables']['DSC_CONFIG_ROOT'] = $root
        $moduleRunspace['Environment']['Text'] = ''
    }
}

$atStart = Get-Environment $variablesAtStart
$process = @{ Environment = $atStart; Classes = $null; Root = $null }

# ---- values -----------------------------------------------------------------------------------------------------------

function Get-Class([string] $name) {
    if (-not $process['Classes']) { $process['Classes'] = & ([scriptblock]::Create($values)) }
    return $process['Classes'][$name]
}

# What is asked for, as it is said of many calls, and what is known of it. Folders and modules may differ in case alone.
$asked = [hashtable]::new([StringComparer]::Ordinal)

function Get-Texts([string] $line) {
    $texts = $line.Split("`u{1}")
    if ($line.Contains('\')) { for ($index = 0; $index -lt $texts.Length; $index++) { $texts[$index] = [regex]::Unescape($texts[$index]) } }
    return , $texts
}

function Get-Asked([string] $line) {
    $texts = Get-Texts $line
    $kind, $module, $resource, $method, $records, $directory, $root, $form, $names = $texts
    $known = @{ kind = $kind; module = $module; resource = $resource; method = $method; directory = $directory; root = $root; names = [string[]]@(if ($null -ne $names) { $names }) }
    $known['key'] = "$kind|$module|$resource"
    $known['Shape'] = [string]::Join("`0", $texts, 7, $texts.Length - 7) + "`0$method"
    $known['texts'] = $form -ceq 'texts'
    $known['level'] = $level = $levels[$records]
    $known['Verbose'] = $known['Debug'] = $known['Information'] = 'SilentlyContinue'
    if ($level -ge 1) { $known['Information'] = 'Continue' }
    if ($level -ge 2) { $known['Verbose'] = 'Continue' }
    if ($level -ge 3) { $known['Debug'] = 'Continue' }
    $asked[$line] = $known
    return $known
}

# Values, of which not all are texts.
function Get-Values([string] $text) {
    $document = [System.Text.Json.JsonDocument]::Parse($text, $options)
    try {
        $root = $document.RootElement
        $read = [object[]]::new($root.GetArrayLength())
        $index = 0
        foreach ($value in $root.EnumerateArray()) { $read[$index++] = (Get-Class Wire)::Value($value) }
        return , $read
    } finally { $document.Dispose() }
}

$options = [System.Text.Json.JsonDocumentOptions]::new()
$options.MaxDepth = 512

# ---- one runspace for a module ----------------------------------------------------------------------------------------

$runspaces = [hashtable]::new([StringComparer]::Ordinal)

function Open-ModuleRunspace($request) {
    $key = $request['asked']['key']
    if ($runspaces.ContainsKey($key)) {
        $moduleRunspace = $runspaces[$key]
        if (-not [object]::ReferenceEquals($process['Environment'], $moduleRunspace['Environment'])) { Restore-Process $moduleRunspace['Environment'] }
        return $moduleRunspace
    }
    if (-not [object]::ReferenceEquals($process['Environment'], $atStart)) { Restore-Process $atStart }
    $loading = $begun[$key]
    $begun.Remove($key)
    if ($null -eq $loading) {
        $runspace = New-ModuleRunspace
        $runspace.Open()
        $loading = Start-Load $runspace $request['asked']['kind'] $request['asked']['module'] $request['asked']['resource']
    }
    $moduleRunspace = @{ Runspace = $loading['Runspace']; Environment = $atStart; Shell = $null; Shared = [hashtable]::Synchronized(@{ Property = $null; Bodies = [hashtable]::new([StringComparer]::Ordinal); Call = $null; Values = $null; Target = $null; After = @{}; Began = $false; Came = $false; Reboot = $false; Unready = $null }) }
    $runspaces[$key] = $moduleRunspace
    New-Calls $moduleRunspace $request['asked']['kind']
    $loaded = Complete-Load $loading
    if ($null -eq $loaded) { throw [InvalidOperationException]::new("the module has no resource '$($request['asked']['resource'])'") }
    $moduleRunspace['Shared']['Target'] = $loaded
    # What it set in the environment when it was loaded is its own, also what it added to the path, without what PowerShell adds.
    if ($env:PSModulePath -cne $modulePath) {
        $separator = [System.IO.Path]::PathSeparator
        $own = $modulePath.Split($separator)
        $computed = @($loading['Computed'].Split($separator) | Where-Object { $_ -notin $own })
        $paths = $env:PSModulePath.Split($separator) | Where-Object { $_ -notin $computed }
        $env:PSModulePath = [string]::Join($separator, @($paths))
    }
    $moduleRunspace['Environment'] = $process['Environment'] = Get-Environment
    return $moduleRunspace
}

# What is known of a module that was loaded, or nothing where the resource is not there.
function Complete-Load($loading) {
    $shell = $loading['Shell']
    try {
        try { $found = $shell.EndInvoke($loading['Running']) }
        finally {
            # An error of Import-Module ends its statement alone: the last one says why nothing came.
            $said = $shell.Streams
            foreach ($stream in $said.Error, $said.Warning, $said.Information) { if ($stream.Count) { $during['Load'].AddRange($stream.ReadAll()) } }
        }
        if ($found.Count) {
            # What is within the object of PowerShell, whose own members need not be compiled for that.
            $loaded = $found[$found.Count - 1]
            if ($loaded -is [type]) { return [type]$loaded }
            return [psmoduleinfo]$loaded
        }
    } finally { $shell.Dispose() }
}

function Close-ModuleRunspace($request) {
    $key = $request['asked']['key']
    if (-not $runspaces.ContainsKey($key)) { return }
    Stop-Calls $runspaces[$key]
    $runspaces[$key]['Runspace'].Dispose()
    $runspaces.Remove($key)
}

# ---- one call -----------------------------------------------------------------------------------------------------------

# Load: what was reported while a module was loaded. Reported: the errors that the resource reported and went on from.
$during = @{ Step = 'start'; Load = [System.Collections.Generic.List[object]]::new(); Reported = [System.Collections.Generic.List[object]]::new(); More = 0 }
$mostReported = 100

function Send([string] $line) {
    $writer.WriteLine($line)
    $writer.Flush()
}

# How much of the streams is sent: each level has those before it.
$levels = @{ none = 0; information = 1; verbose = 2; debug = 3 }

function Send-Record([string] $id, $record, [int] $level) {
    $stream = ''
    $text = ''
    $of = 0
    if ($record -is [System.Management.Automation.VerboseRecord]) { $stream = 'verbose'; $of = 2; $text = $record.Message }
    elseif ($record -is [System.Management.Automation.WarningRecord]) { $stream = 'warning'; $text = $record.Message }
    elseif ($record -is [System.Management.Automation.DebugRecord]) { $stream = 'debug'; $of = 3; $text = $record.Message }
    elseif ($record -is [System.Management.Automation.InformationRecord]) { $stream = 'information'; $of = 1; $text = "$($record.MessageData)" }
    elseif ($record -is [System.Management.Automation.ErrorRecord]) {
        # What a program of the system writes to its standard error is text, not a failure.
        if (Test-NativeText $record) { $stream = 'information'; $of = 1 } else { $stream = 'error' }
        $text = "$record"
    }
    if ($stream -eq '') { return $false }
    # Flushed together: whoever reads them has no use for each alone.
    if ($of -le $level) { $writer.WriteLine('{"id":"' + $id + '","stream":"' + $stream + '","message":' + (Get-Class Json)::Message($text) + '}') }
    return $true
}

function Test-NativeText($record) { $record.FullyQualifiedErrorId -like 'NativeCommandError*' }

# An error that a command reported, and after which the resource went on.
function Send-Reported([string] $id, $record, [int] $level) {
    [void](Send-Record $id $record $level)
    if (Test-NativeText $record) { return }
    if ($during['Reported'].Count -lt $mostReported) { $during['Reported'].Add($record) } else { $during['More']++ }
}

function Send-Output([string] $id, $value) {
    $type = if ($null -eq $value) { '' } else { $value.GetType().ToString() }
    $head = '{"id":"' + $id + '","type":' + (Get-Class Json)::Message($type)
    try { $json = (Get-Class Json)::Of($value) }
    catch {
        Send ($head + ',"refused":' + (Get-Class Json)::Message($_.Exception.GetBaseException().Message) + '}')
        return
    }
    Send ($head + ',"output":' + $json + '}')
}

# The pipeline that carries out the calls of a module, which is kept from one to the next.
function New-Calls($moduleRunspace, $kind) {
    foreach ($each in 'Given', 'Ended') { $moduleRunspace[$each] = [System.Threading.AutoResetEvent]::new($false) }
    $moduleRunspace['Output'] = [System.Management.Automation.PSDataCollection[psobject]]::new()
    $moduleRunspace['Shell'] = $shell = [powershell]::Create($moduleRunspace['Runspace'])
    $textOf = if ($kind -eq 'class') { $classText } else { $scriptText }
    # In a scope of its own: what a resource sees of it are the preferences.
    [void]$shell.AddScript($callText, $true).AddArgument($moduleRunspace['Given']).AddArgument($moduleRunspace['Ended'])
    [void]$shell.AddArgument($textOf.ToString()).AddArgument($restore.ToString()).AddArgument($automatic).AddArgument($moduleRunspace['Shared'])
    $moduleRunspace['Running'] = $null
}

function Start-Calls($moduleRunspace, $kind) {
    if ($null -eq $moduleRunspace['Shell']) { New-Calls $moduleRunspace $kind }
    $moduleRunspace['Running'] = $moduleRunspace['Shell'].BeginInvoke([System.Management.Automation.PSDataCollection[psobject]]$null, $moduleRunspace['Output'])
}

# Ends the pipeline; throws the error it ended with, if any.
function Stop-Calls($moduleRunspace) {
    if ($null -eq $moduleRunspace['Running']) { return }
    $moduleRunspace['Shared']['Call'] = $null
    [void]$moduleRunspace['Given'].Set()
    try { [void]$moduleRunspace['Shell'].EndInvoke($moduleRunspace['Running']) }
    finally {
        foreach ($each in 'Shell', 'Given', 'Ended') { $moduleRunspace[$each].Dispose() }
        $moduleRunspace['Shell'] = $moduleRunspace['Running'] = $null
    }
}

$flag = @{ $true = 'true'; $false = 'false' }

# Where the method did not come to its end, its pipeline has ended. One that did not begin has asked for nothing.
function Test-Restart($moduleRunspace) {
    if (-not $moduleRunspace['Shared']['Began']) { return $false }
    if ($null -ne $moduleRunspace['Running']) { return $moduleRunspace['Shared']['Reboot'] }
    try { [bool]($moduleRunspace['Runspace'].SessionStateProxy.GetVariable('DSCMachineStatus') -eq 1) } catch { $false }
}

# Sends what a call put out so far. An error among the objects is one that the resource caught.
function Send-Outputs($moduleRunspace, [string] $id, [int] $level) {
    foreach ($item in $moduleRunspace['Output'].ReadAll()) {
        if ($item -is [bool]) { $writer.WriteLine("{""id"":""$id"",""type"":""System.Boolean"",""output"":$($flag[[bool]$item])}"); continue }
        # Assignments: an 'if' as a value takes arrays apart.
        $value = $null
        if ($null -ne $item) { $value = $item.psobject.BaseObject }
        if (Send-Record $id $value $level) { continue }
        if ($value -is [System.Management.Automation.PSCustomObject]) { $value = $item }
        Send-Output $id $value
    }
    $errors = $moduleRunspace['Shell'].Streams.Error
    if ($errors.Count) { foreach ($item in $errors.ReadAll()) { Send-Reported $id $item $level } }
}

# A call that takes a while: what it puts out is sent meanwhile.
function Wait-Call($moduleRunspace, [string] $id, [int] $level) {
    do {
        Send-Outputs $moduleRunspace $id $level
        $writer.Flush()
        # Whoever asked is gone.
        if ($socket.Poll(0, $readable) -and $socket.Available -eq 0) { [Environment]::Exit(3) }
    } until ($moduleRunspace['Ended'].WaitOne(20))
}

# A function takes as long as twenty statements, and a loop is compiled by itself: what each call needs is here, and no loop.
function Invoke-Request($request) {
    $id = $request['id']
    $about = $request['asked']
    $during['Step'] = 'load'
    if ($about['root'] -cne $process['Root']) { Set-Root $about['root'] }
    $moduleRunspace = $runspaces[$about['key']]
    if ($null -eq $moduleRunspace -or -not [object]::ReferenceEquals($process['Environment'], $moduleRunspace['Environment'])) { $moduleRunspace = Open-Reported $request }
    $during['Step'] = 'call'
    $shared = $moduleRunspace['Shared']
    $shared['Began'] = $shared['Came'] = $false
    if ($about['directory'] -cne $folder) { [Environment]::CurrentDirectory = $about['directory'] }
    if ($null -eq $moduleRunspace['Running']) { Start-Calls $moduleRunspace $about['kind'] }
    $shared['Values'] = $request['values']
    $shared['Call'] = $about
    [void]$moduleRunspace['Given'].Set()
    if (-not $moduleRunspace['Ended'].WaitOne(20)) { Wait-Call $moduleRunspace $id $about['level'] }
    Send-Outputs $moduleRunspace $id $about['level']
    if ($shared['Came'] -and -not $during['Reported'].Count) { $writer.WriteLine("{""id"":""$id"",""done"":{""ended"":true,""reboot"":$($flag[$shared['Reboot']])}}") }
    else { Send-Ended $request $moduleRunspace }
    $writer.Flush()
}

function Open-Reported($request) {
    $during['Load'].Clear()
    $moduleRunspace = Open-ModuleRunspace $request
    # What a module reports when it is loaded is shown, and fails nothing.
    foreach ($record in $during['Load']) { [void](Send-Record $request['id'] $record $request['asked']['level']) }
    $during['Load'].Clear()
    return $moduleRunspace
}

# A call that did not come to its end, or went on after errors.
function Send-Ended($request, $moduleRunspace) {
    $came = $moduleRunspace['Shared']['Came']
    if (-not $came) {
        Stop-Calls $moduleRunspace
        # An earlier call may have left what no later one can put back: a new runspace has nothing of it.
        if (-not $moduleRunspace['Shared']['Began']) {
            Close-ModuleRunspace $request
            if ($request['again']) { throw $moduleRunspace['Shared']['Unready'] }
            $request['again'] = $true
            Invoke-Request $request
            return
        }
    }
    # A change that went on after errors came to its end, and is not made.
    elseif ($request['asked']['method'] -in 'Set', 'Delete') {
        $reported = $during['Reported']
        $count = if ($reported.Count -gt 1) { "$($reported.Count + $during['More']) errors: " }
        Send-Failure $request $reported[0] "$count$(Join-Reported)"
        return
    }
    $reboot = if ($came) { $moduleRunspace['Shared']['Reboot'] } else { Test-Restart $moduleRunspace }
    $writer.WriteLine("{""id"":""$($request['id'])"",""done"":{""ended"":$($flag[$came]),""reboot"":$($flag[$reboot])}}")
}

function Join-Reported {
    $texts = @(foreach ($record in $during['Reported']) { "$record" })
    if ($during['More']) { $texts += "and $($during['More']) more" }
    return [string]::Join('; ', $texts)
}

# The record of an error that the resource raised: the innermost one that PowerShell did not make of another.
function Get-Cause($record) {
    $exception = $record.Exception
    while ($exception.InnerException -and $exception -is [System.Management.Automation.MethodInvocationException]) { $exception = $exception.InnerException }
    # Its own record knows less than the one that it came with.
    if ([object]::ReferenceEquals($exception, $record.Exception)) { return $record, $exception }
    if ($exception -is [System.Management.Automation.IContainsErrorRecord]) { return $exception.ErrorRecord, $exception }
    return $record, $exception
}

# File and line of an error. Of one that a module throws while it is loaded, the stack alone has them.
function Get-Place($record) {
    $called = $record.InvocationInfo
    if ($called -and $called.ScriptName) { return "$($called.ScriptName):$($called.ScriptLineNumber)" }
    if ([string]$record.ScriptStackTrace -match ', (?<file>/.+|[A-Za-z]:.+): line (?<line>\d+)') { return "$($Matches.file):$($Matches.line)" }
    return ''
}

function Join-Inner($exception) {
    $texts = [System.Collections.Generic.List[string]]::new()
    while ($exception.InnerException -and $texts.Count -lt 16) {
        $exception = $exception.InnerException
        $texts.Add('[' + (Get-Class Json)::Message($exception.GetType().FullName) + ',' + (Get-Class Json)::Message($exception.Message) + ']')
    }
    return [string]::Join(',', $texts)
}

function Send-Failure($request, $record, $text) {
    $cause, $exception = if ($text) { $record, $record.Exception } else { Get-Cause $record }
    if (-not $text) {
        $text = "$cause"
        # What it went on from may be why it came to this.
        if ($during['Reported'].Count) { $text += "; before it: $(Join-Reported)" }
    }
    # What 'throw' was given is in the record of the exception that PowerShell made for it.
    $own = $cause.Exception
    if ($exception -is [System.Management.Automation.RuntimeException] -and $own -and $own -isnot [System.Management.Automation.ParentContainsErrorRecordException]) { $exception = $own }
    $moduleRunspace = $runspaces[$request['asked']['key']]
    $property = ''
    $reboot = $false
    # A request for a restart counts though the method failed after it.
    if ($moduleRunspace -and $during['Step'] -eq 'call') {
        $property = [string]$moduleRunspace['Shared']['Property']
        $reboot = Test-Restart $moduleRunspace
    }
    $at = Get-Place $cause
    $line = '{"id":"' + $request['id'] + '","error":{"id":' + (Get-Class Json)::Message($cause.FullyQualifiedErrorId)
    $line += ',"category":' + (Get-Class Json)::Message([string]$cause.CategoryInfo.Category) + ',"type":' + (Get-Class Json)::Message($exception.GetType().FullName)
    $line += ',"message":' + (Get-Class Json)::Message($text) + ',"at":' + (Get-Class Json)::Message($at)
    $line += ',"stack":' + (Get-Class Json)::Message([string]$cause.ScriptStackTrace) + ',"inner":[' + (Join-Inner $exception) + ']'
    $line += ',"during":' + (Get-Class Json)::Message($during['Step']) + ',"property":' + (Get-Class Json)::Message($property)
    $line += ',"reboot":' + $flag[$reboot] + '}}'
    Send $line
}

# Where a module gave nothing, the last error that was reported says why.
function Get-LoadError($record) {
    $errors = @($during['Load'] | Where-Object { $_ -is [System.Management.Automation.ErrorRecord] })
    if ($during['Step'] -eq 'load' -and $errors.Count -and $record.Exception -is [InvalidOperationException]) { return $errors[-1] }
    return $record
}

# ---- the loop -----------------------------------------------------------------------------------------------------------

# A request is carried out, and answered.
function Step([string] $line) {
    $id, $about, $stated = $line.Split("`t")
    $request = @{ id = $id; asked = $null; values = $null; again = $false }
    try {
        $during['Step'] = 'read'
        $during['Reported'].Clear()
        $during['More'] = 0
        $of = $asked[$about]
        if ($null -eq $of) { $of = Get-Asked $about }
        $request['asked'] = $of
        $request['values'] = if ($of['texts']) { Get-Texts $stated } else { Get-Values $stated }
        Invoke-Request $request
    }
    catch {
        Send-Failure $request (Get-LoadError $_)
        # A module that failed in the middle starts anew.
        Close-ModuleRunspace $request
    }
    # The call is answered; for another one this process is of no use.
    try {
        $environment = $atStart
        if ($request['asked']) {
            $moduleRunspace = $runspaces[$request['asked']['key']]
            if ($null -ne $moduleRunspace) { $environment = $moduleRunspace['Environment'] }
        }
        Restore-Process $environment
    } catch { [Environment]::Exit(4) }
}

$readable = [System.Net.Sockets.SelectMode]::SelectRead
while ($null -ne ($line = $reader.ReadLine())) {
    Step $line
    # What waits for a runspace that does nothing, as an action of an event does, has its turn.
    if (-not $socket.Poll(50000, $readable)) { foreach ($each in $runspaces.get_Values()) { Stop-Calls $each } }
}
# Threads of a resource would keep the process.
[Environment]::Exit(0)
