# frozen_string_literal: true

require 'fileutils'
require 'json'
require 'open3'
require 'tmpdir'
require 'yaml'

RSpec.configure(&:disable_monkey_patching!)

RSpec.describe 'the adapter Puppet/Type' do
  around { |example| Dir.mktmpdir('stead') { |directory| example.run(@directory = directory) } }

  let(:adapter) { File.expand_path('../adapter', __dir__) }
  let(:path) { File.join(@directory, 'file') }
  let(:desired) { { 'path' => path, 'ensure' => 'file', 'content' => "one\n", 'mode' => '0640' } }

  # @return [Array] the lines of the answer, what is on standard error, and the exit code
  def call(operation, type = nil, properties = nil)
    command = [File.join(adapter, 'puppet_type.rb'), operation, *(['--type', "Puppet/#{type}"] if type)]
    env = { 'RUBYLIB' => File.join(@directory, 'lib') }
    output, errors, status = Open3.capture3(env, *command, stdin_data: properties ? JSON.generate(properties) : '')
    [output.lines.map { |line| JSON.parse(line) }, errors, status.exitstatus]
  end

  # Declares a type beside those of Puppet.
  def declare(name, code)
    path = File.join(@directory, 'lib/puppet/type', "#{name}.rb")
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, "Puppet::Type.newtype(:#{name}) do\n  newparam(:name, namevar: true)\n  #{code}\nend\n")
  end

  it 'lists types with their schemas, but for those without a state of their own' do
    types = call('list').first.to_h { |type| [type['type'], type['schema']] }
    expect(types.keys).to include('Puppet/file', 'Puppet/user', 'Puppet/group', 'Puppet/package', 'Puppet/service')
    expect(types.keys).not_to include('Puppet/exec', 'Puppet/notify')
    expect(types['Puppet/file']['required']).to eq(['path'])
    expect(types['Puppet/user']['properties']['password']).to include('writeOnly' => true)
    expect(types['Puppet/service']['properties'].keys).not_to include('_exist')
  end

  it 'tests, sets, reads and removes' do
    expect(call('get', 'file', 'path' => path).first).to eq([{ 'path' => path, '_exist' => false }])
    expect(call('test', 'file', desired).first).to match([include('_inDesiredState' => false), ['ensure']])
    expect(File).not_to exist(path)
    expect(call('set', 'file', desired).first).to match([include('mode' => '0640', '_exist' => true), ['ensure']])
    expect(File.read(path)).to eq("one\n")
    expect(call('test', 'file', desired).first).to match([include('_inDesiredState' => true), []])
    expect(call('set', 'file', desired.merge('mode' => '0600')).first.last).to eq(['mode'])
    expect(call('set', 'file', 'path' => path, '_exist' => false).first.first).to include('_exist' => false)
    expect(File).not_to exist(path)
  end

  it 'says whether properties are valid, and changes nothing' do
    expect(call('validate', 'file', desired)).to eq([[{ 'valid' => true }], '', 0])
    expect(File).not_to exist(path)
    { { 'path' => 'relative' } => /fully qualified/, { 'path' => path, 'nosuch' => 1 } => /no attribute 'nosuch'/,
      { 'path' => path, 'mode' => 'x9' } => /mode/, {} => /'path' is required/ }.each do |wrong, reason|
      lines, _, code = call('validate', 'file', wrong)
      expect([lines, code]).to match([[{ 'valid' => false, 'reason' => reason }], 0])
    end
  end

  it 'names no secret in a reason' do
    lines, errors, = call('validate', 'user', 'name' => 'root', 'password' => 'CANARY', 'uid' => 'x y')
    expect("#{lines}#{errors}").not_to include('CANARY')
  end

  it 'exports what fits a filter' do
    expect(call('export', 'group', 'name' => 'root').first).to match([include('name' => 'root', 'gid' => 0, '_exist' => true)])
  end

  it 'covers secrets' do
    lines, errors, code = call('test', 'user', 'name' => 'root', 'password' => 'CANARY')
    expect([lines.last, code]).to eq([['password'], 0])
    expect("#{lines}#{errors}").not_to include('CANARY')
    expect(call('get', 'user', 'name' => 'root').first.first.keys).not_to include('password')
  end

  { 'an unknown type' => ['nosuch', { 'name' => 'x' }, %r{no type of Puppet for 'Puppet/nosuch'}],
    'an attribute that the type does not have' => ['file', { 'path' => '/x', 'nosuch' => 1 }, /file has no attribute 'nosuch'/],
    'no key' => ['file', {}, /'path' is required/],
    'a value that Puppet refuses' => ['file', { 'path' => 'relative' }, /must be fully qualified/],
    'what cannot be done' => ['file', { 'path' => '/nosuch/x', '_exist' => true }, /No such file or directory/] }.each do |what, call|
    it "fails with the reason: #{what}" do
      _, errors, code = call('set', *call.take(2))
      expect(errors.lines.map { |line| JSON.parse(line)['error'] }.join).to match(call.last)
      expect(code).to eq(1)
    end
  end

  describe 'a type whose code is wrong' do
    it 'hides no other' do
      declare('aaa_broken', 'def (')
      lines, errors, code = call('list')
      expect(lines.map { |type| type['type'] }).to include('Puppet/file', 'Puppet/user')
      expect([errors.lines.length, errors, code]).to match([1, /"error":"Could not autoload .*aaa_broken.*syntax error/, 0])
    end

    it 'fails with the reason' do
      declare('unfinished', "newproperty(:x) { def retrieve() = raise NotImplementedError, 'there is no x' }")
      _, errors, code = call('get', 'unfinished', 'name' => 'a')
      expect([errors, code]).to eq([%({"error":"there is no x"}\n), 1])
    end

    it 'says that it was set where its state cannot be read afterwards' do
      declare('once', "newproperty(:x) do
        def retrieve() = File.exist?('#{@directory}/set') ? raise('it is locked') : 'before'
        def set(_) = File.write('#{@directory}/set', '')
      end")
      _, errors, code = call('set', 'once', 'name' => 'a', 'x' => 'after')
      expect([errors.lines.last, code]).to eq([%({"error":"Once[a] was set, but its state cannot be read: it is locked"}\n), 1])
    end
  end

  it 'carries out documents' do
    engine = ENV.fetch('STEAD_TEST_ENGINE') { skip 'STEAD_TEST_ENGINE names no engine' }
    document = File.join(@directory, 'document.yaml')
    resources = [{ 'name' => 'motd', 'type' => 'Puppet/file', 'properties' => desired },
                 { 'name' => 'root', 'type' => 'Puppet/user', 'properties' => { 'name' => 'root', 'uid' => 0 } }]
    File.write(document, YAML.dump('resources' => resources))
    applied = Array.new(2) { Open3.capture2e({ 'DSC_RESOURCE_PATH' => adapter, 'HOME' => @directory }, engine, 'apply', document) }
    expect(applied.map(&:first)).to match([/1 created, 1 unchanged, 0 failed/, /0 changed, 2 unchanged, 0 failed/])
    expect(File.read(path)).to eq("one\n")
  end
end
