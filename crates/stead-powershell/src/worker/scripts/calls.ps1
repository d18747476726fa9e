<#
Carries out one call after the other, until one ends it or none is left. A call begins as the first one did, by the preferences that modules
are written for: an error that a command reports ends nothing. Errors have a stream of their own, so that those that a resource caught
or put away are none. PowerShell compiles what is in a loop, which takes longer than many calls: all else is in the worker.
#>
param($turn)
try {
    $turn.Enter($ExecutionContext.SessionState)
    while ($turn.MoveNext()) {
        $call = $turn.Call
        & $call.Body $call.Target $call.Values $call 3>&1 4>&1 5>&1 6>&1
        $turn.Done()
    }
} catch {
    if ($turn.IsOfCall($_)) { throw }
} finally {
    $turn.Leave()
}
