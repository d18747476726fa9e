# Invoke-DscResource and Get-DscResource with the parameters that those of PSDesiredStateConfiguration have, carried out by
# the program stead: $env:STEAD names it, else it is looked for in PATH.

using namespace System.Management.Automation

class InvokeDscResourceTestResult {
    [bool] $InDesiredState
}

class InvokeDscResourceSetResult {
    [bool] $RebootRequired
}

$adapter = 'Microsoft.Adapter/PowerShell'

# What stead answers: its standard output and error as text. Properties may hold secrets, so they go to its standard input.
function Invoke-Stead([string[]] $Arguments, [string] $Text) {
    $program = $env:STEAD
    if (-not $program) { $program = (Get-Command -Name stead -CommandType Application -TotalCount 1 -ErrorAction Stop).Source }
    $start = [System.Diagnostics.ProcessStartInfo]::new($program)
    foreach ($argument in $Arguments) { $start.ArgumentList.Add($argument) }
    $start.WorkingDirectory = (Get-Location -PSProvider FileSystem).ProviderPath
    $start.UseShellExecute = $false
    $start.RedirectStandardInput = $true
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    $utf8 = [System.Text.UTF8Encoding]::new($false)
    $start.StandardInputEncoding = $utf8
    $start.StandardOutputEncoding = $utf8
    $start.StandardErrorEncoding = $utf8
    $process = [System.Diagnostics.Process]::Start($start)
    try {
        $output = $process.StandardOutput.ReadToEndAsync()
        $errors = $process.StandardError.ReadToEndAsync()
        # A program that ends early does not read it.
        try { $process.StandardInput.Write($Text); $process.StandardInput.Close() } catch [System.IO.IOException] { }
        $process.WaitForExit()
        return @{
            Output = $output.GetAwaiter().GetResult()
            Errors = $errors.GetAwaiter().GetResult()
            ExitCode = $process.ExitCode
        }
    }
    finally { $process.Dispose() }
}

# A value as JSON can hold it: of credentials and secure strings the plain text.
function ConvertTo-Plain($Value) {
    if ($Value -is [pscredential]) {
        return @{ username = $Value.UserName; password = $Value.GetNetworkCredential().Password }
    }
    if ($Value -is [securestring]) { return [System.Net.NetworkCredential]::new('', $Value).Password }
    if ($Value -is [System.Collections.IDictionary]) {
        $table = [ordered]@{}
        foreach ($entry in $Value.GetEnumerator()) { $table["$($entry.Key)"] = ConvertTo-Plain $entry.Value }
        return $table
    }
    if ($Value -is [array]) {
        $items = [object[]]::new($Value.Length)
        for ($index = 0; $index -lt $Value.Length; $index++) { $items[$index] = ConvertTo-Plain $Value[$index] }
        return , $items
    }
    if ($Value -is [datetime]) { return $Value.ToString('o', [cultureinfo]::InvariantCulture) }
    if ($Value -is [enum] -or $Value -is [guid] -or $Value -is [version] -or $Value -is [timespan]) { return $Value.ToString() }
    if ($Value -is [switch]) { return $Value.IsPresent }
    return $Value
}

# The error that stead reports: as data on standard output, or in words where it did not come so far.
function ConvertTo-ErrorRecord($Answer, $Target) {
    $id = 'ResourceFailed,Invoke-DscResource'
    $message = $Answer.Errors.Trim()
    if (-not $message) { $message = "stead ended with exit code $($Answer.ExitCode)" }
    $reported = if ($Answer.Output.Trim()) { ($Answer.Output | ConvertFrom-Json -AsHashtable -Depth 100)['error'] }
    if ($reported) {
        $id = $reported['id']
        $message = $reported['message']
    }
    $category = switch ($id) {
        { $_ -in 'InvalidResourceSpecification,Invoke-DscResource', 'PsDscRunAsCredentialNotSupport,Invoke-DscResource' } { [ErrorCategory]::InvalidArgument }
        'UnsupportedResourceImplementation,Invoke-DscResource' { [ErrorCategory]::InvalidOperation }
        default { [ErrorCategory]::NotSpecified }
    }
    $exception = if ($category -eq [ErrorCategory]::InvalidArgument) { [ArgumentException]::new($message) } else { [InvalidOperationException]::new($message) }
    return [ErrorRecord]::new($exception, $id, $category, $Target)
}

