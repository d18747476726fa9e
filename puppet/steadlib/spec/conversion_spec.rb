# frozen_string_literal: true

RSpec.describe PuppetX::Stead::Conversion do
  def conversion(type, keys = {})
    described_class.new(Puppet::Pops::Types::TypeParser.singleton.parse(type), keys)
  end

  def sensitive(value)
    Puppet::Pops::Types::PSensitiveType::Sensitive.new(value)
  end

  def exposed(data)
    PuppetX::Stead::Secret.replace(data, &:expose)
  end

  [
    ['Optional[String]', nil, nil], ['String', '', ''], ['Array[String]', [], []], ['Boolean', false, false],
    ['Integer', 2**70, 2**70], ['Float', 1.5, 1.5], ['Hash', { 'a' => { 'b' => nil } }, { 'a' => { 'b' => nil } }],
    ["Enum['Low', 'High', true]", 'lOW', 'Low'], ["Array[Enum['Low', true]]", %w[LOW low], %w[Low Low]],
    ["Variant[Boolean, Enum['Low', true]]", 'LOW', 'Low'], ["Tuple[Integer, Enum['Low', true]]", [1, 'LOW'], [1, 'Low']],
    ["Struct[{ a => Enum['Low', true] }]", { 'a' => 'LOW' }, { 'a' => 'Low' }], ['Any', :symbol, 'symbol'], ['Any', :undef, nil]
  ].each do |type, value, data|
    it "sends #{value.inspect} of #{type} as #{data.inspect}" do
      expect(conversion(type).to_engine(value, 'x')).to eq(data)
    end
  end

  it 'sends the keys of objects as the engine spells them, at any depth' do
    value = { 'user' => 'u', 'more' => [{ 'user' => 'v' }] }
    expect(conversion('Hash', 'user' => 'userName').to_engine(value, 'x')).to eq('userName' => 'u', 'more' => [{ 'userName' => 'v' }])
  end

  it 'sends instants with their fraction, in UTC' do
    time = Puppet::Pops::Time::Timestamp.parse('2030-01-02T03:04:05.5 UTC')
    expect(conversion('Timestamp').to_engine(time, 'x')).to eq('2030-01-02T03:04:05.500000000Z')
  end

  it 'sends secrets as such, at any depth' do
    value = { 'a' => [sensitive('x')], 'b' => sensitive('c' => sensitive([1])) }
    expect(exposed(conversion('Any').to_engine(value, 'x')))
      .to eq('a' => [{ 'secureString' => 'x' }], 'b' => { 'secureObject' => { 'c' => [1] } })
  end

  {
    'Float' => [Float::NAN, 'x: NaN is not a finite number'], 'String' => ["\xFF", 'x: is not valid UTF-8'],
    'Hash' => [{ 'a' => [{ 'b' => /x/ }] }, 'x.a[0].b: a value of type Regexp[/x/] cannot be sent to the engine'],
    'Any' => [{ 1 => 2 }, 'x: the key 1 is not a string']
  }.each do |type, (value, message)|
    it "refuses #{value.inspect} with its path" do
      expect { conversion(type).to_engine(value, 'x') }.to raise_error(Puppet::ResourceError, message)
    end
  end

  it 'does not show a secret that it refuses' do
    expect { conversion('Any').to_engine({ 'a' => sensitive("hunter2\xFF") }, 'x') }
      .to raise_error(Puppet::ResourceError, 'x.a: is not valid UTF-8')
  end

  [
    ['Integer', '30', 30], %w[Integer x x], ['Float', 1, 1.0], %w[String 30 30], ["Enum['Low']", 'LOW', 'Low'],
    ["Enum['Low']", 'other', 'other'], ['Optional[Variant[Integer, Boolean]]', '7', 7],
    ['Struct[{ a => Integer, Optional[b] => String }]', { 'A' => '1', 'c' => 2 }, { 'a' => 1 }],
    ['Array[Struct[{ a => Integer }]]', [{ 'A' => 1 }], [{ 'a' => 1 }]], ['Hash[String, Integer]', { 'A' => '1' }, { 'A' => 1 }]
  ].each do |type, data, value|
    it "reads #{data.inspect} for #{type} as #{value.inspect}" do
      expect(conversion(type).to_puppet(data, 'x')).to eq(value)
    end
  end

  ['2100-01-01T00:00:00Z', '2100-01-01T01:00:00.000+01:00', '2100-01-01T00:00:00 UTC'].each do |text|
    it "reads the instant #{text}" do
      expect(conversion('Timestamp').to_puppet(text, 'x')).to eq(Puppet::Pops::Time::Timestamp.parse('2100-01-01T00:00:00 UTC'))
    end
  end

  it 'reports what is not an instant, with the attribute' do
    expect { conversion('Timestamp').to_puppet('foo', 'x.y') }
      .to raise_error(PuppetX::Stead::Error, "x.y: the engine returned 'foo', which is not a date and time")
  end
end
