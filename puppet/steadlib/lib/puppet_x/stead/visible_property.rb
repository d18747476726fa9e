# frozen_string_literal: true

require_relative 'state'

module PuppetX
  module Stead
    # Goes in front of the methods of a property of a generated type.
    module VisibleProperty
      # Stands for the method of the Resource API that gives each property of each resource an `insync?` and a `change_to_s` of
      # its own. Those below do the same for all; where Ruby cannot share the methods of an object, each call of one takes longer.
      def def_custom_insync?; end

      # @param current [Object] what the system has
      def insync?(current)
        state = resource.rsapi_current_state
        return true if state.is_a?(State) && state.in_sync?

        verdict, message = resource.my_provider.insync?(resource.context, resource.rsapi_title, name, state,
                                                        resource.rsapi_canonicalized_target_state)
        @change_to_s_value = message if message
        return verdict unless verdict.nil?

        name == :ensure ? rs_value.to_s == current.to_s : super
      end

      def change_to_s(current, desired)
        @change_to_s_value || super
      end
    end
  end
end