# The identifier of this error has the name of this function.
function CheckResourceFound {
    [CmdletBinding()]
    param([string] $Message)
    Write-Error -Message $Message
}

# What a command of stead prints.
function Get-Printed([string[]] $Arguments) {
    $answer = Invoke-Stead $Arguments ''
    if ($answer.ExitCode -eq 0) { return $answer.Output }
    throw [ErrorRecord]::new([InvalidOperationException]::new($answer.Errors.Trim()), 'CommandFailed,Stead', 'NotSpecified', $Arguments)
}

# The resources of PowerShell modules, as stead lists them.
function Get-Listed {
    foreach ($line in (Get-Printed @('resource', 'list', '--adapter', $adapter, '-o', 'json')) -split "`n") {
        if ($line.Trim()) { $line | ConvertFrom-Json -AsHashtable -Depth 100 }
    }
}

# The properties that can be stated, with those that every resource has: first what must be stated, then by name.
function Get-Property($Resource) {
    $content = $Resource['adaptedContent']
    $names = @($Resource['properties'] | Where-Object { $_ -notin $content['readOnly'] }) + @('DependsOn', 'PsDscRunAsCredential')
    $properties = foreach ($name in $names) { [pscustomobject]@{ Name = $name; IsMandatory = $name -in $content['required'] } }
    $properties | Sort-Object -Property @{ Expression = 'IsMandatory'; Descending = $true }, 'Name'
}

function Test-Module($Listed, $Specification) {
    if ($null -eq $Specification) { return $true }
    if ($Listed['type'].Split('/')[0] -notlike $Specification.Name) { return $false }
    $version = [version]($Listed['version'] -replace '\+', '.')
    if ($Specification.RequiredVersion) { return $version -eq (ConvertTo-Full $Specification.RequiredVersion) }
    if ($Specification.Version -and $version -lt $Specification.Version) { return $false }
    if ($Specification.MaximumVersion -and $version -gt [version]($Specification.MaximumVersion -replace '\*', '999999999')) { return $false }
    return $true
}

# A version with the parts that stead lists: at least three.
function ConvertTo-Full([version] $Version) {
    if ($Version.Build -ge 0) { return $Version }
    return [version]::new($Version.Major, $Version.Minor, 0)
}

