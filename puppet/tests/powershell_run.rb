# frozen_string_literal: true

require 'English'
require 'open3'
require_relative 'puppet_run'

# Runs Puppet with the engine, PowerShell and a module of PowerShell that notes its calls.
class PowerShellRun < PuppetRun
  ENGINE = ENV.fetch('STEAD_TEST_ENGINE', nil)
  SHELL = ENV.fetch('STEAD_TEST_PWSH', nil)

  # @return [String, false] why nothing can be run
  def self.missing
    return 'STEAD_TEST_ENGINE names no engine' if ENGINE.nil?

    SHELL.nil? && 'STEAD_TEST_PWSH names no PowerShell'
  end

  def initialize(directory)
    super(directory, engine: ENGINE)
    @texts = []
    write_module
    generate
  end

  def apply(*)
    FileUtils.rm_f(File.join(directory, 'started'))
    super.tap { |result| @texts << result.text }
  end

  # @return [Hash{String => Array<String>}] the methods that were called since, by key
  def calls
    path = File.join(files, 'calls')
    lines = File.exist?(path) ? File.readlines(path, chomp: true) : []
    FileUtils.rm_f(path)
    lines.map(&:split).each_with_object({}) { |(method, key), all| (all[key.downcase] ||= []) << method }
  end

  def kept_file(key)
    File.join(files, key)
  end

  # @return [String] what is kept under these names
  def kept(key, *names)
    text = File.read(kept_file(key))
    names.map { |name| text[%r{<S N="Key">#{name}</S>\s*<S N="Value">(.*?)</S>}m, 1] }.compact.join(' ')
  end

  # @return [Array<String>] where a text is, but for what the resource keeps itself
  def traces(text)
    outputs = @texts.map { |output| output[/^.*#{text}.*$/] }.compact
    others = Dir.glob("#{directory}/**/*", File::FNM_DOTMATCH).select { |path| File.file?(path) }
    others.reject! { |path| path.end_with?('/site.pp') || path.start_with?("#{files}/") }
    outputs + others.select { |path| File.binread(path).include?(text) }
  end

  # @return [Array<String>] the scripts that Puppet showed
  def scripts(text)
    text.scan(/full script: \n(.*?)(?=^Debug:|\z)/m).flatten
  end

  def powershell(script)
    path = File.join(directory, 'shown.ps1')
    File.write(path, script)
    output, status = Open3.capture2e(environment, SHELL, '-NoProfile', '-File', path)
    raise output unless status.success?

    output
  end

  # @return [Integer] how many engines were started in the last run
  def processes
    File.readlines(File.join(directory, 'started')).length
  end

  private

  def modules_of_powershell
    File.join(directory, 'powershell')
  end

  def write_module
    folder = File.join(modules_of_powershell, 'Norm')
    FileUtils.mkdir_p(folder)
    File.write(File.join(folder, 'Norm.psd1'), "@{ RootModule = 'Norm.psm1'; ModuleVersion = '1.0.0'; DscResourcesToExport = @('Norm') }")
    File.write(File.join(folder, 'Norm.psm1'), File.read(File.join(HERE, 'norm.ps1')).gsub('FOLDER', files))
  end

  def generate
    arguments = ['puppetize', '--powershell-module', 'Norm', '--module', 'norm', '--dsc-compat', '--out', File.join(modules, 'norm')]
    output, status = Open3.capture2e(environment, ENGINE, *arguments)
    raise output unless status.success?
  end

  def environment
    path = [File.dirname(SHELL), ENV.fetch('PATH')].join(File::PATH_SEPARATOR)
    super.merge('PATH' => path, 'PSModulePath' => modules_of_powershell, 'POWERSHELL_TELEMETRY_OPTOUT' => '1', 'STEAD_ENGINE' => started)
  end

  # A program that notes that the engine is started.
  def started
    path = File.join(directory, 'engine')
    File.write(path, "#!/bin/sh\necho >> '#{directory}/started'\nexec '#{ENGINE}' \"$@\"\n")
    File.chmod(0o700, path)
    path
  end
end
