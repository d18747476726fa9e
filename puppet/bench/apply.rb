#!/usr/bin/env ruby
# frozen_string_literal: true

# Compares how long Puppet applies resources of the generated type `stead_file` with how long it applies those of its own type
# `file`, in turns. A type that does nothing is the floor: no type of Puppet is faster. Arguments: `wall` or `cpu`, and numbers of
# resources, 1000 by default. STEAD_TEST_ENGINE names the engine, a release build.
require 'tmpdir'
require_relative '../tests/puppet_run'

# One kind of resource in a directory of its own.
class Contestant
  ENGINE = ENV.fetch('STEAD_TEST_ENGINE') { abort 'STEAD_TEST_ENGINE must name the engine' }

  def initialize(name, type, directory, per_call: nil)
    @type = type
    @per_call = per_call
    @run = PuppetRun.new(File.join(directory, name), engine: File.expand_path(ENGINE))
    File.symlink(File.join(__dir__, 'nothing'), File.join(@run.modules, 'nothing'))
    @times = Hash.new { |hash, key| hash[key] = [] }
  end

  # Creates resources and applies them again. Each time in a folder of its own: for minutes after a file was deleted, ext4
  # looks at it again for each one that is created.
  def measure(count)
    @folder = Dir.mktmpdir(nil, @run.files)
    manifest = Array.new(count) { |index| declaration(index) }.join("\n")
    @times[[count, :created]] << seconds(manifest, 2)
    @times[[count, :in_sync]] << seconds(manifest, 0)
  end

  # @return [Float, nil] the shortest time
  def shortest(count, phase)
    @times[[count, phase]].min
  end

  private

  def declaration(index)
    "#{@type} { '#{@folder}/f#{index}': ensure => present, mode => '0644', content => \"content of #{index}\\n\" }"
  end

  # @return [Float] the time in the apply phase, of Puppet and its engine
  def seconds(manifest, code)
    env = { 'ENGINE_PER_CALL' => @per_call, 'FOUND' => code.zero? ? 'present' : 'absent' }
    result = @run.apply(manifest, preload: File.join(__dir__, 'clocks.rb'), env: env)
    abort result.text.lines.first(5).join unless result.code == code
    result.text[/#{CLOCK} ([0-9.]+)/, 1].to_f
  end
end

CLOCK = ARGV.delete('cpu') || ARGV.delete('wall') || 'wall'
ROUNDS = 3
COUNTS = ARGV.empty? ? [1000] : ARGV.map { |text| Integer(text) }
# A process per call is too slow for more.
FEW = 100

def show(count, name, theirs, ours)
  %i[created in_sync].each do |phase|
    seconds = [theirs, ours].map { |one| one.shortest(count, phase) }
    puts [count, phase, name, *seconds, (seconds.last / seconds.first).round(2)].join("\t")
  end
end

Dir.mktmpdir('stead') do |directory|
  file = Contestant.new('file', 'file', directory)
  stead = Contestant.new('stead', 'stead_file', directory)
  nothing = Contestant.new('nothing', 'nothing', directory)
  per_call = Contestant.new('per_call', 'stead_file', directory, per_call: 'yes')
  puts %w[resources phase engine file_s engine_s ratio].join("\t")
  [file, per_call].each { |one| one.measure(FEW) }
  show(FEW, 'per_call', file, per_call)
  COUNTS.each do |count|
    ROUNDS.times { [file, stead, nothing].each { |one| one.measure(count) } }
    show(count, 'one', file, stead)
    show(count, 'none', file, nothing)
  end
end
