#!/usr/bin/env ruby
# frozen_string_literal: true

# Carries out types of Puppet as resources of stead: `list`, or an operation and `--type Puppet/NAME` with the properties as JSON
# on standard input. Messages are lines of JSON on standard error.
require 'json'
require 'puppet'
require 'puppet/util/command_line'
require_relative 'lib/puppet_type'

answers = $stdout.dup
# What Puppet starts finds no requests to read, and cannot write between answers.
input = ARGV.first == 'list' ? '' : $stdin.read
$stdin.reopen(File::NULL)
$stdout.reopen($stderr)

begin
  PuppetAdapter.answer(*ARGV.values_at(0, 2), input).each { |line| answers.puts(JSON.generate(line)) }
rescue StandardError, ScriptError => e
  warn JSON.generate('error' => e.message)
  exit 1
end
