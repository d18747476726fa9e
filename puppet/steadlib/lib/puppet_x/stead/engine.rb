# frozen_string_literal: true

require 'json'
require_relative 'errors'

module PuppetX
  module Stead
    # One child `stead serve --stdio` and the lines that go to it and come from it. Any failure leaves it unusable.
    class Engine
      LONGEST_ANSWER = 64 * 1024 * 1024
      CHUNK = 64 * 1024
      TAIL = 2048

      # @param command [Array<String>] program and arguments; no shell is involved
      # @yield [level, message] what the engine logs
      def initialize(command, &log)
        @log = log
        @unread = String.new
        @unsent = String.new
        @searched = 0
        @last = 0
        @answers = {}
        start(command)
      end

      # Takes a request, which {#flush} sends.
      #
      # @param line [String] the request, without the end of the line
      # @param id [Integer] its id, greater than that of any former request
      def post(line, id)
        @last = id
        @answers[id] = nil
        @unsent << line.b << "\n"
      end

      # Sends what was taken, or what of it can be sent without waiting.
      #
      # @raise [EngineFailure]
      def flush
        send_some
      rescue SystemCallError
        raise EngineFailure, "the engine ended #{outcome}#{tail}"
      end

      # Waits for the answer to a request.
      #
      # @return [Hash] the answer with this id
      # @raise [EngineFailure]
      def answer(id, seconds)
        limit = now + seconds
        loop do
          take_lines
          return @answers.delete(id) if @answers[id]

          transfer(limit, seconds) unless now < limit && receive_some
        end
      rescue EOFError, SystemCallError
        raise EngineFailure, "the engine ended #{outcome}#{tail}"
      end

      # Cancels a request that is not answered yet, and ignores its answer.
      #
      # @param line [String] the notification that cancels it
      # @raise [EngineFailure]
      def abandon(id, line)
        return unless @answers.delete(id).nil?

        @unsent << line.b << "\n"
        flush
      end

      # Ends the engine and what it started, at once.
      def kill
        Process.kill(:KILL, Puppet::Util::Platform.windows? ? @pid : -@pid)
      rescue SystemCallError
        nil # it ended before
      ensure
        [@input, @output].each(&:close)
        @waiter.join
      end

      # Ends the engine as the protocol has it: by the end of its input.
      def close
        @input.close
        @waiter.join(1) || kill
      end

      private

      # The ends of the pipes that stay here are closed in every other child of Puppet: Ruby sets close-on-exec.
      def start(command)
        theirs, @input = IO.pipe(binmode: true)
        @output, answers = IO.pipe(binmode: true)
        errors, messages = IO.pipe(binmode: true)
        options = { in: theirs, out: answers, err: messages }
        options[:pgroup] = true unless Puppet::Util::Platform.windows?
        @pid = Process.spawn([command.first, command.first], *command.drop(1), options)
        @waiter = Process.detach(@pid)
        @errors = keep_tail(errors)
      rescue SystemCallError => e
        raise Error, "cannot start the engine: #{e.message}"
      ensure
        [theirs, answers, messages].compact.each(&:close)
      end

      def keep_tail(stream)
        @tail = String.new
        Thread.new do
          loop do
            text = @tail + stream.readpartial(CHUNK)
            @tail = text.byteslice(-TAIL..) || text
          end
        rescue IOError
          stream.close
        end
      end

      # Sends and receives what can be at the moment, so that neither side waits for the other.
      def transfer(limit, seconds)
        left = limit - now
        readable, writable = IO.select([@output], @unsent.empty? ? nil : [@input], nil, left) if left.positive?
        raise EngineFailure, "the engine gave no answer within #{seconds} seconds#{tail}" if readable.nil?

        @unread << @output.readpartial(CHUNK) unless readable.empty?
        send_some unless writable.empty?
      end

      # @return [Boolean] whether there was something; not before all was sent, so that the engine does not wait
      # @raise [EOFError]
      def receive_some
        return false unless @unsent.empty?

        text = @output.read_nonblock(CHUNK, exception: false)
        raise EOFError if text.nil?

        text != :wait_readable && (@unread << text) && true
      end

      # What does not fit into the pipe is sent later.
      def send_some
        @unsent = @unsent.byteslice(@input.write_nonblock(@unsent)..)
      rescue IO::WaitWritable
        nil
      end

      # Keeps answers for those who wait for them, and deals with messages.
      def take_lines
        while (line = next_line)
          message = parsed(line)
          id = message['id']
          @answers.key?(id) && @answers[id].nil? ? @answers[id] = message : take_other(message)
        end
        return if @unread.bytesize <= LONGEST_ANSWER

        raise EngineFailure, "the engine gave an answer of more than #{LONGEST_ANSWER} bytes"
      end

      def next_line
        stop = @unread.index("\n", @searched)
        @searched = stop ? 0 : @unread.bytesize
        @unread.slice!(0..stop) if stop
      end

      def parsed(line)
        message = JSON.parse(line.force_encoding(Encoding::UTF_8), max_nesting: 200)
        return message if message.is_a?(Hash)

        raise EngineFailure, "the engine wrote a line that is not an answer#{tail}"
      rescue JSON::ParserError
        raise EngineFailure, "the engine wrote a line that is not JSON#{tail}"
      end

      def take_other(message)
        other = message['id']
        if other.nil?
          note(message)
        elsif other.is_a?(Integer) && other.between?(1, @last)
          @log&.call('debug', "the answer to request #{other} is ignored: it is not the first one, or nobody waits for it")
        else
          raise EngineFailure, "the engine answered a request that it was not given#{tail}"
        end
      end

      def note(message)
        return unless message['method'] == '$/log'

        params = message['params'] || {}
        @log&.call(params['level'], params['message'])
      end

      def outcome
        status = @waiter.join(5)&.value
        return 'its output' if status.nil?

        status.signaled? ? "by signal #{status.termsig}" : "with exit code #{status.exitstatus}"
      end

      def tail
        @errors.join(1) unless @waiter.alive?
        text = @tail.dup.force_encoding(Encoding::UTF_8).scrub.strip
        text.empty? ? '' : "; the end of its standard error:\n#{text}"
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
