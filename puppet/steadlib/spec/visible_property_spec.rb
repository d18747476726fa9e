# frozen_string_literal: true

$LOAD_PATH.unshift(File.expand_path('../../tests/modules/notes/lib', __dir__))
require 'puppet/type/stead_note'

RSpec.describe PuppetX::Stead::VisibleProperty do
  let(:type) { Puppet::Type.type(:stead_note) }
  let(:state) { {} }

  # @return [Puppet::Property] of a resource whose provider answers what it is told
  def property(name, answer)
    resource = type.new(path: 'n', ensure: 'present', text: 'x')
    allow(type.my_provider).to receive(:insync?).and_return(answer)
    allow(resource).to receive(:rsapi_current_state).and_return(state)
    resource.property(name)
  end

  # @return [Array] whether the property is in sync, and how a change of it is shown
  def judged(property, current)
    [property.insync?(current), property.change_to_s(current, property.should)]
  end

  it 'has no methods of its own' do
    expect(property(:text, true).singleton_methods).to eq([])
  end

  currents = [[:text, 'y'], [:text, 'x'], %i[ensure absent], %i[ensure present]]
  currents.product([true, false, nil, [true, ''], [false, 'why'], [nil, 'why']]) do |(name, current), answer|
    it "judges as the Resource API does: #{name}, #{current}, #{answer.inspect}" do
      theirs = property(name, answer)
      Puppet::ResourceApi::Property.instance_method(:def_custom_insync?).bind_call(theirs)
      expect(theirs.singleton_methods).to include(:insync?, :change_to_s)
      expect(judged(property(name, answer), current)).to eq(judged(theirs, current))
    end
  end

  context 'with a resource in sync' do
    let(:state) { PuppetX::Stead::State.new.compared(nil, []) }

    it 'asks nobody' do
      expect(property(:text, false).insync?('y')).to be(true)
    end
  end
end
