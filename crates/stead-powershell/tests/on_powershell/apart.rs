//! Calls and modules that share a worker, and nothing else.

use super::*;

/// Folders that a module adds to the path when it is loaded are there in all of its calls, and in those of no other.
#[test]
fn what_a_module_sets_when_it_is_loaded_is_its_own() {
    let Some(bench) = Bench::new("what_a_module_sets_when_it_is_loaded_is_its_own") else { return };
    bench.write("Adder/lib/Nine/Nine.psm1", "function Get-Nine { 9 }");
    let adds = "$env:PSModulePath = \"$PSScriptRoot/lib:$env:PSModulePath\"; $env:OF_ADDER = 'set'";
    let get = |name: &str| {
        let nine = "$n = if (Get-Command Get-Nine -ErrorAction Ignore) { Get-Nine } else { 'none' }";
        format!("[{name}] Get() {{ if ($this.How) {{ {nine}; $this.Out = \"$n $env:OF_ADDER\" }}; return $this }}")
    };
    let (adder, other) = (bench.class("Adder", adds, &get("Adder")), bench.class("Other", "", &get("Other")));
    bench.state(&adder, "");
    for _ in 0..2 {
        assert_eq!(bench.out(&adder, "ask"), "9 set");
        assert_eq!(bench.out(&other, "ask"), "none ");
    }
}

/// Each call has the answer of its own module, whatever was asked for before it, and all of them one process.
#[test]
fn modules_that_take_turns_answer_for_themselves() {
    let Some(bench) = Bench::new("modules_that_take_turns_answer_for_themselves") else { return };
    let module = |name: &str| {
        let get = format!("[{name}] Get() {{ $this.Out = \"{name} $([Environment]::ProcessId)\"; return $this }}");
        let test = "[bool] Test() { if ($this.How -eq 'fail') { throw $this.GetType().Name }; return $this.How -eq $this.GetType().Name }";
        (name.to_owned(), bench.class(name, "", &format!("{get}\n{test}")))
    };
    let modules = ["One", "Two"].map(module);
    let mut processes = std::collections::BTreeSet::new();
    for (turn, index) in [0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0].into_iter().enumerate() {
        let (name, module) = &modules[index];
        let verdict = |how: &str| bench.call(module, Method::Test, how).0.unwrap().verdict().unwrap();
        assert!(verdict(name) && !verdict(&modules[1 - index].0), "{turn}: {name}");
        if turn % 3 == 0 {
            assert_eq!(error(bench.call(module, Method::Test, "fail").0).message, *name, "{turn}");
        }
        if turn % 2 == 0 {
            let out = bench.out(module, "");
            let (seen, process) = out.split_once(' ').unwrap();
            assert_eq!(seen, name, "{turn}");
            processes.insert(process.to_owned());
        }
        bench.call(module, Method::Set, "").0.unwrap();
    }
    assert_eq!(processes.len(), 1);
}

