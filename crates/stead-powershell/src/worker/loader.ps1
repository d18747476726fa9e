$ErrorActionPreference = 'Stop'
$endpoint = [System.Net.Sockets.UnixDomainSocketEndPoint]::new($env:STEAD_POWERSHELL_ENDPOINT)
[Environment]::SetEnvironmentVariable('STEAD_POWERSHELL_ENDPOINT', [NullString]::Value)
# PowerShell has added the directories of the user and of all users to the path: here are those that may be used. Its own are
# where it puts them itself, behind those two, unless somebody says otherwise: behind a thousand modules each command of its own
# would have all of them read.
if ($env:STEAD_POWERSHELL_MODULES) {
    $folders = $env:STEAD_POWERSHELL_MODULES.Split(':', [StringSplitOptions]::RemoveEmptyEntries)
    $paths = [string]::Join(':', $folders)
    $own = [System.IO.Path]::Combine($PSHOME, 'Modules')
    if ($own -cnotin $folders) {
        $usual = $others = ''
        foreach ($folder in $folders) {
            if ($folder.EndsWith('/.local/share/powershell/Modules') -or $folder -ceq '/usr/local/share/powershell/Modules') { $usual += "${folder}:" } else { $others += ":$folder" }
        }
        $paths = "$usual$own$others"
    }
    $env:PSModulePath = $paths
    [Environment]::SetEnvironmentVariable('STEAD_POWERSHELL_MODULES', [NullString]::Value)
}
# Where only trusted settings count, PowerShell has read them: programs that a resource starts read theirs where they always are.
$settings = [Environment]::GetEnvironmentVariable('STEAD_POWERSHELL_CONFIGURATION')
if ($null -ne $settings) {
    [Environment]::SetEnvironmentVariable('XDG_CONFIG_HOME', $(if ($settings) { $settings } else { [NullString]::Value }))
    [Environment]::SetEnvironmentVariable('STEAD_POWERSHELL_CONFIGURATION', [NullString]::Value)
}
$socket = [System.Net.Sockets.Socket]::new('Unix', 'Stream', 'Unspecified')
$socket.Connect($endpoint)
$channel = [System.Net.Sockets.NetworkStream]::new($socket, $true)
$reader = [System.IO.StreamReader]::new($channel, [System.Text.UTF8Encoding]::new($false))
$writer = [System.IO.StreamWriter]::new($channel, [System.Text.UTF8Encoding]::new($false))
$writer.NewLine = "`n"
$writer.WriteLine('{"id":"0","hello":{"protocol":1,"version":"' + $PSVersionTable.PSVersion + '","edition":"' + $PSVersionTable.PSEdition + '","home":"' + $PSHOME.Replace('\', '\\').Replace('"', '\"') + '"}}')
$writer.Flush()
# Whoever started this looks at that; meanwhile the runspace of the first module is opened.
$modulePath = $env:PSModulePath
function New-ModuleRunspace {
    $state = [initialsessionstate]::CreateDefault2()
    if ($IsWindows) { $state.ExecutionPolicy = 'Bypass' }
    $runspace = [runspacefactory]::CreateRunspace($state)
    $runspace.ThreadOptions = 'ReuseThread'
    return $runspace
}
$first = New-ModuleRunspace
$first.OpenAsync()
# The first line: three scripts, and of the first call the kind, the module and the resource.
$line = $reader.ReadLine()
if ($null -eq $line) { [Environment]::Exit(0) }
$words = @(foreach ($word in $line.Split(' ')) { [System.Text.Encoding]::UTF8.GetString([Convert]::FromBase64String($word)) })
$prelude, $text, $values, $words = $words
. ([scriptblock]::Create($prelude))
& ([scriptblock]::Create($text)) $socket $reader $writer $values
