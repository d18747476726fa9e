# frozen_string_literal: true

require_relative 'secret'
require_relative 'state'
require_relative 'test_request'

module PuppetX
  module Stead
    # Goes in front of the methods of a generated type. The Resource API gives a provider the keys of a resource to read; with
    # the resource itself, one request answers what is there and what differs.
    module VisibleResource
      # When a catalog becomes resources: what JSON cannot hold is refused before anything is changed.
      def initialize(attributes)
        super
        test_request
      end

      # @return [TestRequest] what the engine is asked about this resource, the same as long as its attributes are
      # @raise [Puppet::ResourceError] the engine could not be sent the attributes
      def test_request
        return @test_request if @test_request && !changed?

        @count = @parameters.length
        desired = desired_values
        unless @test_request&.desired == desired
          cover_secrets
          @test_request = my_provider.test_request(context, desired)
        end
        @test_request
      end

      # Has the block apply the resource. What was read for that alone is forgotten then.
      def applying
        @applying = true
        yield
      ensure
        @rsapi_current_state = nil if unseen?
        @applying = false
      end

      # @return [Boolean] whether Puppet shows what was read though it is what the manifest says
      def shows_values?
        !@applying || @parameters.key?(:audit) || Session.debugging?
      end

      # Stands for the method of the Resource API, which asks the provider for the instances of a title, looks for the one with
      # the namevars in the answer, and checks its values: those that Puppet will see.
      def refresh_current_state
        @rsapi_current_state = my_provider.read(context, self)
        return if unseen?

        type_definition.check_schema(@rsapi_current_state) if namevar_match?(@rsapi_current_state)
        strict_check(@rsapi_current_state)
      end

      # Stands for the method of Puppet, and `retrieve` of the Resource API, which make a resource of the compiler from a state.
      # What applies a resource takes it apart again.
      #
      # @return [Puppet::Resource, Hash{Symbol => Object}]
      def retrieve_resource
        return super if shows_values?

        raise_missing_attrs
        values = rsapi_current_state
        values[:ensure].is_a?(String) ? values.merge(ensure: values[:ensure].to_sym) : values
      end

      # Stands for the method of Puppet, which for each resource puts in order what attributes its type has. Nobody needs that.
      def eachparameter(&block)
        @parameters.values.each(&block)
      end

      # Puppet would warn of parameters in every run: it can cover properties alone. Nothing shows a parameter.
      #
      # @param names [Array<Symbol>] the attributes that are sensitive in the manifest
      def set_sensitive_parameters(names) # rubocop:disable Naming/AccessorMethodName -- the name is Puppet's
        super(names.select { |name| parameter(name).is_a?(Puppet::Property) })
      end

      # @return [Hash{Symbol => Object}] what the manifest says
      def desired_values
        known = type_definition.attributes
        @parameters.each_with_object({}) do |(name, parameter), result|
          value = parameter.rs_value if known.key?(name)
          result[name] = value unless value.nil?
        end
      end

      private

      def unseen?
        @rsapi_current_state.is_a?(State) && @rsapi_current_state.in_sync? && !shows_values?
      end

      # Resources that are purged get other attributes after they were made.
      def changed?
        former = @test_request.desired
        @count != @parameters.length || former.any? { |name, value| @parameters[name]&.rs_value != value }
      end

      # Resource API releases before 1.9.2 forget which properties are secret; events and state files would show them.
      def cover_secrets
        properties.each { |property| property.sensitive = true if Secret.within?(property.rs_value) }
      end
    end
  end
end
