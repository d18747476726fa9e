# frozen_string_literal: true

# Notes which tests are under way.
class NotingSession
  attr_reader :under_way, :cancelled

  def initialize
    @under_way = []
    @cancelled = []
  end

  def send_ahead(_method, params, _deadline)
    @under_way << params
    params
  end

  def answer(id, _deadline)
    @under_way.delete(id)
  end

  def abandon(id)
    @cancelled << @under_way.delete(id)
  end
end

RSpec.describe PuppetX::Stead::ReadAhead do
  subject(:ahead) { described_class.new(session, Struct.new(:resources).new(resources)) }

  let(:session) { NotingSession.new }
  let(:resources) { Array.new(40) { |index| resource(index) } }

  def resource(index)
    request = PuppetX::Stead::TestRequest.new({}, index, 1, compares: true)
    Object.new.extend(PuppetX::Stead::VisibleResource).tap do |one|
      one.define_singleton_method(:test_request) { request }
      one.define_singleton_method(:parameter) { |_| nil }
    end
  end

  # What Puppet does with a resource that is in sync.
  #
  # @return [Integer] how many tests are under way then
  def in_sync(index)
    ahead.answer(resources[index], resources[index].test_request)
    ahead.in_sync(resources[index])
    session.under_way.length
  end

  it 'has twice as many tests under way with each resource in sync, up to eight' do
    expect((0..5).map { |index| in_sync(index) }).to eq([2, 4, 8, 8, 8, 8])
    expect(session.under_way).to eq([*6..13])
  end

  it 'begins with one again after a change, and cancels what was under way' do
    4.times { |index| in_sync(index) }
    ahead.answer(resources[4], resources[4].test_request)
    ahead.changing
    expect([session.under_way, session.cancelled]).to eq([[], [*5..11]])
    ahead.changed(resources[4])
    expect(session.under_way).to eq([5])
    expect([in_sync(5), in_sync(6)]).to eq([2, 4])
  end

  it 'cancels the tests of resources that Puppet skipped, where there is no room for others' do
    4.times { |index| in_sync(index) }
    in_sync(20)
    expect([session.cancelled, session.under_way]).to eq([[*4..11], [*21..28]])
  end

  it 'does not use the answer to a request that became another' do
    in_sync(0)
    other = PuppetX::Stead::TestRequest.new({}, 1, 1, compares: true)
    expect(ahead.answer(resources[1], other)).to be_nil
    expect(session.cancelled).to eq([1])
  end
end
