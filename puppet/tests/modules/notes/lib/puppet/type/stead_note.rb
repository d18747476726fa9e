# frozen_string_literal: true

require 'puppet/resource_api'

# What a generator would write for a resource with properties of all kinds.
Puppet::ResourceApi.register_type(
  name: 'stead_note',
  docs: 'A note of the fake engine.',
  features: ['simple_get_filter', 'custom_insync'],
  stead: { type: 'Test/Note', digest: 'sha256:note' },
  attributes: {
    ensure: { type: 'Enum[present, absent]', desc: 'Whether it is there.', default: 'present', property: '_exist',
              values: { 'present' => true, 'absent' => false } },
    path: { type: 'String[1]', desc: 'What identifies it.', behaviour: :namevar, property: 'path' },
    anything: { type: 'Optional[Any]', desc: 'Whatever.', property: 'anything' },
    count: { type: 'Optional[Integer[0, 9]]', desc: 'A number.', property: 'count' },
    flag: { type: 'Optional[Boolean]', desc: 'A boolean.', property: 'flag' },
    labels: { type: 'Optional[Array[String]]', desc: 'A set.', property: 'labels' },
    level: { type: "Optional[Enum['Low', 'High', true]]", desc: 'An enum that ignores case.', property: 'level' },
    login: { type: 'Optional[Struct[{ user => String, password => Sensitive[String] }]]', desc: 'A secret inside.', property: 'login',
             keys: { 'user' => 'userName' } },
    pin: { type: 'Optional[Sensitive[Variant[String, Integer]]]', desc: 'A secret.', property: 'pin', secret: true },
    ratio: { type: 'Optional[Variant[Float, Integer]]', desc: 'A number.', property: 'ratio' },
    since: { type: 'Optional[Timestamp]', desc: 'An instant.', property: 'since' },
    text: { type: 'Optional[Variant[String, Sensitive[String]]]', desc: 'Text.', property: 'text' },
    token: { type: 'Optional[Sensitive[String]]', desc: 'A secret that cannot be read.', behaviour: :parameter, property: 'token' },
    validation_mode: { type: 'Enum[property, resource]', desc: 'What decides.', default: 'property', behaviour: :parameter },
    stead_timeout: { type: 'Optional[Integer[1]]', desc: 'Seconds.', behaviour: :parameter },
    stead_verify: { type: 'Boolean', desc: 'Whether to test again.', default: true, behaviour: :parameter },
  },
)
