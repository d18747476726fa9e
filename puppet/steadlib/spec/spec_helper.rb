# frozen_string_literal: true

require 'json'
require 'rbconfig'
require 'tmpdir'
require 'puppet'
require 'puppet/resource_api'

$LOAD_PATH.unshift(File.expand_path('../lib', __dir__))
require 'puppet/provider/stead_base/stead_base'

Puppet.initialize_settings(['--confdir', Dir.mktmpdir('stead'), '--vardir', Dir.mktmpdir('stead')])

# The engine that the tests talk to.
module FakeEngineHelp
  ENGINE = File.expand_path('fixtures/fake_engine.rb', __dir__)

  def engine_command
    [RbConfig.ruby, '--disable=gems', ENGINE]
  end

  # @return [PuppetX::Stead::Session] one whose engine runs with these variables
  def session(schemas: {}, grace: 5, **variables)
    command = ['/usr/bin/env', *variables.map { |name, value| "FAKE_ENGINE_#{name}=#{value}" }, *engine_command]
    PuppetX::Stead::Session.new(schemas, command: command, grace: grace).tap { |one| sessions << one }
  end

  def sessions
    @sessions ||= []
  end

  # @return [Array<String>] what Puppet logged, as `level: message`
  def logged
    @logs.map { |message| "#{message.level}: #{message}" }
  end
end

RSpec.configure do |config|
  config.include FakeEngineHelp
  config.disable_monkey_patching!
  config.order = :random
  Kernel.srand config.seed

  config.around do |example|
    Dir.mktmpdir('stead') do |directory|
      @directory = directory
      example.run
    end
  end

  config.before do
    @logs = []
    @destination = Puppet::Test::LogCollector.new(@logs)
    Puppet::Util::Log.newdestination(@destination)
    Puppet::Util::Log.level = :notice
  end

  config.after do
    Puppet::Util::Log.close(@destination)
    sessions.each(&:close)
  end
end
