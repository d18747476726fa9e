# frozen_string_literal: true

require 'spec_helper'
require 'puppet_x/stead/verdict'

RSpec.describe PuppetX::Stead::Verdict do
  it 'knows the outermost property of a JSON pointer' do
    attribute = Struct.new(:property, :existence?)
    verdict = described_class.new('inDesiredState' => false, 'differing' => [{ 'property' => '/a~1b~0c/deep' }, { 'property' => '/Name' }])
    differing = ['a/b~c', 'name', 'deep', 'a'].select { |name| verdict.differs?(attribute.new(name), nil) }
    expect(differing).to eq(['a/b~c', 'name'])
  end
end
