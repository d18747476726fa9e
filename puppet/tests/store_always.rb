# frozen_string_literal: true

# Puppet keeps the store of former values only in agent mode; the tests look into it after `puppet apply`.
require 'puppet/transaction/persistence'

# Puts itself in front of that question.
module StoreAlways
  def enabled?(catalog)
    catalog.host_config?
  end
end

Puppet::Transaction::Persistence.prepend(StoreAlways)
