# frozen_string_literal: true

require 'etc'
require 'puppet/resource/catalog'
require_relative '../steadlib/lib/puppet_x/stead/session'

# Goes in front of a catalog and prints how long it takes to apply it: on the wall, and in time of processors.
module Clocks
  def apply(*)
    return super unless host_config?

    before = now
    super.tap do
      after = now
      before.each { |clock, seconds| puts "#{clock} #{(after[clock] - seconds).round(3)}" }
    end
  end

  private

  def now
    { 'wall' => Process.clock_gettime(Process::CLOCK_MONOTONIC),
      'cpu' => Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + children }
  end

  # Those that are running, and those that ended.
  def children
    running = Dir['/proc/[0-9]*/stat'].filter_map do |path|
      fields = File.read(path)[/.*\) (.*)/, 1].split
      fields.values_at(11, 12).sum(&:to_i) if fields[1].to_i == Process.pid
    rescue SystemCallError
      nil
    end
    (running.sum / Etc.sysconf(Etc::SC_CLK_TCK).to_f) + Process.times.then { |times| times.cutime + times.cstime }
  end
end

# Goes in front of a session and ends its engine after each request: what a process per call costs.
module EnginePerCall
  def request(...)
    super
  ensure
    close
  end
end

Puppet::Resource::Catalog.prepend(Clocks)
PuppetX::Stead::Session.prepend(EnginePerCall) if ENV['ENGINE_PER_CALL']
