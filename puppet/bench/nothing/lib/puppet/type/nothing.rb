# frozen_string_literal: true

# Looks at nothing and does nothing: what Puppet itself takes for a resource with as many attributes. FOUND says whether it is
# there.
Puppet::Type.newtype(:nothing) do
  newparam(:path, namevar: true)
  newproperty(:ensure) do
    def retrieve
      ENV.fetch('FOUND').to_sym
    end

    def insync?(found)
      found == :present
    end

    def set(_value); end
  end
  %i[content mode].each do |name|
    newproperty(name) do
      def retrieve
        should
      end
    end
  end
end
