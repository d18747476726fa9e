# frozen_string_literal: true

module PuppetX
  module Stead
    # What `get` gives to Puppet: attributes, and what the engine said about them in the same answer. Puppet hands the same
    # object to `insync?` and `set` and forgets it after a change, so nothing that was read before a change is used after it.
    class State < Hash
      attr_accessor :verdict, :out_of_sync, :resource

      # @return [State] `values` itself if it is one
      def self.of(values)
        values.is_a?(State) ? values : new.merge!(values || {})
      end

      # @return [Boolean, nil] whether there is an instance; nil if that was not read
      attr_accessor :exists

      # Puppet asks again to know whether a change is a corrective one, with the value of the former run.
      def first_question?(name)
        @asked ||= {}
        !@asked.key?(name) && (@asked[name] = true)
      end
    end
  end
end
