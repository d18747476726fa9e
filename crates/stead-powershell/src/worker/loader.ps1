$ErrorActionPreference = 'Stop'
$endpoint = [System.Net.Sockets.UnixDomainSocketEndPoint]::new($env:STEAD_POWERSHELL_ENDPOINT)
$env:STEAD_POWERSHELL_ENDPOINT = $null
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
    $env:STEAD_POWERSHELL_MODULES = $null
}
# Where only trusted settings count, PowerShell has read them: programs that a resource starts read theirs where they always are.
if ($env:STEAD_POWERSHELL_CONFIGURATION) {
    $settings = $env:STEAD_POWERSHELL_CONFIGURATION.Substring(1)
    if ($settings) { $env:XDG_CONFIG_HOME = $settings } else { $env:XDG_CONFIG_HOME = $null }
    $env:STEAD_POWERSHELL_CONFIGURATION = $null
}
$socket = [System.Net.Sockets.Socket]::new([System.Net.Sockets.AddressFamily]1, [System.Net.Sockets.SocketType]1, [System.Net.Sockets.ProtocolType]0)
$socket.Connect($endpoint)
$channel = [System.Net.Sockets.NetworkStream]::new($socket, $true)
$reader = [System.IO.StreamReader]::new($channel)
$writer = [System.IO.StreamWriter]::new($channel, [System.Text.UTF8Encoding]::new($false))
$of = $PSVersionTable
$writer.WriteLine("{""id"":""0"",""hello"":{""protocol"":1,""version"":""$($of['PSVersion'])"",""edition"":""$($of['PSEdition'])"",""home"":""$($PSHOME.Replace('\', '\\').Replace('"', '\"'))""}}")
$writer.Flush()
# Whoever started this looks at that; meanwhile the runspace of the first module is opened.
$modulePath = $env:PSModulePath
function New-ModuleRunspace {
    $state = [initialsessionstate]::CreateDefault2()
    if ($IsWindows) { $state.ExecutionPolicy = 'Bypass' }
    $runspace = [runspacefactory]::CreateRunspace($state)
    $runspace.ThreadOptions = [System.Management.Automation.Runspaces.PSThreadOptions]2
    return $runspace
}
$first = New-ModuleRunspace
$first.OpenAsync()
# The first line: three scripts, with U+001E for the ends of their lines and U+001F between them. The first one begins with the first call.
$line = $reader.ReadLine()
if ($null -eq $line) { [Environment]::Exit(0) }
$prelude, $text, $values = $line.Replace("`u{1e}", "`n").Split("`u{1f}")
. ([scriptblock]::Create($prelude))
& ([scriptblock]::Create($text)) $socket $reader $writer $values
