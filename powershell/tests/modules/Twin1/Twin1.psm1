[DscResource()]
class Twin {
    [DscProperty(Key)] [string] $Name
    [Twin] Get() { return $this }
    [bool] Test() { return $true }
    [void] Set() { }
}
