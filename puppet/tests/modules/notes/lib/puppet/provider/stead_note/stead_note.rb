# frozen_string_literal: true

require 'puppet/provider/stead_base/stead_base'

# Manages notes of the fake engine.
class Puppet::Provider::SteadNote::SteadNote < Puppet::Provider::SteadBase
  manages :stead_note
end
