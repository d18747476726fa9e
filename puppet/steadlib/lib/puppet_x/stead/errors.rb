# frozen_string_literal: true

module PuppetX
  module Stead
    # What this module reports to Puppet: the message is for the user.
    class Error < StandardError; end

    # The engine ended, was silent past the deadline, or broke the protocol. It must be started again.
    class EngineFailure < Error; end

    # The engine answered a request with an error.
    class RequestError < Error
      # The resource failed, or cannot do that.
      FAILED = -32_000

      attr_reader :code, :data

      # @param error [Hash] the member `error` of the answer
      def initialize(error)
        @code = error['code']
        @data = error['data'] || {}
        super([data['code'], error['message']].compact.join(': '))
      end
    end
  end
end
