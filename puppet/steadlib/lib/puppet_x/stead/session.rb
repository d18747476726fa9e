# frozen_string_literal: true

require 'json'
require 'puppet'
require_relative 'engine'
require_relative 'engine_path'
require_relative 'errors'
require_relative 'read_ahead'
require_relative 'secret'

module PuppetX
  module Stead
    # The conversation with one engine, shared by all types of a Puppet run. The engine starts with the first request.
    class Session
      PROTOCOL = 1
      DEADLINE = 300
      HANDSHAKE_DEADLINE = 30
      # What the engine gets on top of its own deadline to say that it was exceeded.
      GRACE = 5
      FAILURES = 2
      LEVELS = { 'error' => :err, 'warning' => :warning, 'info' => :info, 'debug' => :debug }.freeze

      class << self
        # @return [Session] that of this process: a forked one has its own
        def current
          @current = new(schemas) unless @current&.pid == Process.pid
          @current
        end

        # Types whose schema the engine is asked for in the handshake, with the digest of the schema that they come from.
        def schemas
          @schemas ||= {}
        end

        # @return [Boolean] whether Puppet shows what is asked and answered
        def debugging?
          Puppet::Util::Log.level == :debug
        end
      end

      attr_reader :pid

      # @param schemas [Hash{String => String}] the digest of each resource type
      # @param command [Array<String>] program and arguments, for tests; usually the installed engine
      def initialize(schemas, command: nil, grace: GRACE)
        @pid = Process.pid
        @schemas = schemas
        @command = command
        @grace = grace
        @id = 0
        @failures = 0
        @said = {}
        @lock = Mutex.new
      end

      # Sends a request. An engine that failed is started again once, but a `set` is never sent twice.
      #
      # @return what the engine answered
      # @raise [Error] the reason, for the user
      def request(method, params, deadline = DEADLINE)
        @lock.synchronize do
          raise @last_failure if @failures >= FAILURES

          attempt(method, params.merge('deadline' => deadline), deadline + @grace).tap { @failures = 0 }
        end
      end

      # Sends requests whose answers are asked for later, at once. No engine is started for them.
      #
      # @param requests [Array<TestRequest>]
      # @return [Array<Integer>] their ids; none if they could not be sent
      def send_ahead(method, requests)
        @lock.synchronize do
          return [] unless @engine && @failures.zero?

          ids = requests.map { |one| post(method, one.params.merge('deadline' => one.deadline)) }
          @engine.flush
          ids
        end
      rescue EngineFailure
        [] # Whoever asks next finds the reason.
      end

      # @param id [Integer] what {#send_ahead} returned
      # @return what the engine answered; nil if it failed, which stops that requests are sent ahead
      # @raise [RequestError]
      def answer(id, deadline = DEADLINE)
        @lock.synchronize { receive(id, deadline + @grace) }
      rescue EngineFailure => e
        @lock.synchronize { discard(e) }
        nil
      end

      # Cancels a request that was sent ahead.
      def abandon(id)
        @lock.synchronize { @engine&.abandon(id, JSON.generate('jsonrpc' => '2.0', 'method' => '$/cancel', 'params' => { 'id' => id })) }
      rescue EngineFailure
        nil # Whoever asks next finds the reason.
      end

      # @return [ReadAhead, nil] what is asked ahead for this catalog; it sees what is changed before the first request, too
      def read_ahead(catalog)
        return if @failed
        return @read_ahead if catalog && @read_ahead&.catalog.equal?(catalog)

        @read_ahead = ReadAhead.new(self, catalog) if ReadAhead.possible?(catalog)
      end

      # Cancels what was asked ahead for a catalog, which has been applied.
      def applied(catalog)
        return unless @read_ahead&.catalog.equal?(catalog)

        @read_ahead.forget
        @read_ahead = nil
      end

      # Runs the block the first time that the session sees the key.
      def once(key)
        return if @said.key?(key)

        @said[key] = true
        yield
      end

      def close
        @engine&.close
        @engine = nil
      end

      private

      def attempt(method, params, seconds)
        ready
        call(method, params, seconds)
      rescue RequestError
        @failures = 0
        raise
      rescue EngineFailure => e
        discard(e)
        retry if @failures < FAILURES && method != 'set'
        raise
      end

      def ready
        return if @engine

        @engine = Engine.new(@command || [EnginePath.find, 'serve', '--stdio']) { |level, text| log(level, text) }
        greet
      rescue RequestError
        close
        raise
      end

      def greet
        answer = call('initialize', greeting, HANDSHAKE_DEADLINE)
        raise EngineFailure, 'the engine gave an invalid answer to the handshake' unless answer.is_a?(Hash)
        return compare_schemas(answer['schemas'] || {}) if answer['protocol'] == PROTOCOL

        raise RequestError, 'message' => "the engine speaks protocol #{answer['protocol'].inspect}; this module needs #{PROTOCOL}"
      end

      def greeting
        { 'protocol' => PROTOCOL, 'schemas' => @schemas }
      end

      def compare_schemas(found)
        @schemas.each do |type, digest|
          next if found[type].nil? || found[type] == digest

          once([:schema, type]) do
            log('warning', "the schema of #{type} is not the one that its Puppet type was generated from; " \
                           'run `stead puppetize` again')
          end
        end
      end

      def call(method, params, seconds)
        id = post(method, params)
        @engine.flush
        receive(id, seconds)
      end

      # @return [Integer] the id of the request
      def post(method, params)
        @id += 1
        request = { 'jsonrpc' => '2.0', 'id' => @id, 'method' => method, 'params' => params }
        log('debug', "request: #{line(request, &:cover)}") if Session.debugging?
        @engine.post(line(request, &:expose), @id)
        @id
      end

      def receive(id, seconds)
        answer = @engine.answer(id, seconds)
        raise RequestError, answer['error'] if answer['error'].is_a?(Hash)

        answer['result'].tap { |result| log('debug', "answer #{id}: #{outline(result)}") if Session.debugging? }
      end

      def line(request, &secret)
        JSON.generate(Secret.within?(request) ? Secret.replace(request, &secret) : request)
      end

      # An answer without the values that the system returned.
      def outline(result)
        return 'null' unless result.is_a?(Hash)

        parts = result.map do |key, value|
          case value
          when true, false then "#{key}=#{value}"
          when Array then "#{key}=#{named(value)}"
          else key
          end
        end
        parts.join(' ')
      end

      # The properties of `differing`, how many of anything else.
      def named(items)
        names = items.map { |item| item['property'] if item.is_a?(Hash) }
        names.any? ? names.join(',') : items.length
      end

      def discard(failure)
        @failures += 1
        @failed = true
        @last_failure = EngineFailure.new("the engine failed #{FAILURES} times and is not started again: #{failure.message}")
        @engine&.kill
        @engine = nil
      end

      def log(level, text)
        Puppet.public_send(LEVELS.fetch(level, :info), "stead #{text}")
      end
    end
  end
end
