@{ ModuleVersion = '1.0' }
