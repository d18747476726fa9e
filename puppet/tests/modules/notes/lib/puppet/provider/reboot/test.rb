# frozen_string_literal: true

Puppet::Type.type(:reboot).provide(:test) do
  def reboot_required=(value)
    Puppet.notice("a reboot is pending: #{value}")
  end
end
