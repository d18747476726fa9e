# frozen_string_literal: true

require 'English'
require 'fileutils'
require 'json'
require 'yaml'
require 'puppet'
require 'puppet/application/apply'
require 'puppet/application/resource'
require 'puppet/resource_api'
require 'puppet/util/command_line'

# What every run loads; a fork finds it loaded.
%w[facter puppet/configurer puppet/face puppet/type/component puppet/type/file puppet/type/filebucket puppet/type/group
   puppet/type/notify puppet/type/user puppet/type/whit].each { |file| require file }

# Runs Puppet in directories of its own, with an engine for its types.
class PuppetRun
  HERE = __dir__
  FAKE = File.expand_path('../steadlib/spec/fixtures/fake_engine.rb', HERE)
  MODULES = ['modules/*', '../examples/*/', '../steadlib'].flat_map { |path| Dir[File.expand_path(path, HERE)] }.freeze
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

  def apply(manifest, *options, **settings)
    path = File.join(@directory, 'site.pp')
    File.write(path, manifest.gsub('@', @files))
    puppet('apply', '--modulepath', modules, '--detailed-exitcodes', *options, path, **settings)
  end

  # Runs what the program `puppet` runs, in a fork that has loaded Puppet before.
  def puppet(command, *arguments, env: {}, preload: nil)
    settings = ['--confdir', conf, '--vardir', File.join(@directory, 'var'), '--facts_terminus', 'memory', '--color', 'false']
    settings = ['--modulepath', modules, *settings] if %w[resource describe].include?(command)
    reader, writer = IO.pipe
    pid = fork { execute([command, *settings, *arguments], environment.merge(env), writer, preload) }
    writer.close
    text = reader.read
    Process.wait(pid)
    Result.new(text, $CHILD_STATUS.exitstatus)
  end

  # @return [Array<String>] the requests of the last run, but for cancellations; the fake engine alone tells
  def requests
    messages.grep_v(/cancel/)
  end

  # @return [Array<String>] all that the fake engine was sent in the last run
  def messages
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

  def execute(arguments, env, output, preload)
    [$stdout, $stderr].each { |stream| stream.reopen(output) && stream.sync = true }
    ENV.update(env)
    ARGV.replace(arguments)
    load preload if preload
    Puppet::Util::CommandLine.new('puppet', arguments).execute
    code = 0
  rescue SystemExit => e
    code = e.status
  ensure
    exit!(code || 1)
  end

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
    { 'STEAD_ENGINE' => @engine, 'STEAD_STATE' => File.join(@directory, 'store'), 'FAKE_ENGINE_STORE' => store, 'FAKE_ENGINE_LOG' => log }
  end
end