function Invoke-DscResource {
    [CmdletBinding(HelpUri = 'https://go.microsoft.com/fwlink/?LinkId=564557')]
    param(
        [Parameter(Mandatory, Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string] $Name,

        [Parameter(Position = 1, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [Microsoft.PowerShell.Commands.ModuleSpecification] $ModuleName,

        [Parameter(Mandatory, Position = 2)]
        [ValidateSet('Get', 'Set', 'Test')]
        [string] $Method,

        [Parameter(Mandatory, Position = 3)]
        [hashtable] $Property,

        [switch] $IgnorePsDscRunAsCredential
    )

    begin {
        # Any other preference of a caller would go past 'throw': what is an error would be returned as the result.
        $ErrorActionPreference = 'Stop'
    }

    process {
        $arguments = @('invoke', $Name, '--method', $Method.ToLowerInvariant(), '--input', '-', '-o', 'json')
        if ($IgnorePsDscRunAsCredential) { $arguments += '--ignore-run-as-credential' }
        if ($ModuleName) {
            $module = $ModuleName.Name
            if ($ModuleName.RequiredVersion) { $module += "@$($ModuleName.RequiredVersion)" }
            elseif ($ModuleName.Version -or $ModuleName.MaximumVersion) {
                $found = @(Get-Listed | Where-Object { $_['type'].Split('/')[1] -eq $Name -and (Test-Module $_ $ModuleName) })
                if ($found.Count -ne 1) {
                    $message = "The module specification '$ModuleName' fits $($found.Count) versions of the resource '$Name'"
                    $record = [ErrorRecord]::new([ArgumentException]::new($message), 'InvalidResourceSpecification', 'InvalidArgument', $Name)
                    $PSCmdlet.ThrowTerminatingError($record)
                }
                $module += "@$($found[0]['version'] -replace '\+', '.')"
            }
            $arguments += @('--module', $module)
        }
        # What is nested deeper would be cut off with a warning.
        $text = ConvertTo-Plain $Property | ConvertTo-Json -Depth 100 -Compress -EscapeHandling EscapeNonAscii -WarningAction Stop
        $answer = Invoke-Stead $arguments $text
        # 2: not in the desired state.
        if ($answer.ExitCode -notin 0, 2) {
            $record = ConvertTo-ErrorRecord $answer $Name
            if ($record.FullyQualifiedErrorId -eq 'Microsoft.PowerShell.Commands.WriteErrorException,CheckResourceFound') {
                CheckResourceFound -Message $record.Exception.Message -ErrorAction Stop
            }
            # The identifier stays as it is; ThrowTerminatingError would append the name of this function.
            throw $record
        }
        foreach ($line in $answer.Errors -split "`n") { if ($line.Trim()) { Write-Verbose $line.TrimEnd() } }
        $result = $answer.Output | ConvertFrom-Json -AsHashtable -Depth 100
        switch ($Method) {
            'Get' { $result }
            'Test' { [InvokeDscResourceTestResult]@{ InDesiredState = $result['InDesiredState'] } }
            'Set' { [InvokeDscResourceSetResult]@{ RebootRequired = $result['RebootRequired'] } }
        }
    }
}

function Get-DscResource {
    [CmdletBinding(HelpUri = 'https://go.microsoft.com/fwlink/?LinkId=564558')]
    param(
        [Parameter(Position = 0, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [string[]] $Name,

        [Parameter(Position = 1, ValueFromPipeline, ValueFromPipelineByPropertyName)]
        [ValidateNotNullOrEmpty()]
        [object] $Module,

        [Parameter()]
        [switch] $Syntax
    )

    begin {
        # A name that is not found is an error as the caller wants it, all others end the command.
        $preference = $ErrorActionPreference
        $ErrorActionPreference = 'Stop'
    }

    process {
        $specification = $null
        if ($Module) { $specification = [Microsoft.PowerShell.Commands.ModuleSpecification] $Module }
        $listed = @(Get-Listed | Where-Object { Test-Module $_ $specification })
        foreach ($each in $Name) {
            $known = @($listed | Where-Object { $_['type'].Split('/')[1] -like $each })
            if ($known.Count -eq 0 -and -not [WildcardPattern]::ContainsWildcardCharacters($each)) {
                CheckResourceFound -Message "There is no DSC resource '$each'" -ErrorAction $preference
            }
        }
        foreach ($resource in $listed) {
            $short = $resource['type'].Split('/')[1]
            if ($Name -and -not ($Name | Where-Object { $short -like $_ })) { continue }
            if ($Syntax) {
                Get-Printed @('resource', 'describe', '-r', $resource['type'])
                continue
            }
            $composite = $resource['implementedAs'] -eq 'Composite'
            [pscustomobject]@{
                PSTypeName           = 'Microsoft.PowerShell.DesiredStateConfiguration.DscResourceInfo'
                ImplementationDetail = $(if (-not $composite) { $resource['implementedAs'] })
                ResourceType         = $short
                Name                 = $short
                FriendlyName         = $null
                ModuleName           = $resource['type'].Split('/')[0]
                Version              = [version]($resource['version'] -replace '\+', '.')
                Path                 = $resource['path']
                ParentPath           = $resource['directory']
                ImplementedAs        = $(if ($composite) { 'Composite' } else { 'PowerShell' })
                CompanyName          = $resource['author']
                Properties           = @(Get-Property $resource)
            }
        }
    }
}

Export-ModuleMember -Function 'Get-DscResource', 'Invoke-DscResource'
