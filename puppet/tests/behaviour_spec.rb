# frozen_string_literal: true

require 'tmpdir'
require_relative 'puppet_run'

RSpec.configure(&:disable_monkey_patching!)

RSpec.describe 'puppet' do
  around { |example| Dir.mktmpdir('stead') { |directory| example.run(@run = PuppetRun.new(directory)) } }

  let(:run) { @run }

  describe 'values' do
    let(:manifest) do
      <<~PUPPET
        stead_note { 'n':
          anything => { 'a' => [1, undef, { 'b' => 1.5 }] }, count => 3, flag => false, labels => ['b', 'A'], level => 'LOW',
          login => { 'user' => 'u', 'password' => Sensitive('CANARY') }, pin => Sensitive(1234), ratio => 1,
          since => Timestamp('2030-01-02T03:04:05 UTC'), text => '', token => Sensitive('CANARY'),
        }
      PUPPET
    end

    it 'reach the engine as the schema has them' do
      expect(run.apply(manifest).code).to eq(2)
      expect(run.instances('Test/Note').first).to eq(
        'path' => 'n', '_exist' => true, 'anything' => { 'a' => [1, nil, { 'b' => 1.5 }] }, 'count' => 3, 'flag' => false,
        'labels' => %w[b A], 'level' => 'Low', 'login' => { 'userName' => 'u', 'password' => { 'secureString' => 'CANARY' } },
        'pin' => { 'secureObject' => 1234 }, 'ratio' => 1, 'since' => '2030-01-02T03:04:05Z', 'text' => '',
        'token' => { 'secureString' => 'CANARY' }
      )
      expect(run.apply(manifest).lines).to eq([])
      expect(run.apply(manifest, '--strict', 'error').lines).to eq([])
    end

    it 'that were changed are reported one by one' do
      run.apply(manifest)
      result = run.apply(manifest.sub('count => 3, flag => false', 'count => 4, flag => true').sub('1234', '5678'))
      expect(result.lines).to include(/count: count changed 3 to 4/, /flag: flag changed false to 'true'/,
                                      /pin: changed \[redacted\] to \[redacted\]/)
      expect(result.lines.grep(/changed/).length).to eq(3)
    end

    { "count => 'x'" => /stead_note.count expects/, 'count => 10' => /stead_note.count expects/,
      "level => 'Middle'" => /stead_note.level expects/, 'nosuch => 1' => /no parameter named 'nosuch'/,
      "login => { 'user' => 'u', 'password' => 'plain' }" => /stead_note.login entry 'password' expects a Sensitive/,
      "anything => { 'a' => [Integer] }" => /stead_note\.anything\.a\[0\]: a value of type Type/,
      'anything => { 1 => 2 }' => /stead_note\.anything: the key 1 is not a string/,
      "anything => Regexp['x']" => /stead_note\.anything: a value of type/ }.each do |attribute, error|
      it "that do not fit are refused before anything is done: #{attribute}" do
        result = run.apply("stead_note { 'ok': } stead_note { 'n': #{attribute} }")
        expect(result.text).to match(error)
        expect([result.code, run.requests]).to eq([1, []])
      end
    end
  end

  describe 'reads ahead' do
    def requests_of(manifest, *options, **settings)
      run.apply(manifest, *options, **settings)
      run.requests.drop(1)
    end

    it 'of what Puppet comes to next, each once, while nothing changes' do
      manifest = "stead_note { ['a', 'b', 'c', 'd']: text => 'x' }"
      run.apply(manifest)
      run.requests
      text = run.apply(manifest, '--debug').text
      expect(run.requests).to eq(['initialize', 'test a', 'test b', 'test c', 'test d'])
      expect(text.index(/stead request: .*"id":4/)).to be < text.index('stead answer 3')
    end

    it 'of one resource after a change, and of none twice' do
      expect(requests_of("stead_note { ['a', 'b', 'c']: text => 'x' }"))
        .to eq(['test a', 'set a', 'test b', 'set b', 'test c', 'set c'])
    end

    it 'are not used after a change that another type made' do
      run.apply("stead_note { ['a', 'b', 'c']: text => 'x' }")
      run.requests
      manifest = "stead_note { ['a', 'b']: text => 'x' } file { '@/f': content => 'x' } stead_note { 'c': text => 'x' }"
      expect(requests_of(manifest)).to eq(['test a', 'test b', 'test c', 'test c'])
    end

    it 'are not used after another type was refreshed' do
      run.apply("stead_note { ['a', 'b', 'c']: text => 'x' }")
      run.requests
      requests = requests_of(<<~PUPPET)
        file { '@/f': content => 'x', notify => Exec['e'] }
        stead_note { ['a', 'b']: text => 'x' }
        exec { 'e': command => 'echo refreshed >> #{run.directory}/requests', provider => shell, refreshonly => true }
        stead_note { 'c': text => 'x' }
      PUPPET
      expect(requests).to eq(['test a', 'test b', 'refreshed', 'test c'])
    end

    { 'a tag leaves out' => [%w[--tags web], "tag => ['web']", ''], 'a tag skips' => [%w[--skip_tags no], '', "tag => ['no']"],
      'a schedule leaves out' => [[], '', "schedule => 'no'"] }.each do |what, (options, first, second)|
      it "are not made of resources that #{what}, and nothing is set" do
        manifest = "schedule { 'no': period => never } stead_note { 'a': #{first} } stead_note { 'b': #{second} }"
        expect(requests_of(manifest, *options)).to eq(['test a', 'set a'])
        expect(requests_of(manifest, *options)).to eq(['test a'])
        expect(run.instances('Test/Note').map { |one| one['path'] }).to eq(['a'])
      end
    end

    it 'of a resource whose dependency fails change nothing, and are cancelled with the catalog' do
      run.apply("stead_note { 'a': text => 'x' }")
      run.messages
      result = run.apply("stead_note { 'a': text => 'x' } stead_note { 'failing-32000': } -> stead_note { 'held': text => 'x' }")
      expect(result.lines).to include(/Stead_note\[held\]: Skipping because of failed dependencies/)
      expect(run.messages).to eq(['initialize', 'test a', 'test failing-32000', 'test held', '$/cancel 4'])
      expect(run.instances('Test/Note').map { |one| one['path'] }).to eq(['a'])
    end

    it 'that fail because of others that are under way are made again, alone' do
      names = %w[a busy-32001 busy-32002 busy-32005]
      manifest = "stead_note { ['#{names.join("', '")}']: text => 'x' }"
      run.apply(manifest, env: { 'FAKE_ENGINE_FAULT' => 'idle' })
      run.requests
      result = run.apply(manifest)
      expect([result.lines, result.code]).to eq([[], 0])
      expect(run.requests.tally).to eq('initialize' => 1, 'test a' => 1, **names.drop(1).to_h { |name| ["test #{name}", 2] })
    end

    it 'end with an engine that fails, and are asked again' do
      manifest = "stead_note { ['a', 'b', 'c', 'd']: text => 'x' }"
      run.apply(manifest)
      run.requests
      result = run.apply(manifest, env: { 'FAKE_ENGINE_FAULT' => "die_at_c:#{run.directory}/marker" })
      expect([result.lines, result.code]).to eq([[], 0])
      expect(run.requests.count('initialize')).to eq(2)
    end
  end

  it 'takes metaparameters, tags and noop' do
    manifest = <<~PUPPET
      notify { 'listener': }
      stead_note { 'a': text => 'x', notify => Notify['listener'], tag => ['Web'] }
      stead_note { 'b': text => 'x', noop => true }
      file { '@/dir': ensure => directory }
      stead_file { '@/dir': content => 'x', noop => true }
    PUPPET
    result = run.apply(manifest, '--tags', 'web')
    expect(result.lines.grep(/Stead_note\[b\]|Listener/)).to eq([])
    expect(run.instances('Test/Note').map { |one| one['path'] }).to eq(['a'])
    result = run.apply(manifest)
    expect(result.lines).to include(%r{Stead_note\[b\]/ensure: current_value 'absent', should be 'present' \(noop\)})
    expect(run.instances('Test/Note').map { |one| one['path'] }).to eq(['a'])
    expect(result.lines.index { |line| line.include?('File[') }).to be < result.lines.index { |line| line.include?('Stead_file[') }
  end

  it 'audits what it does not manage' do
    run.apply("stead_note { 'a': text => 'one' }")
    manifest = "stead_note { 'a': audit => 'text' }"
    expect(run.apply(manifest).lines).to include(/text: audit change: newly-recorded value one/)
    run.change('Test/Note') { |notes| notes.first['text'] = 'two' }
    expect(run.apply(manifest).lines).to include(/text: audit change: previously recorded value 'one' has been changed to 'two'/)
  end

  it 'purges what is not managed' do
    run.apply("stead_note { ['a', 'b']: text => 'x' }")
    result = run.apply("stead_note { 'a': text => 'x' } resources { 'stead_note': purge => true }")
    expect(result.lines).to include(%r{Stead_note\[b\]/ensure: undefined 'ensure' from 'present'})
    expect(run.instances('Test/Note').map { |one| one['path'] }).to eq(['a'])
  end

  it 'lists, shows and deletes with `puppet resource`' do
    run.apply("stead_note { ['a', 'b']: text => 'x', pin => Sensitive('CANARY') }")
    all = run.puppet('resource', 'stead_note')
    expect(all.text.scan(/stead_note \{ '(.)'/).flatten).to eq(%w[a b])
    expect(run.puppet('resource', 'stead_note', 'a', '--to_yaml').text).to match(/text: x/)
    expect(run.puppet('resource', 'stead_note', 'a', 'text=x').text).to match(/ensure\s*=> 'present'.*text\s*=> 'x'/m)
    expect(run.puppet('resource', 'stead_note', 'zzz').text).to match(/ensure\s*=> 'absent'/)
    expect(run.puppet('resource', 'stead_note', 'b', 'ensure=absent').text).to match(/ensure: undefined 'ensure'/)
    expect(run.instances('Test/Note').map { |one| one['path'] }).to eq(['a'])
    expect(run.puppet('resource', 'stead_note', 'c', 'text=y', 'count=3').text).to match(/ensure: defined 'ensure'/)
    expect(run.instances('Test/Note').last).to include('text' => 'y', 'count' => 3)
    expect(all.text).not_to include('CANARY')
  end

  it 'shows one instance with `puppet resource` where instances cannot be listed' do
    run.apply("stead_note { 'a': text => 'x' }")
    env = { 'FAKE_ENGINE_FAULT' => 'unlisted' }
    all = run.puppet('resource', 'stead_note', env: env)
    expect([all.text.strip, all.code]).to match([/\AWarning: stead_note: instances cannot be listed: E0802.*\z/, 0])
    expect(run.puppet('resource', 'stead_note', 'a', env: env).text).to match(/text\s*=> 'x'/)
  end

  describe 'failures' do
    it 'have their reason in the event of the report' do
      run.apply("stead_note { 'refused': } -> notify { 'after': } stead_note { 'good': text => 'x' }")
      expect(run.status('Stead_note[refused]')['events'].map { |event| event['message'] }).to include(/E0801: the disk is full/)
      expect(run.status('Stead_note[refused]')['failed']).to be(true)
      expect(run.status('Notify[after]')['skipped']).to be(true)
      expect(run.status('Stead_note[good]').values_at('failed', 'changed')).to eq([false, true])
    end

    it 'of a change that has no effect name the property, and do not repeat' do
      result = run.apply("stead_note { 'stubborn': text => 'x' }")
      expect(result.text).to match(/Creating: Failed .*not in the desired state after the change: text, ensure/)
      expect(result.code).to eq(6)
      unverified = run.apply("stead_note { 'stubborn': text => 'x', stead_verify => false }")
      expect(unverified.code).to eq(2)
    end

    it 'of the test after a change have their reason, and the change is made' do
      result = run.apply("stead_note { 'unreadable': text => 'x' }")
      expect(result.text).to match(/Creating: Failed .*changed, but cannot be verified: E0812: the file is locked/)
      expect([result.code, run.instances('Test/Note').map { |one| one['path'] }]).to eq([6, ['unreadable']])
    end

    it 'of an engine that ends in the middle are those of one resource, once it is started again' do
      env = { 'FAKE_ENGINE_FAULT' => "die:#{run.directory}/marker" }
      result = run.apply("stead_note { ['a', 'b', 'c']: text => 'x' }", env: env)
      expect(result.code).to eq(2)
      expect(run.instances('Test/Note').length).to eq(3)
    end

    it 'of an engine that ends always show the end of its standard error' do
      result = run.apply("stead_note { ['a', 'b', 'c']: text => 'x' }", env: { 'FAKE_ENGINE_FAULT' => 'die' })
      expect(result.text).to match(/the engine ended with exit code 3.*the store is gone/m)
      expect([result.code, run.requests.grep(/test/).length]).to eq([4, 2])
    end

    it 'of a silent engine do not hang Puppet' do
      result = run.apply("stead_note { 'a': text => 'x', stead_timeout => 1 }", env: { 'FAKE_ENGINE_FAULT' => 'silent' })
      expect(result.text).to match(/gave no answer within 6 seconds/)
      expect(result.code).to eq(4)
    end

    it 'of a program that others may write come before it runs' do
      engine = File.join(run.directory, 'engine')
      FileUtils.cp(PuppetRun::FAKE, engine)
      File.chmod(0o777, engine)
      result = run.apply("stead_note { 'a': }", env: { 'STEAD_ENGINE' => engine })
      expect(result.text).to match(/refusing the engine: '.*engine' is writable by other users; run `chmod go-w` on it/)
      expect(result.code).to eq(4)
    end

    it 'of two resources that manage the same instance name the other' do
      result = run.apply("dsc_file { 'x1': dsc_path => '/p', dsc_content => '1' } dsc_file { 'x2': dsc_path => '/p', dsc_content => '2' }")
      expect(result.text).to match(/Dsc_file\[x2\].*dsc_file\[x1\] manages the same instance/)
      expect(result.code).to eq(6)
    end
  end

  it 'reports a restart once, and a reboot in the catalog is pending' do
    result = run.apply("stead_note { ['restart1', 'restart2']: text => 'x' } reboot { 'stead_reboot': }")
    expect(result.lines.grep(/^Warning: .*restart required: system host/).length).to eq(1)
    expect(result.lines.grep(/Stead_note\[restart\d\].*restart required: system host/).length).to eq(2)
    expect(result.lines).to include(/a reboot is pending: true/)
    expect(result.code).to eq(2)
  end

  it 'gives the timeout of one resource to that one only' do
    text = run.apply("stead_note { 'a': stead_timeout => 7 } -> stead_note { 'b': }", '--debug').text
    deadlines = text.scan(/stead request: (.*)/).flatten.map { |line| JSON.parse(line)['params'] }.drop(1)
    expect(deadlines.map { |params| [params['properties']['path'], params['deadline']] }.uniq).to eq([['a', 7], ['b', 300]])
  end

  it 'does work in proportion to the number of resources' do
    count = { preload: File.join(PuppetRun::HERE, 'count_work.rb') }
    lines = [60, 240].map do |number|
      manifest = Array.new(number) { |index| <<~PUPPET }.join
        stead_note { 'n#{index}': text => 'x', login => { 'user' => 'u', 'password' => Sensitive('x') } }
        dsc_file { 'd#{index}': dsc_path => '/d#{index}', dsc_content => 'x' }
      PUPPET
      Array.new(2) { run.apply(manifest, **count).text[/^lines: (\d+)/, 1].to_i }
    end
    expect(lines.flatten).to all(be > 10_000)
    expect(lines.last.zip(lines.first).map { |many, few| many / few.to_f }).to all(be < 4.2)
  end

  it 'is silent about parameters that are sensitive' do
    sensitive = { preload: File.join(PuppetRun::HERE, 'mark_sensitive.rb') }
    manifest = "stead_note { 'n': token => Sensitive('CANARY'), pin => Sensitive('CANARY') }"
    expect(run.apply(manifest, **sensitive).lines).to match([/ensure: defined 'ensure' as 'present'/, /Creating: Finished/])
    expect(run.apply(manifest, **sensitive).lines).to eq([])
  end

  it 'knows in the next run whether a change is a corrective one' do
    store = { preload: File.join(PuppetRun::HERE, 'store_always.rb') }
    run.apply("stead_note { 'n': text => 'one' }", **store)
    run.change('Test/Note') { |notes| notes.first['text'] = 'drift' }
    expect(run.apply("stead_note { 'n': text => 'one' }", **store).lines).to include(/changed 'drift' to 'one' \(corrective\)/)
    expect(run.apply("stead_note { 'n': text => 'two' }", **store).lines).to include(/changed 'one' to 'two'$/)
  end
end
