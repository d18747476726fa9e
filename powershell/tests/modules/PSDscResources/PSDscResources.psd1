@{ ModuleVersion = '2.12.0.0'; DscResourcesToExport = 'Script' }