/// Things that a call does to its process and its runspace, and how the next ones would see them. The list of what stays is in
/// docs/powershell.md.
const LEAKS: [(&str, &str); 55] = [
    ("$env:LEAK = 'x'", "$env:LEAK"),
    ("$env:Keys = 'x'; $env:LEAK = 'y'", "\"$env:Keys$env:LEAK\""),
    ("$env:Values = 'x'; $env:Count = 'y'", "\"$env:Values$env:Count\""),
    ("Remove-Item env:HOME; $env:PATH = '/x'", "\"$env:HOME $env:PATH\""),
    ("$env:PSModulePath = '/x'", "$env:PSModulePath"),
    ("Set-Location /usr", "\"$PWD\""),
    ("[Environment]::CurrentDirectory = '/usr'", "[Environment]::CurrentDirectory"),
    ("[cultureinfo]::CurrentCulture = 'de-DE'", "(1.5).ToString()"),
    ("[cultureinfo]::CurrentUICulture = 'de-DE'", "[cultureinfo]::CurrentUICulture.Name"),
    ("[cultureinfo]::DefaultThreadCurrentCulture = 'de-DE'", "\"$([cultureinfo]::DefaultThreadCurrentCulture)\""),
    ("[Console]::OutputEncoding = [Text.Encoding]::Latin1", "[Console]::OutputEncoding.WebName"),
    ("$global:OutputEncoding = [Text.Encoding]::Latin1", "$OutputEncoding.WebName"),
    ("$global:PSDefaultParameterValues['*:Verbose'] = $true", "$PSDefaultParameterValues.Count"),
    ("$global:PSDefaultParameterValues = @{ 'Get-Item:Force' = $true }", "$PSDefaultParameterValues.Count"),
    ("$global:ErrorActionPreference = 'Stop'", "$ErrorActionPreference"),
    ("$global:WarningPreference = 'SilentlyContinue'", "$WarningPreference"),
    ("$global:WhatIfPreference = $true", "$WhatIfPreference"),
    ("$global:ConfirmPreference = 'High'", "$ConfirmPreference"),
    ("$global:PSNativeCommandUseErrorActionPreference = $true", "$PSNativeCommandUseErrorActionPreference"),
    ("$global:Leak = 'x'", "$global:Leak"),
    ("$global:OFS = '-'", "\"$(1, 2)\""),
    ("$global:LASTEXITCODE = 7", "$LASTEXITCODE"),
    ("/bin/sh -c 'exit 7'", "$LASTEXITCODE"),
    ("Get-Item /not/there -ErrorAction SilentlyContinue", "$Error.Count"),
    ("$global:DSCMachineStatus = 1", "$global:DSCMachineStatus"),
    ("$global:VerbosePreference = 'Continue'", "$VerbosePreference"),
    ("$global:DebugPreference = 'Continue'", "$DebugPreference"),
    ("$global:InformationPreference = 'Ignore'", "$InformationPreference"),
    ("$global:ProgressPreference = 'Continue'", "$ProgressPreference"),
    ("$global:PSModuleAutoLoadingPreference = 'None'", "$global:PSModuleAutoLoadingPreference"),
    ("$global:FormatEnumerationLimit = 99", "$FormatEnumerationLimit"),
    ("$global:MaximumHistoryCount = 9", "$MaximumHistoryCount"),
    ("$global:PSEmailServer = 'x'", "$PSEmailServer"),
    ("$global:PSSessionApplicationName = 'x'", "$PSSessionApplicationName"),
    ("$global:ErrorView = 'DetailedView'", "$ErrorView"),
    ("$global:PSNativeCommandArgumentPassing = 'Legacy'", "$PSNativeCommandArgumentPassing"),
    ("[Environment]::SetEnvironmentVariable('LEAK', 'x')", "[Environment]::GetEnvironmentVariable('LEAK')"),
    ("Set-Item env:lower 'x'; $env:LOWER = 'y'", "\"$env:lower$env:LOWER\""),
    ("$env:TMPDIR = '/x'", "[IO.Path]::GetTempPath()"),
    ("$env:TZ = 'Asia/Tokyo'", "$env:TZ"),
    ("$env:LEAK = ''", "Test-Path env:LEAK"),
    ("$env:PATH += ':/x'", "(Get-Command sh).Source"),
    ("Get-ChildItem env: | ForEach-Object { Remove-Item \"env:$($_.Name)\" }", "(Get-ChildItem env:).Count -gt 5"),
    ("Set-StrictMode -Version Latest", "$null -eq $nothing.nothing"),
    ("Set-Variable -Scope Global -Name Leak -Value x -Option ReadOnly -Force", "$global:Leak"),
    ("$global:Matches = @{ 0 = 'x' }", "$Matches.Count"),
    ("$null = 'x' -match '(x)'", "$Matches.Count"),
    ("Remove-Variable -Scope Global OFS, ErrorView -ErrorAction Ignore", "$ErrorView"),
    ("$global:PSDefaultParameterValues.Add('Disabled', $true)", "$PSDefaultParameterValues.Contains('Disabled')"),
    ("[cultureinfo]::DefaultThreadCurrentUICulture = 'de-DE'", "\"$([cultureinfo]::DefaultThreadCurrentUICulture)\""),
    ("[Threading.Thread]::CurrentThread.CurrentCulture = 'tr-TR'", "'i'.ToUpper()"),
    ("Write-Error x 2>$null", "$Error.Count"),
    ("& { try { throw 'x' } catch { } }", "$Error.Count"),
    ("$global:Error.Add('x')", "$Error.Count"),
    ("$global:DSC_CONFIG_ROOT = '/x'; $env:DSC_CONFIG_ROOT = '/x'", "$env:DSC_CONFIG_ROOT"),
];

/// Calls in a row, in any order, give what each gives alone.
#[test]
fn a_call_leaves_nothing_to_the_next_ones() {
    let Some(bench) = Bench::new("a_call_leaves_nothing_to_the_next_ones") else { return };
    let runs = |name: &str| {
        format!("[{name}] Get() {{ $this.Out = [string](& ([scriptblock]::Create($this.How))); return $this }}")
    };
    let (one, other) = (bench.class("One", "", &runs("One")), bench.class("Two", "", &runs("Two")));
    let alone: Vec<String> = LEAKS.iter().map(|(_, probe)| bench.out(&one, probe)).collect();
    for (probe, alone) in LEAKS.iter().map(|(_, probe)| probe).zip(&alone) {
        assert_eq!(&bench.out(&other, probe), alone, "{probe}, in another module");
    }
    let mut left = Vec::new();
    for ((leak, probe), alone) in LEAKS.iter().zip(&alone) {
        let orders = [[&one, &one, &other], [&one, &other, &one], [&other, &one, &other]];
        for [first, second, third] in orders {
            bench.out(first, leak);
            let found = [bench.out(second, probe), bench.out(third, probe), bench.out(first, probe)];
            if found.iter().any(|found| found != alone) {
                left.push(format!("{leak}: {found:?}, alone '{alone}'"));
            }
        }
    }
    assert!(left.is_empty(), "{left:#?}");
}

