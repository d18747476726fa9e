# frozen_string_literal: true

require 'fileutils'
require 'json'
require 'open3'
require 'yaml'
require 'puppet'

# Runs Puppet in directories of its own, with an engine for its types.
class PuppetRun
  HERE = __dir__
  FAKE = File.expand_path('../steadlib/spec/fixtures/fake_engine.rb', HERE)
  MODULES = [*Dir[File.join(HERE, 'modules/*')], *Dir[File.expand_path('../examples/*/', HERE)], File.expand_path('../steadlib', HERE)].freeze
  Result = Struct.new(:text, :code) do
    # @return [Array<String>] what Puppet said, without what every run says
    def lines
      text.lines(chomp: true).grep_v(/Compiled catalog|Applied catalog|Facter:/)
    end
  end

  attr_reader :directory, :files

  # @param engine [String] the path of the engine
  def initialize(directory, engine: FAKE)
    @directory = directory
    @engine = engine
    @files = File.join(directory, 'files')
    FileUtils.mkdir_p([@files, modules, conf])
    MODULES.each { |path| File.symlink(path.chomp('/'), File.join(modules, File.basename(path))) }
  end

  def fake?
    @engine == FAKE
  end

  def modules
    File.join(@directory, 'modules')
  end

  def apply(manifest, *options, env: {})
    path = File.join(@directory, 'site.pp')
    File.write(path, manifest.gsub('@', @files))
    puppet('apply', '--modulepath', modules, '--detailed-exitcodes', *options, path, env: env)
  end

  def puppet(command, *arguments, env: {})
    settings = ['--confdir', conf, '--vardir', File.join(@directory, 'var'), '--facts_terminus', 'memory', '--color', 'false']
    settings = ['--modulepath', modules, *settings] if %w[resource describe].include?(command)
    text, status = Open3.capture2e(environment.merge(env), 'puppet', command, *settings, *arguments)
    Result.new(text, status.exitstatus)
  end

  # @return [Array<String>] the requests of the last run; the fake engine alone tells
  def requests
    return [] unless File.exist?(log)

    File.readlines(log, chomp: true).map { |line| line.sub(@files, '@') }.tap { File.delete(log) }
  end

  # @return [Puppet::Transaction::Report] of the last run
  def report
    text = File.read(File.join(@directory, 'var/state/last_run_report.yaml'))
    YAML.safe_load(text.gsub(/!ruby\S+/, ''), permitted_classes: [Symbol, Time], aliases: true)
  end

  # @return [Hash] of a resource in the last report
  def status(resource)
    report['resource_statuses'].fetch(resource.sub('@', @files))
  end

  # @return [Array<Hash>] the instances of the fake engine
  def instances(type)
    JSON.parse(File.read(store)).fetch(type, [])
  end

  def change(type)
    data = JSON.parse(File.read(store))
    yield data[type]
    File.write(store, JSON.generate(data))
  end

  private

  def conf
    File.join(@directory, 'conf')
  end

  def store
    File.join(@directory, 'store.json')
  end

  def log
    File.join(@directory, 'requests')
  end

  def environment
    { 'STEAD_ENGINE' => @engine, 'FAKE_ENGINE_STORE' => store, 'FAKE_ENGINE_LOG' => log }
  end
end
