# frozen_string_literal: true

# Marks resources as the Resource API does from 1.9.2 on: Puppet learns which of their attributes are sensitive.
require_relative '../steadlib/lib/puppet/provider/stead_base/stead_base'

# Goes in front of a generated type.
module MarkSensitive
  def initialize(attributes)
    names = attributes.is_a?(Puppet::Resource) ? attributes.sensitive_parameters : []
    super
    set_sensitive_parameters(names)
  end

  # Goes in front of what registers them.
  module Everywhere
    def manages(name)
      super
      Puppet::Type.type(name).prepend(MarkSensitive)
    end
  end
end

Puppet::Provider::SteadBase.singleton_class.prepend(MarkSensitive::Everywhere)