/// Where a call left what the next one cannot put back, that one begins in a new runspace of the same process.
#[test]
fn a_call_that_cannot_begin_is_tried_in_a_new_runspace() {
    let Some(bench) = Bench::new("a_call_that_cannot_begin_is_tried_in_a_new_runspace") else { return };
    let get = "[Blocks] Get() { & ([scriptblock]::Create($this.How)); $this.Out = 'got'; return $this }";
    let module = bench.class("Blocks", "", get);
    let leaves = [
        "Set-Variable DSCMachineStatus 1 -Scope Global -Option ReadOnly",
        "Remove-Variable DSCMachineStatus -Scope Global; New-Variable DSCMachineStatus 1 -Scope Global -Option Constant",
        "Set-Variable WhatIfPreference $true -Scope Global -Option ReadOnly",
        "Remove-PSDrive -Name / -Force",
    ];
    for left in leaves {
        bench.state(&module, left);
        let (reply, records) = bench.call(&module, Method::Get, "");
        let reply = reply.unwrap_or_else(|failed| panic!("{left}: {failed}"));
        assert!(!reply.reboot_required && records.is_empty(), "{left}: {records:?}");
        assert!(reply.state().unwrap().unwrap().get().contains("got"), "{left}");
        bench.state(&module, left);
        bench.call(&module, Method::Set, "").0.unwrap_or_else(|failed| panic!("{left}: {failed}"));
    }
    assert_eq!(bench.pool.workers(), 1);
}

/// Where a call stands and where its document is are its own, also where folders differ in case alone.
#[test]
fn calls_of_one_worker_have_folders_of_their_own() {
    let Some(bench) = Bench::new("calls_of_one_worker_have_folders_of_their_own") else { return };
    let out = "$this.Out = \"$PWD $([Environment]::CurrentDirectory) $env:DSC_CONFIG_ROOT\"; return $this";
    let modules = ["Here", "There"].map(|name| bench.class(name, "", &format!("[{name}] Get() {{ {out} }}")));
    let [upper, lower] = ["Folder", "folder"].map(|name| bench.folder.path().join(name));
    for folder in [&upper, &lower] {
        std::fs::create_dir(folder).unwrap();
    }
    let places =
        [[&upper, &upper], [&lower, &lower], [&upper, &lower], [&upper, &upper], [&lower, &upper], [&upper, &lower]];
    for [directory, root] in places {
        for module in &modules {
            let (how, place) = (Wire::String(String::new()), [directory.as_path(), root.as_path()]);
            let reply = bench.call_at(module, Method::Get, how, Records::None, place).0.unwrap();
            let state: Json = serde_json::from_str(reply.state().unwrap().unwrap().get()).unwrap();
            assert_eq!(state["Out"], format!("{0} {0} {1}", directory.display(), root.display()));
        }
    }
    assert_eq!(bench.pool.workers(), 1);
}

/// A resource that writes to the socket of its worker answers for no other module.
#[test]
fn nobody_answers_for_another_module() {
    let Some(bench) = Bench::new("nobody_answers_for_another_module") else { return };
    let answers = r#"[bool] Test() {
        $lines = foreach ($id in 1..9) { "{`"id`":`"$id`",`"type`":`"System.Boolean`",`"output`":true}", "{`"id`":`"$id`",`"done`":{`"ended`":true,`"reboot`":false}}" }
        $bytes = [Text.Encoding]::UTF8.GetBytes(($lines -join "`n") + "`n")
        $handles = foreach ($link in Get-ChildItem /proc/self/fd) {
            if ([string]$link.Target -notlike '*socket:*') { continue }
            [System.Net.Sockets.SafeSocketHandle]::new([IntPtr][int]$link.Name, $false)
        }
        $sent = $this.How
        Start-ThreadJob {
            Start-Sleep -Milliseconds 300
            foreach ($handle in $using:handles) { try { [void][System.Net.Sockets.Socket]::new($handle).Send($using:bytes) } catch { } }
            if ($using:sent) { [IO.File]::WriteAllText($using:sent, '') }
        }
        return $true
    }"#;
    let forger = bench.class("Forger", "", answers);
    let victim = bench.class("Victim", "", "[bool] Test() { Start-Sleep -Milliseconds $this.How; return $false }");
    let sent = bench.write("sent", "").with_extension("now");
    for (wait, path) in [("1000", ""), ("0", sent.to_str().unwrap())] {
        // Its own call, too, may be the one that ends by it.
        drop(bench.call(&forger, Method::Test, path));
        if !path.is_empty() {
            stead_testkit::until(|| sent.exists().then_some(()));
        }
        match bench.call(&victim, Method::Test, wait).0 {
            Ok(reply) => assert!(!reply.verdict().unwrap(), "another module answered"),
            Err(failed) => assert!(wait != "0" && matches!(failed, Failed::Protocol(_)), "{failed}"),
        }
    }
}
