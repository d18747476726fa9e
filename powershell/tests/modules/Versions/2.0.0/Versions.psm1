[DscResource()]
class Versioned {
    [DscProperty(Key)] [string] $Name
    [Versioned] Get() { return $this }
    [bool] Test() { return $true }
    [void] Set() { }
}
