@{ RootModule = 'Script.psm1'; ModuleVersion = '2.12.0.0'; FunctionsToExport = '*-TargetResource' }
