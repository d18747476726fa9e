# frozen_string_literal: true

# Stands for the type of the reboot module.
Puppet::Type.newtype(:reboot) do
  newparam(:name, namevar: true)
end
