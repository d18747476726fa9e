Configuration Both {
    param([Parameter(Mandatory)] [string] $Root)
    Import-DscResource -ModuleName 'PSDesiredStateConfiguration'
    File one { DestinationPath = "$Root/one"; Contents = '1' }
    File two { DestinationPath = "$Root/two"; Contents = '2' }
}
