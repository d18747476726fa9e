# frozen_string_literal: true

RSpec.describe PuppetX::Stead::Session do
  let(:params) { { 'type' => 'Stead/File', 'properties' => { 'path' => '/a' } } }
  let(:log) { File.join(@directory, 'log') }
  let(:absent) { { 'exists' => false, 'actual' => {} } }

  def requests
    File.readlines(log, chomp: true)
  end

  it 'starts no engine before the first request' do
    session('LOG' => log)
    expect(File).not_to exist(log)
  end

  it 'greets once and then answers each request' do
    one = session('LOG' => log)
    2.times { expect(one.request('get', params)).to eq(absent) }
    expect(requests).to eq(['initialize', 'get /a', 'get /a'])
  end

  describe 'an engine that fails' do
    { 'die' => /ended with exit code 3.*the store is gone/m, 'killed' => /ended by signal 9/,
      'half' => /ended with exit code 0/, 'silent' => /no answer within 0.2 seconds/,
      'chatter' => /no answer within 0.2 seconds/,
      'garbage' => /not JSON/, 'list' => /not an answer/, 'wrong_id' => /was not given/ }.each do |fault, reason|
      it "is started again once when it does this: #{fault}" do
        one = session('FAULT' => "#{fault}:#{@directory}/marker", 'LOG' => log, grace: 0.1)
        expect(one.request('get', params, 0.1)).to eq(absent)
        expect(requests).to eq(['initialize', 'get /a', 'initialize', 'get /a'])
      end

      it "fails the request with the reason when it does it again: #{fault}" do
        one = session('FAULT' => fault, 'LOG' => log, grace: 0.1)
        expect { one.request('get', params, 0.1) }.to raise_error(PuppetX::Stead::EngineFailure, reason)
        given_up = /\Athe engine failed 2 times and is not started again: (?!the engine failed).*#{reason}/m
        2.times { expect { one.request('get', params, 0.1) }.to raise_error(PuppetX::Stead::EngineFailure, given_up) }
        expect(requests.grep(/get/).length).to eq(2)
      end
    end

    it 'is not used after a handshake that says nothing' do
      one = session('FAULT' => 'greeting', 'LOG' => log)
      2.times { expect { one.request('get', params) }.to raise_error(PuppetX::Stead::EngineFailure, /answer to the handshake/) }
      expect(requests).to eq(%w[initialize initialize])
    end

    it 'is not sent a change twice' do
      one = session('FAULT' => "die:#{@directory}/marker", 'LOG' => log)
      expect { one.request('set', params) }.to raise_error(PuppetX::Stead::EngineFailure, /the store is gone/)
      expect(requests).to eq(['initialize', 'set /a'])
      expect(one.request('get', params)).to eq(absent)
    end

    it 'cannot fill the memory with an answer' do
      stub_const('PuppetX::Stead::Engine::LONGEST_ANSWER', 1_000_000)
      expect { session('FAULT' => 'huge').request('get', params) }.to raise_error(PuppetX::Stead::EngineFailure, /more than 1000000/)
    end

    it 'leaves no process behind' do
      one = session('FAULT' => 'silent', grace: 0.1)
      expect { one.request('get', params, 0.1) }.to raise_error(PuppetX::Stead::EngineFailure)
      expect(Thread.list.grep(Process::Waiter)).to be_empty
      expect { Process.wait(-1, Process::WNOHANG) }.to raise_error(Errno::ECHILD)
    end
  end

  it 'ignores a second answer to the same request' do
    one = session('FAULT' => 'twice')
    3.times { expect(one.request('get', params)).to eq(absent) }
  end

  it 'reads a flood on standard error, and keeps its end' do
    expect(session('FAULT' => 'flood').request('get', params)).to eq(absent)
    expect { session('FAULT' => 'flood_and_die').request('get', params) }
      .to raise_error(PuppetX::Stead::EngineFailure, /standard error:\nx{1900,2100} the end\z/)
  end

  it 'sends and receives more than a pipe holds' do
    big = { 'path' => '/a', 'content' => 'x' * 3_000_000 }
    one = session('STORE' => File.join(@directory, 'store'))
    one.request('set', params.merge('properties' => big))
    expect(one.request('get', params)['actual']['content'].length).to eq(3_000_000)
  end

  it 'passes on what the engine logs' do
    session('FAULT' => 'log').request('get', params)
    expect(logged).to eq(['warning: stead a warning'])
  end

  it 'reports an error of the engine with its code' do
    one = session('STORE' => File.join(@directory, 'store'))
    refused = params.merge('properties' => { 'path' => '/refused' })
    expect { one.request('set', refused) }.to raise_error(PuppetX::Stead::RequestError, 'E0801: the disk is full')
  end

  it 'refuses an engine of another protocol' do
    expect { session('FAULT' => 'protocol').request('get', params) }.to raise_error(/speaks protocol 2; this module needs 1/)
  end

  it 'reports a failed handshake' do
    expect { session('FAULT' => 'handshake').request('get', params) }.to raise_error('no handshake today')
  end

  it 'warns once of a schema that is another one than the type was generated from' do
    one = session('FAULT' => 'schema', schemas: { 'Stead/File' => 'sha256:mine' })
    2.times { one.request('get', params) }
    expect(logged).to match([%r{warning: .*Stead/File.*stead puppetize}])
  end

  it 'gives a forked process an engine of its own' do
    allow(described_class).to receive(:schemas).and_return({})
    mine = described_class.current
    reader, writer = IO.pipe
    Process.wait(fork do
      writer.puts(described_class.current.pid == Process.pid)
      exit!(0)
    end)
    expect(reader.gets).to eq("true\n")
    expect(described_class.current).to equal(mine)
  end

  it 'ends the engine when it is closed' do
    one = session
    one.request('get', params)
    one.close
    expect(Thread.list.grep(Process::Waiter)).to be_empty
  end

  describe 'a request that was sent ahead' do
    let(:held) { params.merge('properties' => { 'path' => 'held' }) }

    it 'is cancelled when nobody waits for it, and its answer is ignored' do
      one = session('LOG' => log)
      one.request('get', params)
      one.abandon(one.send_ahead('test', held))
      expect(one.request('get', params)).to eq(absent)
      expect(requests).to eq(['initialize', 'get /a', 'test held', '$/cancel 3', 'get /a'])
    end

    it 'is not cancelled once its answer is there' do
      one = session('LOG' => log)
      one.request('get', params)
      id = one.send_ahead('test', params)
      one.request('get', params)
      one.abandon(id)
      one.request('get', params)
      expect(requests).to eq(['initialize', 'get /a', 'test /a', 'get /a', 'get /a'])
    end

    it 'is cancelled without a failure where the engine has ended' do
      one = session('FAULT' => 'die_at_c')
      one.request('get', params)
      id = one.send_ahead('test', params.merge('properties' => { 'path' => 'c' }))
      Thread.list.grep(Process::Waiter).each(&:join)
      one.abandon(id)
      expect(one.request('get', params)).to eq(absent)
    end
  end

  describe 'with --debug' do
    before { Puppet::Util::Log.level = :debug }

    it 'shows requests that can be replayed, without secrets' do
      secret = PuppetX::Stead::Secret.new('hunter2')
      session.request('get', params.merge('properties' => { 'path' => '/a', 'content' => secret }))
      lines = logged.filter_map { |line| line[/\Adebug: stead request: (.*)/, 1] }.map { |line| JSON.parse(line) }
      expect(lines.map { |line| line['method'] }).to eq(%w[initialize get])
      expect(lines.last['params']['properties']).to eq('path' => '/a', 'content' => { 'secureString' => '[redacted]' })
      expect(logged.join).not_to include('hunter2')
    end

    it 'shows of an answer what it says, and no value' do
      session.request('test', params)
      expect(logged.last).to eq('debug: stead answer 2: exists=false actual inDesiredState=false differing=/path,/_exist')
    end
  end
end
